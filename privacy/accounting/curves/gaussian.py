"""Exact accounting of the Gaussian mechanism: conversions between epsilon, delta and mu, and composition.

`mu` is sensitivity / noise standard deviation. A mechanism with that mu is (epsilon, delta)-DP exactly when
`Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) <= delta` (Balle & Wang 2018). The computations use
`a = mu/2 - epsilon/mu`, for which the difference is `Phi(a) - phi(a) R(mu - a)` with Mills' ratio R. No exponential
of epsilon appears, so the results hold to epsilon 1e9 and beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_STEPS = 200
_STEP_RTOL = 1e-13  # Newton steps below this only follow rounding errors


def compose(mus: ArrayLike) -> float:
    """Returns the mu of the composition of several Gaussian releases of the same data.

    Guarantees:
        exact, also for adaptive composition (Dong, Roth & Su 2022).
    """
    return float(np.sqrt(np.sum(np.square(np.asarray(mus, dtype=np.float64)))))


def delta_of(epsilon: float, mu: float) -> float:
    """Returns the smallest delta for which a Gaussian release with `mu` is (epsilon, delta)-DP."""
    if mu == 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    return math.exp(_log_delta_at(epsilon, mu))


def epsilon_of(mu: float, delta: float) -> float:
    """Returns the smallest epsilon for which a Gaussian release with `mu` is (epsilon, delta)-DP."""
    return float(epsilons_of([mu], delta)[0])


def epsilons_of(mus: Sequence[float] | NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """Returns `epsilon_of` for many mus with the same delta.

    Guarantees:
        relative error below 1e-8; nondecreasing in mu; 0 where delta alone covers the release; infinite where mu is
        infinite or delta is zero.
    """
    mu = np.asarray(mus, dtype=np.float64)
    result = np.where(np.isinf(mu) | ((delta <= 0.0) & (mu > 0.0)), np.inf, 0.0)
    if delta <= 0.0:
        return result
    finite = np.isfinite(mu) & (mu > 0.0)
    positive_mu = mu[finite]
    exact = np.zeros_like(positive_mu)
    # a = mu/2 is epsilon = 0: where that already meets delta, epsilon is 0 and there is nothing to solve.
    needs = _log_delta(positive_mu / 2, _mills(positive_mu / 2)) > math.log(delta)
    exact[needs] = _solve_epsilon(positive_mu[needs], delta)
    result[finite] = exact
    return result


def mu_of(epsilon: float, delta: float) -> float:
    """Returns the largest mu that is (epsilon, delta)-DP: the inverse of `epsilon_of`.

    Guarantees:
        `delta_of(epsilon, mu)` equals delta to a relative 1e-9; zero if delta is zero.
    """
    if delta <= 0.0:
        return 0.0
    target = math.log(delta)
    low, high = 0.0, 1.0
    while _log_delta_at(epsilon, high) < target:  # delta grows with mu, so doubling ends
        low, high = high, 2.0 * high
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if _log_delta_at(epsilon, middle) < target else (low, middle)
    return low  # the end that meets the target, so rounding errs towards more noise


def classic_std(epsilon: float, delta: float, sensitivity: float) -> float:
    """Returns the noise by the classic formula, `sensitivity sqrt(2 ln(1.25/delta)) / epsilon`.

    Guarantees:
        (epsilon, delta)-DP, proved for epsilon < 1 only (Dwork & Roth 2014, A.1); too little above about 8.
    """
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def analytic_std(epsilon: float, delta: float, sensitivity: float, releases: int = 1) -> float:
    """Returns the least noise for which `releases` releases together are (epsilon, delta)-DP (Balle & Wang 2018)."""
    return sensitivity * math.sqrt(releases) / mu_of(epsilon, delta)


def max_releases(epsilon: float, delta: float, noise_multiplier: float) -> int:
    """Returns the number of releases with that noise that fit into (epsilon, delta), by exact composition."""
    # The slack lets noise that was calibrated for N releases allow N, not N - 1.
    return math.floor((mu_of(epsilon, delta) * noise_multiplier) ** 2 * (1.0 + 1e-12))


def _log_delta_at(epsilon: float, mu: float) -> float:
    a = np.array([mu / 2 - epsilon / mu])
    return float(_log_delta(a, _mills(mu - a))[0])


def _log_delta(a: NDArray[np.float64], ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns ln(Phi(a) - phi(a) R(mu - a)), given the ratio R(mu - a).

    For a <= 1 it is computed as ln phi(a) + ln(R(-a) - R(mu - a)), in which no tail underflows. For large a, R(-a)
    overflows.
    """
    from scipy.special import ndtr

    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        log_density = -0.5 * np.square(a) - _LOG_SQRT_2PI
        tail = log_density + np.log(_mills(-a) - ratio)
        body = np.log(ndtr(a) - np.exp(log_density) * ratio)
    result: NDArray[np.float64] = np.where(a > 1.0, body, tail)
    return result


def _mills(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns Mills' ratio (1 - Phi(x)) / phi(x)."""
    from scipy.special import erfcx

    ratio: NDArray[np.float64] = math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))
    return ratio


def _solve_epsilon(mu: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """Solves for epsilon by Newton's method on ln delta(a), safeguarded by bisection.

    The root lies between the normal quantile of delta and mu/2.
    """
    from scipy.special import ndtri

    target = math.log(delta)
    low = np.full_like(mu, float(ndtri(delta)))
    high = mu / 2
    # For large mu the root approaches the lower end, where delta is Phi(a).
    a = np.minimum(low + 0.5, 0.5 * (low + high))
    for _ in range(_STEPS):
        ratio = _mills(mu - a)
        value = _log_delta(a, ratio)
        above = value > target
        low, high = np.where(above, low, a), np.where(above, a, high)
        # d ln(delta) / da = mu phi(a) R(mu - a) / delta, positive: ln(delta) is increasing in a.
        slope = mu * np.exp(-0.5 * np.square(a) - _LOG_SQRT_2PI - value) * ratio
        guess = a - (value - target) / slope
        # Inclusive bounds: at the solution the guess equals one of the ends.
        inside = (guess >= low) & (guess <= high)
        next_a = np.where(inside, guess, 0.5 * (low + high))
        converged = np.abs(next_a - a) <= _STEP_RTOL * (1.0 + np.abs(a))
        a = next_a
        if bool(np.all(converged)):
            break
    # Inverts a = mu/2 - epsilon/mu; a huge mu correctly overflows to infinity.
    with np.errstate(over="ignore"):
        return np.maximum(mu * (mu / 2 - a), 0.0)
