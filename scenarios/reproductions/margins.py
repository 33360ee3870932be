"""Decides a statement from its margins over seeds: the 95% interval must be on one side of zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from scenarios.metrics.comparison import interval
from scenarios.reproductions.verdict import Part


def decide(statement: str, margins: Sequence[float], measured: str) -> Part:
    """The statement holds if the margin's 95% interval is above zero, fails if it is below, else is open."""
    if not margins:
        return Part(statement, None, "not measured")
    found = interval(list(margins))
    # Without any spread (bytes, exact figures) one seed decides.
    if len(margins) > 1 and float(np.ptp(margins)) == 0.0:
        return Part(statement, margins[0] > 0, measured)
    if found["low"] is None:
        return Part(statement, None, f"{measured}, one seed", 2)
    # An interval that contains zero decides nothing, on whichever side its mean is.
    holds = True if found["low"] > 0 else False if found["high"] < 0 else None
    return Part(statement, holds, measured, None if holds is not None else _seeds_needed(margins))


def _seeds_needed(margins: Sequence[float]) -> int | None:
    """Returns how many seeds would decide, if mean and spread stay as they are; None if the mean is nothing."""
    mean, spread = float(np.mean(margins)), float(np.std(margins, ddof=1))
    # Half an interval is about 2.1 standard errors for the numbers of seeds in question; solved for their number.
    return None if mean == 0 else max(len(margins) + 1, math.ceil((2.1 * spread / mean) ** 2) + 1)


def spread(differences: Sequence[float]) -> str:
    """Returns mean and half width of the interval as text."""
    found = interval(list(differences))
    if found["low"] is None:
        return f"difference {number(found['mean'])}"
    half = (found["high"] - found["low"]) / 2
    return f"difference {number(found['mean'])} ± {number(half)} over {found['n']} seeds"


def number(value: float | None) -> str:
    """Returns four digits, or a dash."""
    return "-" if value is None else f"{value:.4g}"
