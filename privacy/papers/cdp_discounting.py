"""Noise of CDP with communication-rounds discounting (Wei et al.): as published, and corrected by its own moments.

Unit: record, `sensitivity = 2C/|D_i|` in the paper; at client level replace it by 2C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from privacy.accounting.curves.zcdp import zcdp_budget

Rounding = Literal["literal", "floor", "ceil"]


def published_sigma(rate: float, sensitivity: float, rounds: float, epsilon: float, delta: float) -> float:
    """Theorem 1: `sensitivity sqrt(2 q T ln(1/delta)) / epsilon`. Too small by its own moments (E-C06)."""
    # The rate enters linearly: un-amplified cost of the average client, which is drawn in q T rounds (E-C03).
    return sensitivity * math.sqrt(2.0 * rate * rounds * math.log(1.0 / delta)) / epsilon


def corrected_sigma(rate: float, sensitivity: float, rounds: float, epsilon: float, delta: float) -> float:
    """The sigma whose `rho = q T sensitivity^2/(2 sigma^2)` has `rho + 2 sqrt(rho ln(1/delta))` = epsilon."""
    return sensitivity * math.sqrt(rate * rounds / 2.0) / math.sqrt(zcdp_budget(epsilon, delta))


def epsilon_by_own_moments(epsilon: float, delta: float) -> float:
    """The epsilon of the published sigma by the paper's own moments: `eps + eps^2 / (4 ln(1/delta))`."""
    return epsilon + epsilon**2 / (4.0 * math.log(1.0 / delta))


def best_moment(epsilon: float, delta: float) -> float:
    """The lambda of the paper's proof, `2 ln(1/delta)/eps - 1/2`; integer moments need it to be at least 1."""
    return 2.0 * math.log(1.0 / delta) / epsilon - 0.5


@dataclass(frozen=True, slots=True)
class DiscountedRun:
    """A run with discounted rounds: sigma and planned T of each round, and the fraction of the budget spent."""

    sigmas: list[float]
    planned: list[float]
    budget_ratio: float

    @property
    def overspent(self) -> bool:
        """Whether the run spent more than the budget."""
        return self.budget_ratio > 1.0 + 1e-9  # tolerates rounding of the sum


@dataclass(slots=True)
class RoundsDiscounting:
    """Algorithm 2 with (19), one round at a time: `T <- beta^2 (T - t) + t` whenever the loss did not fall in round t.

    Attributes:
        budget: the limit of the sum of 1/sigma^2.
        planned: T, how many rounds are planned now.
        discount: beta.
        rounding: `literal` keeps T real and overspends in the last round (E-C09).
        done: t, how many rounds are over; the paper counts them from 0.
        spent: the sum of 1/sigma^2 over them.
        sigma: of the coming round.

    Guarantees:
        with `floor` or `ceil` the sum of 1/sigma^2 stays within the budget (a zCDP filter). An unchanged T leaves sigma
        unchanged to the bit.
    """

    budget: float
    planned: float
    discount: float
    rounding: Rounding
    done: int = 0
    spent: float = 0.0
    sigma: float = field(init=False)

    def __post_init__(self) -> None:
        self.sigma = self._spread()

    @property
    def over(self) -> bool:
        """Whether no round is left."""
        return not self.done < self.planned

    def finish(self, *, discounts: bool) -> None:
        """Ends the current round; `discounts` says that the loss did not fall in it."""
        # Before sigma changes: this is what the round that ends has cost.
        self.spent += 1.0 / self.sigma**2
        t, self.done = self.done, self.done + 1
        before = self.planned
        if discounts:
            # The paper counts rounds from 0, so t is the number of those before this one.
            self.planned = _rounded(self.discount**2 * (self.planned - t) + t, self.done, self.rounding)
        # Recomputed only then: the quotient of an unchanged T differs from the old sigma by rounding.
        if self.planned != before and not self.over:
            self.sigma = self._spread()

    def _spread(self) -> float:
        """Spreads the remaining budget evenly over the remaining rounds."""
        # From n / sigma^2 = rest: (19) solved for the sigma of the coming rounds.
        return math.sqrt((self.planned - self.done) / (self.budget - self.spent))


def discounted_rounds(
    budget: float, rounds: float, discount: float, losses: Sequence[float], rounding: Rounding
) -> DiscountedRun:
    """Runs Algorithm 2 on given losses.

    Args:
        budget: `eps^2 / (2 q sensitivity^2 ln(1/delta))`, the limit of the sum of 1/sigma^2.
        losses: before round 0, after round 0, after round 1, ...; the run ends with the last one at the latest.
    """
    sigmas: list[float] = []
    planned: list[float] = []
    run = RoundsDiscounting(budget, float(rounds), discount, rounding)
    while not run.over and run.done + 1 < len(losses):
        sigmas.append(run.sigma)
        planned.append(run.planned)
        # An equal loss has not fallen.
        run.finish(discounts=losses[run.done + 1] >= losses[run.done])
    return DiscountedRun(sigmas, planned, run.spent / budget)


def discounting_budget(rate: float, sensitivity: float, epsilon: float, delta: float) -> float:
    """Returns the limit of the sum of 1/sigma^2 over rounds."""
    return epsilon**2 / (2.0 * rate * sensitivity**2 * math.log(1.0 / delta))


def _rounded(total: float, least: int, rounding: str) -> float:
    if rounding == "literal":
        return total
    # At least the rounds already run: the budget of the current one is spent.
    whole = math.floor(total) if rounding == "floor" else math.ceil(total)
    return float(max(whole, least))
