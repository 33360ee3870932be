"""Formulas of DP-FedASGP: the selection of noised coordinates, client weights, and the division of epsilon.

None of them gives differential privacy: coordinates below the threshold are sent exactly (E-A01).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def threshold(values: NDArray[np.float64], round_number: int, rounds: int) -> float:
    """(14): order statistic number `min(max(1, ceil(t d/T)), ceil(0.9 d))`, counted from 1, ascending."""
    rank = rank_of(len(values), round_number, rounds)
    return float(np.partition(values, rank - 1)[rank - 1])


def rank_of(d: int, round_number: int, rounds: int) -> int:
    """Returns the rank of (14) among d values, counted from 1."""
    # ceil(0.9 d) in integers, since the float product can land just above a whole number.
    return min(max(1, math.ceil(round_number * d / rounds)), -(-9 * d // 10))


def weights(records: NDArray[np.float64], losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """(16): `(n_i L + n L_i) / (2 n L)`, half by records and half by loss; they sum to one."""
    result: NDArray[np.float64] = 0.5 * (records / records.sum() + losses / losses.sum())
    return result


def sigma_eq2(epsilon: float, sensitivity: float) -> float:
    """(2): the classic Gaussian formula with delta replaced by e^-epsilon (E-A05)."""
    # ln(1.25/delta) with delta = e^-epsilon.
    return sensitivity / epsilon * math.sqrt(2.0 * (math.log(1.25) + epsilon))


@dataclass(frozen=True, slots=True)
class SvtScales:
    """Laplace scales of one sparse vector round: the query's, the threshold's, the released value's."""

    query: float
    threshold: float
    value: float


@dataclass(frozen=True, slots=True)
class SvtBudget:
    """Epsilon divided for the query (`eps1`), the threshold (`eps2`) and the values (`eps3`); `positives` is q."""

    eps1: float
    eps2: float
    eps3: float
    positives: float

    def as_text(self, sensitivity: float) -> SvtScales:
        """The scales in the text around (13): all multiplied by q."""
        scale = self.positives * sensitivity
        # As printed; the threshold's noise needs no q and the query's a factor 2 (E-A04).
        return SvtScales(scale / self.eps1, scale / self.eps2, scale / self.eps3)

    def as_algorithm(self, sensitivity: float) -> SvtScales:
        """The scales in Algorithm 1: query and threshold without q."""
        return SvtScales(sensitivity / self.eps1, sensitivity / self.eps2, self.positives * sensitivity / self.eps3)

    def sound(self, sensitivity: float) -> SvtScales:
        """Standard sparse vector with at most q positives (Lyu, Su & Li 2017).

        Guarantees:
            `eps1 + eps2 + eps3`-DP if it stops after q positives, releases nothing else, and its threshold does not
            depend on the data.
        """
        # The factor 2 covers queries that are not monotone.
        scale = self.positives * sensitivity
        return SvtScales(2.0 * scale / self.eps1, sensitivity / self.eps2, scale / self.eps3)


def divide_budget(epsilon: float, value_fraction: float, positives: float) -> SvtBudget:
    """`eps3` takes the fraction; the rest is divided `eps1 : eps2 = q^(2/3) : 1`."""
    eps3 = value_fraction * epsilon
    rest, ratio = epsilon - eps3, positives ** (2.0 / 3.0)
    return SvtBudget(rest * ratio / (ratio + 1.0), rest / (ratio + 1.0), eps3, positives)
