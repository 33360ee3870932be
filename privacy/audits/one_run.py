"""Lower bounds on epsilon from one run with many canaries, and from several such runs together.

Each of m canaries is decided by a fair coin of its own; the auditor guesses r of the coins, chosen by the scores, and v
guesses are right. In independent runs the numbers add up: given the earlier runs, each run's right guesses are
dominated as below, hence their sum is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

MOST_EPSILON = 60.0
_STEPS = 40


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Returns how likely so many right guesses are, at most, if (epsilon, delta) holds.

    Steinke, Nasr and Jagielski 2023, Corollary 5.4 and appendix D: with q = e^eps/(1 + e^eps) and f(v) the probability
    of v or more successes among r, it is f(v) + 2 m delta max over i of (f(v - i) - f(v))/i.
    """
    from scipy.stats import binom

    # The form with the negative exponent does not overflow.
    q = 1.0 / (1.0 + math.exp(-epsilon))
    # Tail probabilities of 0, 1, ..., v successes or more.
    tails = binom.sf(np.arange(-1, right), guesses, q)
    last = float(tails[right])
    if not right or not delta:
        return min(1.0, last)
    steps = np.arange(1, right + 1)
    return min(1.0, last + 2.0 * canaries * delta * float(np.max((tails[right - steps] - last) / steps)))


def one_run_epsilon(canaries: int, guesses: int, right: int, delta: float, error: float) -> float:
    """Returns the largest epsilon that the guesses refute, wrong with probability at most `error`."""
    return _largest_refuted(lambda epsilon: p_value(canaries, guesses, right, epsilon, delta) < error)


def one_run_mu(canaries: int, guesses: int, right: int, error: float) -> float:
    """Returns the largest mu of Gaussian DP that the guesses refute, wrong with probability at most `error`.

    Mahloujifar, Melis and Chaudhuri 2024, with the trade-off function of N(0, 1) against N(mu, 1). Sharper than the
    bound above, and valid only where the mechanism is known to be dominated by a Gaussian one.
    """
    return _largest_refuted(lambda mu: _refutes(canaries, guesses, right, mu, error))


def _refutes(canaries: int, guesses: int, right: int, mu: float, error: float) -> bool:
    from statistics import NormalDist  # on use: reading a scenario loads this module and computes nothing

    normal = NormalDist()
    # Probability that a guess is right and that it is wrong, for the outcome with so many right ones.
    hit, miss = error * right / canaries, error * (guesses - right) / canaries
    # The paper's recursion, from the observed number of right guesses down to none.
    for left in range(right - 1, -1, -1):
        if not 0.0 < hit < 1.0:
            break
        more = max(miss, normal.cdf(normal.inv_cdf(hit) - mu))
        if more == miss:
            break
        hit, miss = min(1.0, hit + left / (guesses - left) * (more - miss)), more
    return hit + miss > guesses / canaries


def _largest_refuted(refuted: Callable[[float], bool]) -> float:
    low, high = 0.0, MOST_EPSILON
    if not refuted(low):
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        # The refuted end is kept, so the result errs towards a smaller, still valid bound.
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
