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
        """Returns the least variance for which Theorem 1 is proved: `max(23 ln(10 d/delta), 2 Delta_inf)`."""
        return max(23.0 * math.log(10.0 * self.dimension / delta), 2.0 * sensitivity_inf)

    def epsilon(self, delta: float, l1: float, l2: float, l_inf: float) -> float:
        """Returns epsilon by Theorem 1 with scale 1, for sensitivities in units of the quantisation step.

        Guarantees:
            (epsilon, delta)-DP if the variance reaches `variance_needed`. The constants are quoted from memory, not
            checked against the paper.
        """
        p, v = self.p, self.variance
        # b, c and d are the constants b_p, c_p and d_p of the theorem.
        squares = p**2 + (1.0 - p) ** 2
        b = 2.0 / 3.0 * squares + 1.0 - 2.0 * p
        c = math.sqrt(2.0) * (3.0 * p**3 + 3.0 * (1.0 - p) ** 3 + 2.0 * squares)
        d = 4.0 / 3.0 * squares
        log, log10, log20 = (math.log(x / delta) for x in (1.25, 10.0, 20.0 * self.dimension))
        # The first term is that of Gaussian noise of the same variance; the others pay for the discreteness.
        first = l2 * math.sqrt(2.0 * log) / math.sqrt(v)
        second = (l2 * c * math.sqrt(log10) + l1 * b) / (v * (1.0 - delta / 10.0))
        third = (2.0 / 3.0 * l_inf * log + l_inf * d * log20 * log10) / v
        return first + second + third

    def scalar_delta(self, shift: int, epsilon: float) -> float:
        """Returns the delta of one coordinate moved by `shift`: the larger hockey-stick divergence of both directions.

        Guarantees:
            exact up to rounding: only outcomes 45 standard deviations away are left out.
        """
        from scipy.stats import binom

        # The range covers both distributions; it is bounded, since `trials` can be too large to enumerate.
        mean, reach = self.trials * self.p, 45.0 * math.sqrt(self.variance) + 45.0 + 2 * abs(shift)
        x = np.arange(
            max(math.floor(mean - reach), -abs(shift)), min(math.ceil(mean + reach), self.trials + abs(shift)) + 1
        )
        pmf, shifted_pmf = binom.pmf(x, self.trials, self.p), binom.pmf(x - shift, self.trials, self.p)
        factor = math.exp(epsilon)
        directions = ((pmf, shifted_pmf), (shifted_pmf, pmf))
        # The two directions differ unless p is 1/2.
        return max(float(np.maximum(first - factor * second, 0.0).sum()) for first, second in directions)
