"""The privacy loss of binomial noise on stochastically quantised vectors, computed rather than quoted.

Let x and x' be neighbours in units of the quantisation step, t_j = |x_j - x'_j|. Stochastic rounding with common
uniform numbers moves coordinate j by the integer floor(t_j) or floor(t_j) + 1, the latter with probability frac(t_j).
The moments E_Q (dP/dQ)^a are jointly convex, so those of the mixtures over the uniform numbers are at most their means,
and coordinates are independent: ln of the a-th moment is at most the sum over j of

    G(t_j) = ln( (1 - frac) e^{(a-1) R(floor t_j)} + frac e^{(a-1) R(floor t_j + 1)} ),

R(h) the Renyi divergence of order a between the binomial and itself moved by h, both ways, on outcomes within reach of
both; what is out of reach is in `tail`. With G(t) <= A t^2 + B t on [0, linf] the sum is at most A l2^2 + B l1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.curves.loss_events import ORDERS, Curve

TAIL = 1e-10
"""Probability that some coordinate's noise is out of reach, per release."""
_CELLS = 16
"""Cells per unit of t in which the inequality for G is checked."""


@dataclass(frozen=True, slots=True)
class BinomialLoss:
    """Noise `Bin(trials, 1/2)` on each of `dimension` integers after stochastic rounding.

    Attributes:
        l1, l2, linf: how far the vectors before rounding can move, in units of the step.

    Guarantees:
        The curve holds for all pairs of vectors within the three norms, up to outcomes of probability `tail`.
    """

    trials: int
    dimension: int
    l1: float
    l2: float
    linf: float
    tail: float = TAIL

    def curve(self) -> Curve:
        """Returns the divergences; infinite where the noise does not reach far enough to cover a move."""
        most = math.ceil(self.linf)
        log_pmf = _log_binomial(self.trials)
        reach = self._reach(log_pmf)
        # Outcomes within reach of the mean must be possible for both neighbours.
        if reach + most > self.trials / 2:
            return np.full(len(ORDERS), np.inf)
        orders = np.array(ORDERS[:-1])
        moments = np.array([_log_moment(log_pmf, shift, reach, orders) for shift in range(most + 1)])
        found = np.array([self._bounded(moments[:, place]) for place in range(len(orders))]) / (orders - 1.0)
        return np.append(found, np.inf)

    def _reach(self, log_pmf: Curve) -> int:
        """Returns the distance from the mean that no coordinate's noise exceeds but with probability `tail`."""
        # Both neighbours and both sides; half of the tail for each neighbour.
        allowed = self.tail / (2.0 * self.dimension)
        upper = np.cumsum(np.exp(log_pmf[::-1]))
        beyond = int(np.searchsorted(upper, allowed / 2.0))
        return math.ceil(self.trials / 2) - beyond

    def _bounded(self, moments: Curve) -> float:
        """Returns A l2^2 + B l1 for one order; `moments` is (a-1) R(h) for h = 0, 1, ..."""
        shifts = np.arange(1, len(moments))
        if len(shifts) == 0:
            return 0.0
        square = float(np.max(moments[1:] / shifts**2))
        starts = np.arange(_CELLS * len(shifts)) / _CELLS
        ends = starts + 1.0 / _CELLS
        # On a cell G is at most its value at the end, and A t^2 at least its value at the start.
        high, low = self._rounded(moments, ends), square * starts**2
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = (high - low)[1:] / starts[1:]
        # On the first cell G(t) = ln(1 + t (e^m - 1)) <= t (e^m - 1).
        linear = max(float(np.expm1(min(moments[1], 700.0))), float(slopes.max(initial=0.0)), 0.0)
        return square * self.l2**2 + linear * self.l1

    def _rounded(self, moments: Curve, t: Curve) -> Curve:
        whole = np.minimum(np.floor(t), len(moments) - 2).astype(np.int64)
        part = t - whole
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log1p(-part) + moments[whole], np.log(part) + moments[whole + 1])


def _log_binomial(trials: int) -> Curve:
    from scipy.special import gammaln

    k = np.arange(trials + 1, dtype=np.float64)
    found: NDArray[np.float64] = gammaln(trials + 1.0) - gammaln(k + 1.0) - gammaln(trials - k + 1.0)
    return found - trials * math.log(2.0)


def _log_moment(log_pmf: Curve, shift: int, reach: int, orders: Curve) -> Curve:
    """Returns ln sum p(x)^a q(x)^(1-a) over outcomes within reach of p's mean, q being p moved by `shift`; at least 0.

    The noise is symmetric, so the move in the other direction has the same moments.
    """
    from scipy.special import logsumexp

    middle = (len(log_pmf) - 1) // 2
    low, high = max(middle - reach, shift), min(middle + reach, len(log_pmf) - 1)
    p, q = log_pmf[low : high + 1], log_pmf[low - shift : high + 1 - shift]
    found: Curve = logsumexp(orders[:, None] * p + (1.0 - orders[:, None]) * q, axis=1)
    return np.maximum(found, 0.0)
