"""Noise calibration: from a scenario's privacy settings to the noise of each client, before the run starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from privacy.calibration.published_rules import (
    NO_REHASH,
    NoiseFactor,
    PublishedRule,
    Theorem8Rule,
    constant_noise,
    theorem8_for,
    theorem8_notes,
)
from privacy.stages.api import UpdateShape
from privacy.stages.wire import DENSE, WireFormat

if TYPE_CHECKING:
    from privacy.accounting.curves.loss_events import LossEvent
    from privacy.settings import ResolvedBudget

NO_FORMULA = "no paper prints a formula for this noise"
_GIVEN = "sigma is given and no paper's formula is asked for (`privacy.budget.by: published` asks for Theorem 8)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """The parameters of a run that calibration needs; all are public and fixed before the first round.

    Attributes:
        clients: total number of clients, M.
        train_per_round: members of a cohort, m_tcs.
        exchange_with: messages each member sends in gossip, m_e; None otherwise.
        in_mean: updates that an aggregator waits for, its own included; None means the whole cohort's.
        rounds: planned global rounds, T.
        records: training records of each client.
        topology: how updates are combined.
        rehash: whether addresses change every round; Theorem 8 assumes it.
        selection: `first_come` is not sampling, so it gives no amplification.
        noise_factor: the schedule's factor on the noise of each round, as far as known when it is asked.
        shape: form of an update.
        budget: the run's budget; None if it does not matter.
    """

    clients: int
    train_per_round: int
    exchange_with: int | None
    rounds: int
    records: NDArray[np.int64]
    topology: Literal["gossip", "pseudo_central", "central"]
    rehash: bool = True
    selection: Literal["uniform", "first_come"] = "uniform"
    noise_factor: NoiseFactor = constant_noise
    shape: UpdateShape = field(default_factory=lambda: UpdateShape(1))
    budget: ResolvedBudget | None = None
    in_mean: int | None = None

    @property
    def rate(self) -> float:
        """Sampling rate for accounting: 1 unless the cohort is drawn uniformly."""
        return self.train_per_round / self.clients if self.selection == "uniform" else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePlan:
    """The noise of a run, and all else that its stages declare about a release.

    Attributes:
        noise_std: standard deviation of Gaussian noise added to each coordinate, for each client.
        clip_norm: bound on any client's update; infinite without clipping.
        sensitivity: L2 sensitivity of any client's update at client level, replace-one: twice the clip norm.
        own_sensitivity: that of each client, where clients have bounds of their own.
        published: accounting rule of the papers; None where there is none.
        unpublished: why there is none.
        view_share: fraction of a release's mu^2 that the budgeted view sees (1 for `local`).
        notes: conditions of the chosen formula that this run does not meet, one sentence each.
        losses: for noise that is not Gaussian, the privacy loss of one release of each client; empty otherwise.
        coordinate_std: standard deviation of any noise on a coordinate, for each client, where it is known beforehand.
        unaccounted: what leaves with a release and is not charged, or makes its noise depend on private data.
        wire: encoding of a release.
        kept: coordinates that a release sends; None means all.
        linear: whether a sum of releases hides each in the noise of the others.
    """

    noise_std: NDArray[np.float64]
    clip_norm: float
    sensitivity: float
    published: PublishedRule | None
    unpublished: str = NO_FORMULA
    view_share: float = 1.0
    notes: tuple[str, ...] = ()
    losses: tuple[LossEvent, ...] = ()
    coordinate_std: NDArray[np.float64] | None = None
    unaccounted: tuple[str, ...] = ()
    wire: WireFormat = DENSE
    kept: int | None = None
    linear: bool = True
    own_sensitivity: NDArray[np.float64] | None = None

    @property
    def sensitivities(self) -> NDArray[np.float64]:
        """L2 sensitivity of each client's update."""
        return np.full(len(self.noise_std), self.sensitivity) if self.own_sensitivity is None else self.own_sensitivity

    @property
    def stds(self) -> NDArray[np.float64]:
        """Standard deviation of any noise on a coordinate, for each client; zero where it is not known."""
        return self.noise_std if self.coordinate_std is None else self.coordinate_std

    @property
    def noised(self) -> bool:
        """Whether every client's releases have noise that is accounted for."""
        return bool(self.losses) or bool(self.noise_std.min() > 0.0)


def given_plan(std: float, clip_norm: float, context: PlanContext) -> NoisePlan:
    """Returns the plan for noise given in the scenario; Theorem 8 accounts for it only if the budget asks for it."""
    budget = context.budget
    # Without a bound 2 C sigma / n has no sigma, and no formula of a paper applies.
    if budget is None or budget.by != "published" or math.isinf(clip_norm):
        return _fixed_plan(std, clip_norm, None, context, ())
    theorem = theorem8_for(context, budget.delta)
    # Inverts std = 2 C sigma / n. The client with the fewest records has the smallest sigma, so its epsilon covers all.
    sigma = std * float(np.min(context.records, initial=np.iinfo(np.int64).max)) / (2.0 * clip_norm)
    rule = Theorem8Rule(theorem=theorem, sigma=sigma) if context.rehash else None
    plan = _fixed_plan(std, clip_norm, rule, context, theorem8_notes(context, theorem, sigma, budget.epsilon))
    # Shown only where there is no rule, that is without rehashing.
    return replace(plan, unpublished=NO_REHASH)


def _fixed_plan(
    std: float, clip_norm: float, rule: PublishedRule | None, context: PlanContext, notes: tuple[str, ...]
) -> NoisePlan:
    return NoisePlan(
        noise_std=np.full(context.clients, std),
        clip_norm=clip_norm,
        sensitivity=2.0 * clip_norm,
        published=rule,
        unpublished=_GIVEN,
        notes=notes,
    )
