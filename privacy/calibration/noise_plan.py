"""Noise calibration: from a scenario's privacy settings to the noise of each client, before the run starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError
from privacy.calibration.published_rules import (
    NoiseFactor,
    PublishedRule,
    Theorem8Rule,
    constant_noise,
    theorem8_for,
    theorem8_notes,
)

if TYPE_CHECKING:
    from privacy.settings import Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """The parameters of a run that calibration needs; all are public and fixed before the first round.

    Attributes:
        clients: total number of clients, M.
        train_per_round: members of a cohort, m_tcs.
        exchange_with: messages each member sends in gossip, m_e; None otherwise.
        rounds: planned global rounds, T.
        records: training records of each client.
        topology: how updates are combined.
        rehash: whether addresses change every round; Theorem 8 assumes it.
        selection: `first_come` is not sampling, so it gives no amplification.
        noise_factor: the schedule's factor on the noise of each round, as far as known when it is asked.
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

    @property
    def rate(self) -> float:
        """Sampling rate for accounting: 1 unless the cohort is drawn uniformly."""
        return self.train_per_round / self.clients if self.selection == "uniform" else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePlan:
    """The noise of a run.

    Attributes:
        noise_std: standard deviation added to each coordinate, for each client.
        clip_norm: bound on an update's norm; infinite without clipping.
        sensitivity: L2 sensitivity of an update at client level, replace-one: twice the clip norm.
        published: accounting rule of the papers; None where it does not apply.
        view_share: fraction of a release's mu^2 that the budgeted view sees (1 for `local`).
        notes: conditions of the chosen formula that this run does not meet, one sentence each.
    """

    noise_std: NDArray[np.float64]
    clip_norm: float
    sensitivity: float
    published: PublishedRule | None
    view_share: float = 1.0
    notes: tuple[str, ...] = ()


def plan_noise(privacy: Privacy, context: PlanContext) -> NoisePlan:
    """Returns the noise of a run: calibrated, given, or none.

    Raises:
        UserError: the settings contradict each other; lists all problems.
    """
    problems = privacy.problems()
    if problems:
        raise UserError(problems)
    clip_norm = privacy.clip_norm
    if privacy.calibration is not None:
        return privacy.calibration.plan(clip_norm, context)
    if privacy.noise_std is not None:
        return _given_plan(privacy, privacy.noise_std, clip_norm, context)
    return _fixed_plan(0.0, clip_norm, None, context, ("no accounted noise: rigorous epsilon is infinite",))


def _given_plan(privacy: Privacy, std: float, clip_norm: float, context: PlanContext) -> NoisePlan:
    """Returns the plan for noise given in the scenario; Theorem 8 accounts for it only if the budget asks for it."""
    budget = privacy.resolved_budget()
    if budget.by != "published" or math.isinf(clip_norm):
        return _fixed_plan(std, clip_norm, None, context, ())
    theorem = theorem8_for(context, budget.delta)
    # Inverts std = 2 C sigma / n. The client with the fewest records has the smallest sigma, so its epsilon covers all.
    sigma = std * float(np.min(context.records, initial=np.iinfo(np.int64).max)) / (2.0 * clip_norm)
    rule = Theorem8Rule(theorem=theorem, sigma=sigma) if context.rehash else None
    notes = theorem8_notes(context, theorem, sigma, budget.epsilon)
    return _fixed_plan(std, clip_norm, rule, context, notes)


def _fixed_plan(
    std: float, clip_norm: float, rule: PublishedRule | None, context: PlanContext, notes: tuple[str, ...]
) -> NoisePlan:
    if math.isinf(clip_norm):
        notes = (*notes, "updates are not clipped: sensitivity and rigorous epsilon are infinite")
    return NoisePlan(
        noise_std=np.full(context.clients, std),
        clip_norm=clip_norm,
        sensitivity=2.0 * clip_norm,
        published=rule,
        notes=notes,
    )
