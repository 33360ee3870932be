"""Noise of CDP with communication-rounds discounting (Wei et al.): as published, and corrected by its own moments.

Unit: record, `sensitivity = 2C/|D_i|` in the paper; at client level replace it by 2C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


def published_sigma(rate: float, sensitivity: float, rounds: float, epsilon: float, delta: float) -> float:
    """Theorem 1: `sensitivity sqrt(2 q T ln(1/delta)) / epsilon`. Too small by its own moments (E-C06)."""
    return sensitivity * math.sqrt(2.0 * rate * rounds * math.log(1.0 / delta)) / epsilon


def corrected_sigma(rate: float, sensitivity: float, rounds: float, epsilon: float, delta: float) -> float:
    """The sigma whose `rho = q T sensitivity^2/(2 sigma^2)` has `rho + 2 sqrt(rho ln(1/delta))` = epsilon."""
    log = math.log(1.0 / delta)
    # The positive root for sqrt(rho), rationalised: the difference of square roots would cancel for small epsilon.
    root_rho = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))
    return sensitivity * math.sqrt(rate * rounds / 2.0) / root_rho


def epsilon_by_own_moments(epsilon: float, delta: float) -> float:
    """The epsilon of the published sigma by the paper's own moments: `eps + eps^2 / (4 ln(1/delta))`."""
    return epsilon + epsilon**2 / (4.0 * math.log(1.0 / delta))


def best_moment(epsilon: float, delta: float) -> float:
    """The lambda of the paper's proof, `2 ln(1/delta)/eps - 1/2`; integer moments need it to be at least 1."""
    return 2.0 * math.log(1.0 / delta) / epsilon - 0.5


@dataclass(frozen=True, slots=True)
class Discounting:
    """A run with discounted rounds: sigma and planned T of each round, and the fraction of the budget spent."""

    sigmas: list[float]
    planned: list[float]
    budget_ratio: float

    @property
    def overspent(self) -> bool:
        """Whether the run spent more than the budget."""
        return self.budget_ratio > 1.0 + 1e-9  # tolerates rounding of the sum


def discounted_rounds(
    budget: float,
    rounds: float,
    discount: float,
    losses: Sequence[float],
    rounding: Literal["literal", "floor", "ceil"],
) -> Discounting:
    """Algorithm 2 with (19): whenever the loss did not fall in round t, `T <- beta^2 (T - t) + t`.

    Args:
        budget: `eps^2 / (2 q sensitivity^2 ln(1/delta))`, the limit of the sum of 1/sigma^2.
        losses: before round 0, after round 0, after round 1, ...; the run ends with the last one at the latest.
        rounding: `literal` keeps T real and overspends in the last round (E-C09).

    Guarantees:
        with `floor` or `ceil` the sum of 1/sigma^2 stays within the budget (a zCDP filter).
    """
    sigmas: list[float] = []
    planned: list[float] = []
    spent, t, total = 0.0, 0, float(rounds)
    while t < total and t + 1 < len(losses):
        # Spreads the remaining budget evenly over the remaining rounds.
        sigma = math.sqrt((total - t) / (budget - spent))
        sigmas.append(sigma)
        planned.append(total)
        spent += 1.0 / sigma**2
        if losses[t + 1] >= losses[t]:
            total = _rounded(discount**2 * (total - t) + t, t + 1, rounding)
        t += 1
    return Discounting(sigmas, planned, spent / budget)


def discounting_budget(rate: float, sensitivity: float, epsilon: float, delta: float) -> float:
    """Returns the limit of the sum of 1/sigma^2 over rounds."""
    return epsilon**2 / (2.0 * rate * sensitivity**2 * math.log(1.0 / delta))


def _rounded(total: float, least: int, rounding: str) -> float:
    if rounding == "literal":
        return total
    # At least the rounds already run: the budget of the current one is spent.
    whole = math.floor(total) if rounding == "floor" else math.ceil(total)
    return float(max(whole, least))
