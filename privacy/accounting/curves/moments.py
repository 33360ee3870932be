"""Older accountants used in the papers: advanced composition and the moments accountant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.curves.poisson_sampling import poisson_rdp


@dataclass(frozen=True, slots=True)
class LogMoments:
    """`alpha(lambda) = lambda RDP(lambda+1)` of one Poisson-sampled Gaussian step, for lambda = 1..lambda_max.

    Guarantees:
        the moments accountant of Abadi et al. 2016; valid, and looser than the improved RDP conversion.
    """

    per_step: NDArray[np.float64]

    def epsilon(self, steps: int, delta: float) -> tuple[float, int]:
        """Returns `min (steps alpha(lambda) + ln(1/delta)) / lambda` and the minimising lambda."""
        values = (steps * self.per_step + math.log(1.0 / delta)) / self._orders()
        return float(values.min()), int(values.argmin()) + 1

    def log10_delta(self, steps: int, epsilon: float) -> tuple[float, int]:
        """Returns log10 of `min exp(steps alpha(lambda) - lambda epsilon)` and the minimising lambda."""
        # A logarithm, since delta itself can underflow.
        values = steps * self.per_step - self._orders() * epsilon
        return float(values.min()) / math.log(10.0), int(values.argmin()) + 1

    def _orders(self) -> NDArray[np.float64]:
        return np.arange(1, len(self.per_step) + 1, dtype=np.float64)


def log_moments(rate: float, noise_multiplier: float, lambda_max: int = 32) -> LogMoments:
    """Returns the log moments of one step."""
    orders = tuple(range(2, lambda_max + 2))
    return LogMoments(np.arange(1, lambda_max + 1) * poisson_rdp(rate, noise_multiplier, orders))


def advanced_composition(epsilon: float, count: int, slack: float) -> float:
    """Returns epsilon of `count` (epsilon, delta)-DP steps; `slack` adds to their deltas (Dwork & Roth 2014, 3.20)."""
    return _composed(epsilon, count, 2.0 * count * math.log(1.0 / slack))


def printed_composition(epsilon: float, count: int, slack: float) -> float:
    """(2.23) of Weng (2025), too small since a factor 2 is missing under the root (E-T01); kept for comparison."""
    return _composed(epsilon, count, count * math.log(1.0 / slack))


def _composed(epsilon: float, count: int, under_root: float) -> float:
    return epsilon * math.sqrt(under_root) + count * epsilon * math.expm1(epsilon)
