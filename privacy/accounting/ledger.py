"""Privacy ledgers: each client accounts for its own spending, charged when a noisy vector is first sent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privacy.accounting.curves.zcdp import zcdp_budget
from privacy.calibration.published_rules import NoiseFactor, constant_noise
from privacy.settings import By

if TYPE_CHECKING:
    from privacy.accounting.curves.loss_events import LossEvent
    from privacy.calibration.noise_plan import NoisePlan
    from privacy.calibration.published_rules import PublishedRule
    from privacy.settings import Privacy

# Relative tolerance on mu^2: sums of equal releases must reach their limit in spite of rounding.
SLACK = 1e-9


class LedgerError(Exception):
    """A protocol attempted a release beyond the budget; a programming error, never a user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRule:
    """The limits of a ledger; one object serves all clients with the same budget.

    Attributes:
        by: the quantity that is limited.
        delta: failure probability of the reported epsilons.
        published: the paper's rule; None where none applies.
        max_round: the last global round that `published` allows.
        mu2_limit: the largest sum of mu^2 that `rigorous` allows.
        view_share: the part of a release's mu^2 that the budgeted view sees.
        loss: of one release, if its noise is not Gaussian.
        max_releases: how many such releases `rigorous` allows.
        noise_factor: the schedule's factor on the noise of each round.
        report_mu2: what a client spends with each release on the loss that it reports.
    """

    by: By
    delta: float
    published: PublishedRule | None = None
    max_round: float = math.inf
    mu2_limit: float = math.inf
    view_share: float = 1.0
    loss: LossEvent | None = None
    max_releases: float = math.inf
    noise_factor: NoiseFactor = constant_noise
    report_mu2: float = 0.0


def ledger_rule(
    privacy: Privacy,
    plan: NoisePlan,
    own_epsilon: float | None = None,
    loss: LossEvent | None = None,
    *,
    noise_factor: NoiseFactor = constant_noise,
    filtered: bool = False,
    report_mu2: float = 0.0,
) -> LedgerRule:
    """Returns the rule of a run; solves for its limits once, so that a million ledgers take no further computation.

    Args:
        own_epsilon: budget of a class of clients; the section's epsilon unless given.
        loss: of one release, if its noise is not Gaussian.
        filtered: whether later noise depends on earlier outputs: the limit is then that of a zCDP filter.
        noise_factor, report_mu2: see `LedgerRule`.
    """
    from privacy.accounting.curves.loss_events import most_releases

    # Where no published rule applies, `by: published` limits nothing, and `max_round` stays infinite.
    by, epsilon, delta = privacy.resolved_budget()
    epsilon = epsilon if own_epsilon is None else own_epsilon
    counted = by == "published" and plan.published is not None
    return LedgerRule(
        by=by,
        delta=delta,
        published=plan.published,
        max_round=plan.published.max_rounds(epsilon) if counted and plan.published else math.inf,
        mu2_limit=_mu2_limit(epsilon, delta, filtered) if by == "rigorous" else math.inf,
        view_share=plan.view_share,
        loss=loss,
        max_releases=most_releases(loss, epsilon, delta) if by == "rigorous" and loss is not None else math.inf,
        noise_factor=noise_factor,
        report_mu2=report_mu2,
    )


def _mu2_limit(epsilon: float, delta: float, filtered: bool) -> float:
    from privacy.accounting.curves.gaussian import mu_of

    # A release with mu is mu^2/2-zCDP.
    return 2.0 * zcdp_budget(epsilon, delta) if filtered else mu_of(epsilon, delta) ** 2


class Ledger:
    """One client's privacy account.

    Rounds are numbered from 1. Releases are charged in the order of their numbers (the client's noise counter).

    Guarantees:
        The charged total never exceeds the rule by more than a relative 1e-9 of mu^2 (rigorous), and no release is
        charged after the last allowed round (published). A failed charge leaves the ledger unchanged. Sending
        identical bytes again is free. A release is charged even if it never arrives.
    """

    __slots__ = ("last_number", "last_round", "mu2", "planned_mu2", "releases", "rule")

    def __init__(self, rule: LedgerRule, noise_std: float, sensitivity: float) -> None:
        self.rule = rule
        self.planned_mu2 = self._cost(noise_std, sensitivity)
        self.mu2 = 0.0
        self.releases = 0
        self.last_round = 0
        self.last_number = -1

    def may_release(self, round_number: int) -> bool:
        """Returns whether one more release with the planned noise, in that round, stays within the budget."""
        planned = self.planned_mu2 / self.rule.noise_factor(round_number) ** 2
        return self._allows(round_number, planned + self.rule.report_mu2)

    def charge(self, round_number: int, noise_std: float, sensitivity: float, number: int | None = None) -> bool:
        """Charges one release; returns False if release `number` has been charged before.

        Raises:
            LedgerError: the release would exceed the budget; nothing is charged.
        """
        # Numbers only grow, so an equal or smaller one is a retransmission of the same noisy vector.
        if number is not None and number <= self.last_number:
            return False
        cost = self._cost(noise_std, sensitivity) + self.rule.report_mu2
        if not self._allows(round_number, cost):
            raise LedgerError(f"release {self.releases + 1} in round {round_number} would exceed the budget")
        self.mu2 += cost
        self.releases += 1
        self.last_round = max(self.last_round, round_number)
        self.last_number = self.last_number + 1 if number is None else number
        return True

    @property
    def published_epsilon(self) -> float | None:
        """Epsilon by the paper's rule after the last charged round; None where no rule applies."""
        return self.rule.published.epsilon_after(self.last_round) if self.rule.published else None

    @property
    def budget_left(self) -> float:
        """Fraction of the budget left: of the rounds (published) or of mu^2 (rigorous); NaN without a budget."""
        if self.rule.by == "published":
            return max(0.0, 1.0 - self.last_round / self.rule.max_round) if self.rule.max_round else 0.0
        if self.rule.by == "rigorous" and self.rule.loss is not None:
            return max(0.0, 1.0 - self.releases / self.rule.max_releases) if self.rule.max_releases else 0.0
        if self.rule.by == "rigorous":
            return max(0.0, 1.0 - self.mu2 * self.rule.view_share / self.rule.mu2_limit)
        return math.nan

    @property
    def exhausted_from(self) -> float:
        """First round without a further release, as far as known now; infinite while releases remain."""
        if self.rule.by == "published":
            return self.rule.max_round + 1  # known from the start, unlike the round of the last affordable release
        return math.inf if self.may_release(self.last_round + 1) else self.last_round + 1

    def _cost(self, noise_std: float, sensitivity: float) -> float:
        """Returns mu^2 of a release; one whose noise is not Gaussian is counted instead."""
        return release_mu2(noise_std, sensitivity) if self.rule.loss is None else 0.0

    def _allows(self, round_number: int, cost: float) -> bool:
        # Published rules count global rounds, including those without this client.
        if self.rule.by == "published":
            return round_number <= self.rule.max_round
        if self.rule.by == "rigorous" and self.rule.loss is not None:
            return self.releases < self.rule.max_releases
        if self.rule.by == "rigorous":
            return (self.mu2 + cost) * self.rule.view_share <= self.rule.mu2_limit * (1.0 + SLACK)
        return True


def release_mu2(noise_std: float, sensitivity: float) -> float:
    """Returns mu^2 of one release; infinite without noise or without a bound on the update."""
    if noise_std <= 0.0 or math.isinf(sensitivity):
        return math.inf
    return (sensitivity / noise_std) ** 2
