"""The Gaussian mechanism, exactly: epsilon, delta and mu from one another, and composition.

`mu` is sensitivity / noise standard deviation. A mechanism with that mu is (epsilon, delta)-DP exactly when
`Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) <= delta` (Balle & Wang 2018). Everything here works
with `a = mu/2 - epsilon/mu`, in which that difference is `Phi(a) - phi(a) R(mu - a)`, R being Mills' ratio: no
exponential of epsilon appears, so the results hold to epsilon 1e9 and beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_STEPS = 200
_CLOSE = 1e-13  # a step of Newton as short as this ends on the rounding of the solution


def compose(mus: ArrayLike) -> float:
    """The mu of several Gaussian releases about the same data seen together.

    Guarantees:
        exact, also when each release was chosen after seeing the earlier ones (Dong, Roth & Su 2022).
    """
    return float(np.sqrt(np.sum(np.square(np.asarray(mus, dtype=np.float64)))))


def delta_of(epsilon: float, mu: float) -> float:
    """The smallest delta for which a Gaussian release with `mu` is (epsilon, delta)-DP."""
    if mu == 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    return math.exp(_log_delta_at(epsilon, mu))


def epsilon_of(mu: float, delta: float) -> float:
    """The smallest epsilon for which a Gaussian release with `mu` is (epsilon, delta)-DP."""
    return float(epsilons_of([mu], delta)[0])


def epsilons_of(mus: Sequence[float] | NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """`epsilon_of` for many mus at once, all with the same delta.

    Guarantees:
        relative error below 1e-8; nondecreasing in mu; 0 where delta alone covers the release; infinite where mu is
        infinite or delta is zero.
    """
    mu = np.asarray(mus, dtype=np.float64)
    result = np.where(np.isinf(mu) | ((delta <= 0.0) & (mu > 0.0)), np.inf, 0.0)
    if delta <= 0.0:
        return result
    finite = np.isfinite(mu) & (mu > 0.0)
    open_mu = mu[finite]
    exact = np.zeros_like(open_mu)
    needs = _log_delta(open_mu / 2, open_mu) > math.log(delta)
    exact[needs] = _solve_epsilon(open_mu[needs], delta)
    result[finite] = exact
    return result


def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu that is still (epsilon, delta)-DP: the inverse of `epsilon_of`.

    Guarantees:
        `delta_of(epsilon, mu)` equals delta to a relative 1e-9; zero when delta is zero.
    """
    if delta <= 0.0:
        return 0.0
    target = math.log(delta)
    low, high = 0.0, 1.0
    while _log_delta_at(epsilon, high) < target:
        low, high = high, 2.0 * high
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if _log_delta_at(epsilon, middle) < target else (low, middle)
    return low


def classic_std(epsilon: float, delta: float, sensitivity: float) -> float:
    """Noise by the classic formula, `sensitivity sqrt(2 ln(1.25/delta)) / epsilon`.

    Guarantees:
        (epsilon, delta)-DP proved for epsilon < 1 only (Dwork & Roth 2014, A.1); too little above about 8.
    """
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def analytic_std(epsilon: float, delta: float, sensitivity: float, releases: int = 1) -> float:
    """The least noise for which `releases` releases together are (epsilon, delta)-DP (Balle & Wang 2018)."""
    return sensitivity * math.sqrt(releases) / mu_of(epsilon, delta)


def max_releases(epsilon: float, delta: float, noise_multiplier: float) -> int:
    """How many releases with that noise fit into (epsilon, delta), counted exactly."""
    return math.floor((mu_of(epsilon, delta) * noise_multiplier) ** 2 * (1.0 + 1e-12))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of a rho-zCDP mechanism, `rho + 2 sqrt(rho ln(1/delta))` (Bun & Steinke 2016)."""
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def _log_delta_at(epsilon: float, mu: float) -> float:
    return float(_log_delta(np.array([mu / 2 - epsilon / mu]), np.array([mu]))[0])


def _log_delta(a: NDArray[np.float64], mu: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln(Phi(a) - phi(a) R(mu - a)); for small a as ln phi(a) + ln(R(-a) - R(mu - a)), so that no tail underflows."""
    from scipy.special import ndtr

    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        log_density = -0.5 * np.square(a) - _LOG_SQRT_2PI
        tail = log_density + np.log(_mills(-a) - _mills(mu - a))
        body = np.log(ndtr(a) - np.exp(log_density) * _mills(mu - a))
    result: NDArray[np.float64] = np.where(a > 1.0, body, tail)
    return result


def _mills(x: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import erfcx

    ratio: NDArray[np.float64] = math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))
    return ratio


def _solve_epsilon(mu: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """Bisection safeguarding Newton on ln delta(a); a lies between the normal quantile of delta and mu/2."""
    from scipy.special import ndtri

    target = math.log(delta)
    low = np.full_like(mu, float(ndtri(delta)))
    high = mu / 2
    a = np.minimum(low + 0.5, 0.5 * (low + high))
    for _ in range(_STEPS):
        value = _log_delta(a, mu)
        above = value > target
        low, high = np.where(above, low, a), np.where(above, a, high)
        slope = mu * np.exp(-0.5 * np.square(a) - _LOG_SQRT_2PI - value) * _mills(mu - a)
        guess = a - (value - target) / slope
        # At the solution the guess is an end itself.
        inside = (guess >= low) & (guess <= high)
        following = np.where(inside, guess, 0.5 * (low + high))
        settled = np.abs(following - a) <= _CLOSE * (1.0 + np.abs(a))
        a = following
        if bool(np.all(settled)):
            break
    with np.errstate(over="ignore"):
        return np.maximum(mu * (mu / 2 - a), 0.0)
