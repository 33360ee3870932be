"""Balanced accuracy of guesses with a confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.audits.exact_limits import clopper_pearson

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BalancedAccuracy:
    """Mean of the shares of members and of non-members that are guessed right, with a 95% interval."""

    value: float
    low: float
    high: float


def balanced_accuracy(guessed: Flags, member: Flags, confidence: float = 0.95) -> BalancedAccuracy:
    """Returns the balanced accuracy of "member" guesses.

    The interval joins exact intervals of both rates by the method of variance estimates recovery (Zou & Donner 2008).
    A bootstrap would have no width where every guess is right, however few there are.
    """
    shares = [_share(guessed[member]), _share(~guessed[~member])]
    limits = [clopper_pearson(right, total, confidence) for right, total in shares]
    rates = [right / total for right, total in shares]
    value = sum(rates) / 2.0
    down = math.hypot(*(rate - low for rate, (low, _) in zip(rates, limits, strict=True))) / 2.0
    up = math.hypot(*(high - rate for rate, (_, high) in zip(rates, limits, strict=True))) / 2.0
    return BalancedAccuracy(value, max(0.0, value - down), min(1.0, value + up))


def _share(right: Flags) -> tuple[int, int]:
    return int(right.sum()), len(right)
