"""Accounting of the Poisson-sampled Gaussian mechanism by RDP and by privacy loss distributions, and its inversions.

Uses the dp-accounting library. Sampling amplifies privacy only for views that do not learn the sample (`model`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError
from privacy.accounting.curves.rdp import ORDERS, best_epsilon, max_count

_LEAST_LOG_Z = -12.0  # ends the search where delta alone covers the release at any noise
SEARCH_GRID = 3e-4
"""Grid of losses for searches with many evaluations; adds at most a relative 2e-4 to epsilon where measured."""
MOST_PLD_STEPS = 1_000_000
"""Beyond this many steps the losses of one step are finer than any affordable grid, and composition takes minutes."""
_MOST_POINTS = 2e5
_NEGLIGIBLE = 1e-15  # probability beyond which dp-accounting truncates a loss distribution
# A subset of ORDERS with growing steps, since epsilon changes little between neighbouring high orders.
_COARSE = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256)


@lru_cache(maxsize=256)
def poisson_rdp(rate: float, noise_multiplier: float, orders: tuple[int, ...] = ORDERS) -> NDArray[np.float64]:
    """Returns the RDP of one Poisson-sampled Gaussian step at each order (add/remove one client); cached and read-only.

    Guarantees:
        exact at integer orders (Mironov, Talwar & Zhang 2019).
    """
    import dp_accounting

    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise_multiplier))
    rdp = np.asarray(dp_accounting.rdp.RdpAccountant(orders).compose(step).rdp, dtype=np.float64)
    rdp.setflags(write=False)  # the cache hands the same array to all callers
    return rdp


def poisson_epsilon(rate: float, noise_multiplier: float, steps: int, delta: float) -> tuple[float, int]:
    """Returns epsilon by RDP after that many Poisson-sampled steps, and the minimising order.

    The search evaluates a coarse grid of orders, then all orders around its minimum; every order is valid.
    """
    best = best_epsilon(steps * poisson_rdp(rate, noise_multiplier, _COARSE), delta, _COARSE)[1]
    orders = _near(best)
    return best_epsilon(steps * poisson_rdp(rate, noise_multiplier, orders), delta, orders)


def max_poisson_steps(rate: float, noise_multiplier: float, epsilon: float, delta: float) -> int:
    """Returns the number of Poisson-sampled steps that fit into (epsilon, delta) by RDP."""
    best = max_count(poisson_rdp(rate, noise_multiplier, _COARSE), epsilon, delta, _COARSE)[1]
    orders = _near(best)
    return max_count(poisson_rdp(rate, noise_multiplier, orders), epsilon, delta, orders)[0]


@lru_cache(maxsize=1024)
def poisson_epsilon_pld(rate: float, noise_multiplier: float, steps: int, delta: float, grid: float = 1e-4) -> float:
    """Returns epsilon by privacy loss distributions (add/remove): tighter than RDP, and rounded up by the loss grid.

    For small epsilon the grid is refined to 2e-4 of the RDP value, where a fixed grid would be off by per cents. For
    very little noise it is coarsened to 1e-5 of that value, which bounds time and memory.

    Raises:
        UserError: more than MOST_PLD_STEPS steps.
    """
    import dp_accounting

    if steps > MOST_PLD_STEPS:
        raise UserError(
            f"{steps} steps: privacy loss distributions are computed for up to {MOST_PLD_STEPS}; use accountant rdp"
        )

    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise_multiplier))
    interval = loss_interval(rate, noise_multiplier, steps, delta, grid)
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=interval)
    return float(accountant.compose(step, steps).get_epsilon(delta))


def loss_interval(rate: float, noise_multiplier: float, steps: int, delta: float, grid: float) -> float:
    """Returns the distance of losses on the grid of `poisson_epsilon_pld`, around `grid`."""
    scale = _coarse_epsilon(rate, noise_multiplier, steps, delta)
    widest = _coarse_epsilon(rate, noise_multiplier, steps, _NEGLIGIBLE)
    # The last two bounds limit the grid's size if epsilon is close to 0, also where delta is so large that losses
    # extend far beyond epsilon.
    return max(min(grid, 2e-4 * scale), 1e-5 * scale, widest / _MOST_POINTS, 5e-6)


def calibrated_multiplier(
    rate: float, steps: int, epsilon: float, delta: float, accountant: Literal["rdp", "pld"] = "rdp"
) -> float:
    """Returns the smallest noise multiplier for which that many Poisson-sampled steps meet (epsilon, delta).

    Guarantees:
        meets the target by the named accountant; at most a relative 1e-6 (rdp) or 1e-3 (pld) too large, or below
        1e-5, where sampling is so rare that delta alone covers it.
    """
    # A cheap coarse solution brackets the expensive exact one.
    guess = _smallest(lambda z: _coarse_epsilon(rate, z, steps, delta), epsilon, 1e-3, 1.0, 4.0)
    if accountant == "pld":
        return _smallest(lambda z: poisson_epsilon_pld(rate, z, steps, delta, SEARCH_GRID), epsilon, 1e-3, guess, 1.1)
    return _smallest(lambda z: poisson_epsilon(rate, z, steps, delta)[0], epsilon, 1e-6, guess, 1.01)


def max_steps(epsilon_after: Callable[[int], float], epsilon: float, guess: int, most: int) -> int:
    """Returns the largest number of steps, up to `most`, whose epsilon stays within `epsilon`.

    `epsilon_after` must not decrease, and is asked about at most `most` steps.

    Each step extrapolates epsilon as a power of the number of steps, so that a fair guess needs few evaluations.
    """
    # Composition of Gaussians grows like steps^0.5 for small epsilon and steps^1 for large: 0.6 is a fair start.
    low, high, step, power = 0, most + 1, min(max(guess, 1), most), 0.6
    seen: dict[int, float] = {}
    while high - low > 1:
        seen[step] = max(epsilon_after(step), 1e-300)
        low, high = (step, high) if seen[step] <= epsilon else (low, step)
        if low in seen and high in seen:
            power = max(math.log(seen[high] / seen[low]) / math.log(high / low), 0.1)
        ratio = min(max((epsilon / seen[step]) ** (1.0 / power), 0.1), 10.0)
        # Strictly inside the bracket, so that every evaluation shrinks it.
        step = min(max(math.floor(step * ratio), low + 1), high - 1)
    return low


def _near(order: int) -> tuple[int, ...]:
    """Returns all orders between the coarse neighbours of a coarse order."""
    index = _COARSE.index(order)
    return tuple(range(_COARSE[max(index - 1, 0)], _COARSE[min(index + 1, len(_COARSE) - 1)] + 1))


def _coarse_epsilon(rate: float, z: float, steps: int, delta: float) -> float:
    """Returns epsilon by RDP at few orders: a quick upper bound."""
    return best_epsilon(steps * poisson_rdp(rate, z, _COARSE), delta, _COARSE)[0]


def _smallest(
    epsilon_with: Callable[[float], float], epsilon: float, precision: float, guess: float, factor: float
) -> float:
    """Solves epsilon(z) = epsilon for z near `guess`, in logarithms, rounded up so that the target is met."""
    from scipy.optimize import brentq

    def excess(log_z: float) -> float:
        # In logarithms epsilon(z) is nearly linear, which suits the root finder; epsilon itself may be 0.
        return math.log(max(epsilon_with(math.exp(log_z)), 1e-300) / epsilon)

    width = math.log(factor)
    low, high = math.log(guess) - width, math.log(guess) + width
    while excess(high) > 0.0:
        low, high = high, high + width
    while low > _LEAST_LOG_Z and excess(low) <= 0.0:
        low, high = low - width, low
    if excess(low) <= 0.0:
        return math.exp(low)
    z = math.exp(brentq(excess, low, high, xtol=precision / 4))
    # The root is found to within the precision on either side; step up until the target surely holds.
    while epsilon_with(z) > epsilon:
        z *= 1.0 + precision / 4
    return z
