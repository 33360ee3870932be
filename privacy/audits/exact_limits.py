"""Exact confidence limits of a binomial probability (Clopper & Pearson 1934)."""

from __future__ import annotations


def clopper_pearson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Returns the two-sided interval."""
    tail = (1.0 - confidence) / 2.0
    # The lower limit of successes is the upper limit of failures, seen from the other side.
    return 1.0 - upper_limit(trials - successes, trials, tail), upper_limit(successes, trials, tail)


def upper_limit(successes: int, trials: int, error: float) -> float:
    """Returns the one-sided upper limit, wrong with probability at most `error`."""
    from scipy.special import betaincinv

    # Without a failure every probability up to 1 stays possible, and the beta distribution degenerates.
    return float(betaincinv(successes + 1, trials - successes, 1.0 - error)) if successes < trials else 1.0
