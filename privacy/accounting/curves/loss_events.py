"""Privacy losses that are not Gaussian, as Renyi divergences, and their composition.

A release with Laplace, binomial or sparse-vector noise does not enter the Gaussian formula. It is an event with a Renyi
curve that holds for every pair of neighbours; curves of adaptively chosen releases add up (Mironov 2017).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Curve = NDArray[np.float64]
ORDERS: tuple[float, ...] = (
    *(1.0 + step / 16.0 for step in range(1, 48)),
    *(float(order) for order in range(4, 65)),
    *(float(1 << power) for power in range(7, 15)),
    math.inf,
)
"""Orders of all curves. The last one is the largest loss itself, so that pure guarantees compose by adding up."""


class LossEvent(Hashable, Protocol):
    """The privacy loss of one release against its receivers; equal for equal losses."""

    @property
    def tail(self) -> float:
        """Part of delta that one release takes for outcomes outside its curve."""

    def curve(self) -> Curve:
        """Returns its Renyi divergence at `ORDERS`, at most, for every pair of neighbours."""


@dataclass(frozen=True, slots=True)
class PureLoss:
    """A release that is epsilon-DP: randomised response with that epsilon dominates it (Kairouz et al. 2015)."""

    epsilon: float
    tail: float = 0.0

    def curve(self) -> Curve:
        """Returns the divergence of randomised response."""
        # p = e^eps/(1 + e^eps) in logarithms, so that a large epsilon does not overflow.
        high, low = -np.logaddexp(0.0, -self.epsilon), -np.logaddexp(0.0, self.epsilon)
        orders = np.array(ORDERS[:-1])
        both = np.logaddexp(orders * high + (1.0 - orders) * low, orders * low + (1.0 - orders) * high)
        return np.append(np.minimum(both / (orders - 1.0), self.epsilon), self.epsilon)


@dataclass(frozen=True, slots=True)
class LaplaceLoss:
    """Laplace noise on every coordinate; `ratio` is the L1 sensitivity divided by the scale.

    Guarantees:
        The curve is that of one coordinate moved by the whole L1 sensitivity, which dominates every other move: Laplace
        noise is log-concave, so moving on by h2 what was moved by h1 tells as much as one move by h1 + h2, and hybrids
        tell at least as much as moving two coordinates at once (docs/privacy.md).
    """

    ratio: float
    tail: float = 0.0

    def curve(self) -> Curve:
        """Returns the divergence of two Laplace distributions (Mironov 2017, Table II)."""
        orders = np.array(ORDERS[:-1])
        odd = 2.0 * orders - 1.0
        up = np.log(orders / odd) + (orders - 1.0) * self.ratio
        down = np.log((orders - 1.0) / odd) - orders * self.ratio
        return np.append(np.minimum(np.logaddexp(up, down) / (orders - 1.0), self.ratio), self.ratio)


@cache
def _curve_of(event: LossEvent) -> Curve:
    # Cached: a binomial curve takes a while, and a run asks for the same one after every round.
    return event.curve()


def composed_epsilon(mu2: float, counts: Iterable[tuple[LossEvent, int]], delta: float) -> float:
    """Returns epsilon of Gaussian releases with this mu^2 in total and of each event so often.

    Guarantees:
        (result, delta)-DP, by the conversion of Canonne, Kamath and Steinke (2020) at the best order.
    """
    orders = np.array(ORDERS)
    # An order of infinity with no Gaussian part has no Gaussian cost; 0 * inf would be NaN.
    total: Curve = orders * (mu2 / 2.0) if mu2 else np.zeros(len(orders))
    left = delta
    for event, count in counts:
        if count:
            total = total + count * _curve_of(event)
            left -= count * event.tail
    if not total.any():
        return 0.0
    if left <= 0.0:
        return math.inf
    finite = orders[:-1]
    added = np.log1p(-1.0 / finite) - (math.log(left) + np.log(finite)) / (finite - 1.0)
    return max(0.0, float(np.min(np.append(total[:-1] + added, total[-1]))))


def most_releases(event: LossEvent, epsilon: float, delta: float, most: int = 1_000_000) -> int:
    """Returns how many releases with this loss fit into (epsilon, delta)."""
    target = epsilon * (1.0 + 1e-9)  # rounding must not cost an exact fit a release
    low, high = 0, 1
    while high <= most and composed_epsilon(0.0, [(event, high)], delta) <= target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if composed_epsilon(0.0, [(event, middle)], delta) <= target:
            low = middle
        else:
            high = middle
    return low
