"""Verdicts on a claim, and the parts that a rule consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Word = Literal["reproduced", "not reproduced", "refuted", "inconclusive"]
WORDS: tuple[Word, ...] = ("reproduced", "not reproduced", "refuted", "inconclusive")


@dataclass(frozen=True, slots=True)
class Part:
    """One statement of a rule: whether it holds, and what was measured. None: the seeds do not decide.

    A part with a `reading` counts for that reading of the paper only, others for all.
    """

    statement: str
    holds: bool | None
    measured: str
    seeds_needed: int | None = None
    reading: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "statement": self.statement,
            "holds": self.holds,
            "measured": self.measured,
            "seeds_needed": self.seeds_needed,
            **({"reading": self.reading} if self.reading else {}),
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a claim.

    Attributes:
        word: reproduced, not reproduced, refuted (by a proof or counterexample) or inconclusive
        parts: the statements it rests on
        because: for refuted, the proof or counterexample
        readings: how settings that the paper does not state were read
    """

    word: Word
    parts: tuple[Part, ...]
    because: str = ""
    readings: tuple[str, ...] = field(default=())


def judge(parts: Sequence[Part], readings: Sequence[str] = ()) -> Verdict:
    """Returns the verdict: that of the reading under which the claim fares best.

    A reading is `reproduced` if all its parts hold, `not reproduced` if one fails, `inconclusive` otherwise.
    """
    # Parts without a reading count for each; without readings there is one, the empty one.
    names = dict.fromkeys(part.reading for part in parts if part.reading) or {"": None}
    words = {_word([part for part in parts if part.reading in ("", name)]) for name in names}
    # In this order: what a reading leaves open is better for the claim than what fails.
    best: Word = next(word for word in ("reproduced", "inconclusive", "not reproduced") if word in words)
    return Verdict(best, tuple(parts), readings=tuple(readings))


def _word(parts: Sequence[Part]) -> Word:
    holds = [part.holds for part in parts]
    # One part that fails decides, also if others are still open.
    return "not reproduced" if False in holds else "reproduced" if all(holds) else "inconclusive"
