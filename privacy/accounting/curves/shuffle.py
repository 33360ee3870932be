"""Privacy amplification by shuffling local randomisers: a closed form, and the numerical clone reduction."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def closed_form_limit(users: int, delta: float) -> float:
    """The largest eps0 for which `closed_form` is proved: `ln(n / (16 ln(2/delta)))`."""
    return math.log(users / (16.0 * math.log(2.0 / delta)))


def closed_form(eps0: float, users: int, delta: float) -> float:
    """Returns epsilon of `users` shuffled eps0-DP reports (Feldman, McMillan & Talwar 2021, Theorem 3.1).

    Guarantees:
        (result, delta)-DP if eps0 is at most `closed_form_limit`.
    """
    exp_eps0 = math.exp(eps0)
    inner = 8.0 * math.sqrt(exp_eps0 * math.log(4.0 / delta)) / math.sqrt(users) + 8.0 * exp_eps0 / users
    return math.log1p((exp_eps0 - 1.0) / (exp_eps0 + 1.0) * inner)


def clone_epsilon(eps0: float, users: int, delta: float) -> float:
    """Returns epsilon by the clone reduction of the same paper, summed numerically; never above eps0.

    The other users hide one report behind `C ~ Bin(n-1, e^-eps0)` clones of it.

    Guarantees:
        holds for every eps0 and n; an upper bound, to a relative 1e-9 and neglected mass below 1e-20.
    """
    weights, one, other = _clone_distributions(eps0, users)

    def divergence(epsilon: float) -> float:
        return float(np.sum(weights * np.maximum(one - math.exp(epsilon) * other, 0.0)))

    low, high = 0.0, eps0
    if divergence(0.0) <= delta:
        return 0.0
    # Relative precision, with a floor that ends the search for a tiny epsilon.
    while high - low > 1e-10 * max(high, 1e-3):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if divergence(middle) > delta else (low, middle)
    return high  # the upper end, so that the result stays a valid bound


def _clone_distributions(
    eps0: float, users: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Returns the mass of each (number of clones, number that agree), and the two likelihoods relative to it.

    Among c clones and the report itself, a of the c+1 show the first value. Given c, the report's value is true with
    probability p = e^eps0/(e^eps0+1), so the likelihood is `2 (p a + (1-p)(c+1-a))/(c+1)` times Bin(c+1, 1/2).
    """
    from scipy.stats import binom

    rate = math.exp(-eps0)
    clones = _likely_outcomes(users - 1, rate)
    agree = [_likely_outcomes(int(c) + 1, 0.5) for c in clones]
    count = np.repeat(clones, [len(a) for a in agree]).astype(np.float64)
    a = np.concatenate(agree).astype(np.float64)
    weights = binom.pmf(count, users - 1, rate) * binom.pmf(a, count + 1.0, 0.5)
    p = 1.0 / (1.0 + rate)
    one = 2.0 * (p * a + (1.0 - p) * (count + 1.0 - a)) / (count + 1.0)
    return weights, one, 2.0 - one


def _likely_outcomes(trials: int, rate: float) -> NDArray[np.int64]:
    """Returns all outcomes of a binomial within ten standard deviations of its mean."""
    # The constant 10 covers small variances, where ten standard deviations are less than one outcome.
    spread = 10.0 * math.sqrt(trials * rate * (1.0 - rate)) + 10.0
    low, high = math.floor(trials * rate - spread), math.ceil(trials * rate + spread)
    return np.arange(max(low, 0), min(high, trials) + 1)
