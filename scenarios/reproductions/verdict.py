"""Verdicts on a claim, and the parts that a rule consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Word = Literal["reproduced", "not reproduced", "refuted", "inconclusive"]
WORDS: tuple[Word, ...] = ("reproduced", "not reproduced", "refuted", "inconclusive")


@dataclass(frozen=True, slots=True)
class Part:
    """One statement of a rule: whether it holds, and what was measured. None: the seeds do not decide."""

    statement: str
    holds: bool | None
    measured: str
    seeds_needed: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "statement": self.statement,
            "holds": self.holds,
            "measured": self.measured,
            "seeds_needed": self.seeds_needed,
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
    """Returns `reproduced` if all parts hold, `not reproduced` if one fails, `inconclusive` otherwise."""
    holds = [part.holds for part in parts]
    word: Word = "not reproduced" if False in holds else "reproduced" if all(holds) else "inconclusive"
    return Verdict(word, tuple(parts), readings=tuple(readings))
