"""Helpers of the verdicts by formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.reproductions.verdict import Part, Verdict, judge


def refuted(parts: Sequence[Part], because: str, readings: Sequence[str] = ()) -> Verdict:
    """Returns `refuted` if a part fails: what failed is a proof or a counterexample, not a measurement."""
    if all(part.holds for part in parts):
        return judge(parts, readings)
    return Verdict("refuted", tuple(parts), because, tuple(readings))


def number(found: Mapping[str, Any], name: str) -> float:
    """Returns a figure of the calculator, which writes infinity as a word."""
    return float(found[name])
