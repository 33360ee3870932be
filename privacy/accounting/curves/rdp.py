"""Renyi differential privacy: the standard orders, and conversion to (epsilon, delta)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

ORDERS: tuple[int, ...] = tuple(range(2, 257))


def plain_epsilon(order: float, rdp: float, delta: float) -> float:
    """`RDP + ln(1/delta)/(order-1)` (Mironov 2017, Proposition 3)."""
    return rdp + math.log(1.0 / delta) / (order - 1.0)


def improved_epsilon(order: float, rdp: float, delta: float) -> float:
    """`RDP + ln(1-1/order) - (ln delta + ln order)/(order-1)` (Balle et al. 2020; Canonne, Kamath & Steinke 2020).

    Guarantees:
        an (order, rdp)-RDP mechanism is (result, delta)-DP; never above `plain_epsilon`.
    """
    return rdp + math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)


def best_epsilon(rdp: NDArray[np.float64], delta: float, orders: tuple[int, ...] = ORDERS) -> tuple[float, int]:
    """Returns the smallest epsilon over the orders by the improved conversion, and the minimising order."""
    epsilons = rdp + _conversion(orders, delta)
    # The conversion can be negative for a large delta; epsilon is not.
    best = int(np.argmin(epsilons))
    return max(0.0, float(epsilons[best])), orders[best]


def gaussian_rdp(noise_multiplier: float) -> NDArray[np.float64]:
    """Returns the RDP of one Gaussian release at all `ORDERS`: `order / (2 z^2)`."""
    return np.array(ORDERS) / (2.0 * noise_multiplier**2)


def max_count(
    per_step: NDArray[np.float64], epsilon: float, delta: float, orders: tuple[int, ...] = ORDERS
) -> tuple[int, int]:
    """Returns the number of steps with that RDP that fit into (epsilon, delta), and the order that allows the most."""
    room = np.maximum(epsilon - _conversion(orders, delta), 0.0)
    with np.errstate(divide="ignore"):
        counts = room / per_step * (1.0 + 1e-12)  # an exact fit must not lose a step to rounding
    best = int(counts.argmax())
    return math.floor(counts[best]), orders[best]


def _conversion(orders: tuple[int, ...], delta: float) -> NDArray[np.float64]:
    """Returns the term that the improved conversion adds to RDP at each order."""
    alpha = np.array(orders, dtype=np.float64)
    added: NDArray[np.float64] = np.log1p(-1.0 / alpha) - (math.log(delta) + np.log(alpha)) / (alpha - 1.0)
    return added


def misprinted_epsilon(order: float, rdp: float, delta: float) -> float:
    """(C2) of the DP-GenFL supplement, which adds `ln order` instead of subtracting it (E-G03); larger, so valid."""
    return rdp + math.log1p(-1.0 / order) + (math.log(1.0 / delta) + math.log(order)) / (order - 1.0)
