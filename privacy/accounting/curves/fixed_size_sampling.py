"""RDP bounds of Gaussian mechanisms on a secret uniform cohort of fixed size, for replace-one neighbours.

`z` is noise standard deviation / replace-one sensitivity throughout. At large rates these bounds are worse than no
sampling, which `model_epsilon` knows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.curves import gaussian
from privacy.accounting.curves.rdp import ORDERS, best_epsilon, gaussian_rdp

_TOP = ORDERS[-1]


@lru_cache(maxsize=256)
def gaussian_bound_rdp(rate: float, z: float) -> NDArray[np.float64]:
    """Returns the RDP of one step at all orders by the Gaussian-specific bound; cached and read-only.

    Equals dp-accounting's `SampledWithoutReplacementDpEvent`, which takes 15 s because it recomputes the moments for
    each order; here they are computed once.

    Guarantees:
        Theorem 27 of Wang, Balle & Kasiviswanathan 2019, replace one client, rate = cohort / clients.
    """
    j = np.arange(3, _TOP + 1)
    moments = _log_ratio_moments(z, _TOP + 1)
    # Odd moments are bounded by the geometric mean of the neighbouring even ones, which are positive.
    tight = math.log(4.0) + 0.5 * (moments[2 * (j // 2)] + moments[2 * ((j + 1) // 2)])
    return _bound(rate, z, np.minimum(tight, math.log(2.0) + j * (j - 1) / (2.0 * z * z)))


def general_bound_rdp(rate: float, z: float) -> NDArray[np.float64]:
    """Returns the RDP of one step by the bound for any mechanism: (2.26) of Weng (2025), missing plus sign restored."""
    j = np.arange(3, _TOP + 1)
    return _bound(rate, z, math.log(2.0) + j * (j - 1) / (2.0 * z * z))


def rounded_bound_rdp(rate: float, z: float) -> NDArray[np.float64]:
    """Returns `gaussian_bound_rdp` at z rounded down to four digits; unsampled at rate 1."""
    return gaussian_bound_rdp(rate, float(_rounded_down(np.array([z]))[0]))


def model_epsilon(rates: Sequence[float], zs: Sequence[float] | NDArray[np.float64], delta: float) -> float:
    """Returns epsilon against an observer of each step's mean, for steps sampled at these rates.

    Guarantees:
        Sampling without replacement never hurts (the Renyi and hockey-stick divergences are quasi-convex, and the
        cohorts of neighbouring runs can be coupled to differ in one member), so the mechanism has both the profile of
        the sampling bound and that of the unsampled steps; at each epsilon the smaller delta holds.
    """
    inverse = np.divide(1.0, zs, out=np.full(len(zs), np.inf), where=np.asarray(zs) > 0.0)
    unsampled = gaussian.epsilon_of(gaussian.compose(inverse), delta)
    if not math.isfinite(unsampled):
        return unsampled
    total = np.zeros(len(ORDERS))
    for (rate, z), count in Counter(zip(rates, zs, strict=True)).items():
        total = total + count * rounded_bound_rdp(rate, float(z))
    return min(unsampled, best_epsilon(total, delta)[0])


def _bound(rate: float, z: float, log_terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `ln(1 + sum_j binom(a, j) rate^j e^term_j) / (a-1)` for every order a; `log_terms` starts at j = 3."""
    from scipy.special import gammaln, logsumexp

    if rate >= 1.0:
        return gaussian_rdp(z)
    pair = 1.0 / (z * z)
    # The term j = 2 has a sharper bound of its own.
    second = min(math.log(4.0) + pair + math.log(-math.expm1(-pair)), math.log(2.0) + pair)
    j = np.arange(2, _TOP + 1, dtype=np.float64)
    terms = np.concatenate([[second], log_terms]) + j * math.log(rate)
    orders = np.array(ORDERS, dtype=np.float64)[:, None]
    with np.errstate(invalid="ignore"):
        binomials = gammaln(orders + 1.0) - gammaln(j + 1.0) - gammaln(np.maximum(orders - j, 0.0) + 1.0)
    # In logarithms: the terms of high orders exceed float64 by far.
    logs = np.where(j <= orders, binomials + terms, -np.inf)
    sums = logsumexp(np.concatenate([np.zeros_like(orders), logs], axis=1), axis=1)
    result: NDArray[np.float64] = sums / (orders[:, 0] - 1.0)
    result.setflags(write=False)
    return result


def _log_ratio_moments(z: float, top: int) -> NDArray[np.float64]:
    """Returns ln |E (L-1)^k| for k = 0..top, with L the likelihood ratio of two Gaussians 1/z apart."""
    # E (L-1)^k is the k-th forward difference of the moments E L^k, whose logarithms are k (k-1) / (2 z^2).
    k = np.arange(top + 1, dtype=np.float64)
    logs, positive = k * (k - 1.0) / (2.0 * z * z), np.ones(top + 1, dtype=np.bool_)
    result = np.zeros(top + 1)
    for level in range(1, top + 1):
        logs, positive = _difference(logs, positive)
        result[level] = logs[0]
    return result


def _difference(
    logs: NDArray[np.float64], positive: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Returns the forward differences of signed numbers, given as logarithms of absolute values and signs."""
    low, high = logs[:-1], logs[1:]
    same_sign = positive[:-1] == positive[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        subtracted = np.maximum(low, high) + np.log(-np.expm1(-np.abs(high - low)))
    subtracted = np.where(np.isneginf(low) & np.isneginf(high), -np.inf, subtracted)
    signs = np.where(same_sign & (high < low), ~positive[1:], positive[1:])
    return np.where(same_sign, subtracted, np.logaddexp(low, high)), signs


def _rounded_down(zs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounds down to four significant digits."""
    # Few distinct values keep the cache small; less noise means that epsilon is never underestimated. The slack keeps
    # values that have four digits already.
    scale = 10.0 ** (np.floor(np.log10(zs)) - 3)
    rounded: NDArray[np.float64] = np.maximum(np.floor(zs / scale * (1.0 + 1e-12)) * scale, scale)
    return rounded
