"""The binomial mechanism of cpSGD (Agarwal et al. 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class BinomialNoise:
    """`Bin(trials, p) - trials p` on each of `dimension` integer coordinates."""

    trials: int
    p: float
    dimension: int = 1

    @property
    def variance(self) -> float:
        """`N p (1-p)`."""
        return self.trials * self.p * (1.0 - self.p)

    def variance_needed(self, delta: float, sensitivity_inf: float) -> float:
        """Theorem 1 is proved from this variance on: `max(23 ln(10 d/delta), 2 Delta_inf)`."""
        return max(23.0 * math.log(10.0 * self.dimension / delta), 2.0 * sensitivity_inf)

    def epsilon(self, delta: float, l1: float, l2: float, l_inf: float) -> float:
        """Epsilon by Theorem 1 with scale 1, for those sensitivities in units of the quantisation step.

        Guarantees:
            (epsilon, delta)-DP if the variance reaches `variance_needed`. Constants quoted from memory of the paper.
        """
        p, v = self.p, self.variance
        squares = p**2 + (1.0 - p) ** 2
        b = 2.0 / 3.0 * squares + 1.0 - 2.0 * p
        c = math.sqrt(2.0) * (3.0 * p**3 + 3.0 * (1.0 - p) ** 3 + 2.0 * squares)
        d = 4.0 / 3.0 * squares
        log, log10, log20 = (math.log(x / delta) for x in (1.25, 10.0, 20.0 * self.dimension))
        first = l2 * math.sqrt(2.0 * log) / math.sqrt(v)
        second = (l2 * c * math.sqrt(log10) + l1 * b) / (v * (1.0 - delta / 10.0))
        third = (2.0 / 3.0 * l_inf * log + l_inf * d * log20 * log10) / v
        return first + second + third

    def scalar_delta(self, shift: int, epsilon: float) -> float:
        """The delta of one coordinate moved by `shift`: hockey-stick divergence, the worse direction.

        Guarantees:
            exact to rounding: only outcomes 45 standard deviations away are left out.
        """
        from scipy.stats import binom

        middle, reach = self.trials * self.p, 45.0 * math.sqrt(self.variance) + 45.0 + 2 * abs(shift)
        x = np.arange(
            max(math.floor(middle - reach), -abs(shift)), min(math.ceil(middle + reach), self.trials + abs(shift)) + 1
        )
        here, there = binom.pmf(x, self.trials, self.p), binom.pmf(x - shift, self.trials, self.p)
        grown = math.exp(epsilon)
        ways = ((here, there), (there, here))
        return max(float(np.maximum(first - grown * second, 0.0).sum()) for first, second in ways)
