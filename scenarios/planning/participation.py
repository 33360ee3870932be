"""Projects the rounds of a run: cohorts, edges, and the round in which the budgets end it.

Cohorts, leaders and graphs depend on the seed alone, so they equal the run's own if all clients are online.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodes.protocols.api import RoundContext, RoundPlan
from nodes.protocols.rotating_leader import RotatingLeader
from nodes.proxy.cohort_selection import choose_cohort
from nodes.proxy.round_state import with_record_shares
from nodes.schedules.fixed import RunSchedule
from p2p.log.records import NO_NODE
from privacy.accounting.ledger import SLACK, LedgerRule
from scenarios.node_numbers import SERVER
from scenarios.schema import Scenario

Ids = NDArray[np.int64]
# Limits on the cohorts and edges a plan draws, reached within a few seconds. Longer runs are extrapolated.
_MOST_DRAWS, _MOST_ROUNDS = 3e6, 5000
_MOST_EDGES, _MOST_ARRANGED = 1e6, 1000


@dataclass(slots=True)
class PlannedRound:
    """One projected round: its cohort, the members that release an update, and all edges by kind."""

    number: int
    members: Ids
    releasing: Ids
    round_plan: RoundPlan
    declining: int = 0


@dataclass(slots=True)
class Rehearsal:
    """The projected run.

    Attributes:
        rounds: rounds that will be completed.
        stopped_in: the round that cannot take place; None if all can.
        why: the reason for the end, worded as in a run.
        participations: how often each client takes part; expected values where extrapolated.
        first_exhaustion: the first round in which a client has no budget left; None if there is none.
        arranged: the rounds projected edge by edge: all of them, or the first few.
        extrapolated: whether the run was too long to project every round.
    """

    rounds: int
    stopped_in: int | None
    why: str
    participations: NDArray[np.float64]
    first_exhaustion: int | None
    arranged: list[PlannedRound] = field(default_factory=list)
    extrapolated: bool = False


def project_participation(
    scenario: Scenario,
    rules: Sequence[LedgerRule],
    release_mu2: NDArray[np.float64],
    schedule: RunSchedule,
    most_trainings: int | None = None,
) -> Rehearsal:
    """Projects the rounds; without privacy `rules` is empty and `release_mu2` unused.

    A schedule that reads losses is projected with the rounds planned at first.

    Args:
        most_trainings: trainings that the budget of clients' records allows; None without limit.
    """
    limits = ParticipationLimits.of(scenario.clients, rules, release_mu2)
    if most_trainings is not None:
        limits = ParticipationLimits(limits.last_round, np.minimum(limits.releases, most_trainings))
    planned = int(min(scenario.rounds, schedule.planned_rounds()))
    most = int(min(planned, _MOST_ROUNDS, max(3.0, _MOST_DRAWS / scenario.clients)))
    found = _project(scenario, limits, most)
    if found.stopped_in is None and found.rounds < planned:
        _extrapolate(found, scenario, limits, planned)
    # Budgets that end the run earlier than the schedule does are the reason that is told.
    if found.stopped_in is None and planned < scenario.rounds:
        found.stopped_in, found.why = planned + 1, schedule.why_over(planned + 1)
    return found


@dataclass(frozen=True, slots=True)
class ParticipationLimits:
    """Participation limits of each client: its last round, and its number of releases."""

    last_round: NDArray[np.float64]
    releases: NDArray[np.float64]

    @classmethod
    def of(cls, clients: int, rules: Sequence[LedgerRule], release_mu2: NDArray[np.float64]) -> ParticipationLimits:
        """Derives the limits from each client's ledger rule; without rules there are none."""
        if not rules:
            return cls(np.full(clients, np.inf), np.full(clients, np.inf))
        fits = [releases_allowed(rule, float(cost)) for rule, cost in zip(rules, release_mu2, strict=True)]
        return cls(np.array([rule.max_round for rule in rules], dtype=np.float64), np.array(fits))

    def eligible(self, round_number: int, done: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Returns which clients may make one more release in that round."""
        return (round_number <= self.last_round) & (done < self.releases)


def releases_allowed(rule: LedgerRule, release_mu2: float) -> float:
    """Returns how many releases of that mu^2 a ledger allows; infinite where it does not count them."""
    if rule.by != "rigorous":
        return math.inf
    if rule.loss is not None:
        return rule.max_releases
    seen = release_mu2 * rule.view_share
    # The same relative slack as in the ledger, so that rounding cannot cost a release here and not there.
    return float(math.floor(rule.mu2_limit * (1.0 + SLACK) / seen)) if seen > 0 else math.inf


def _project(scenario: Scenario, limits: ParticipationLimits, most: int) -> Rehearsal:
    """Projects up to `most` rounds, with edges as long as their number stays below the limit."""
    size, everyone = scenario.protocol.cohort_size, np.arange(scenario.clients)
    found = Rehearsal(0, None, "all rounds done", np.zeros(scenario.clients), None)
    models, holder, edges = np.zeros(scenario.clients, dtype=np.int64), NO_NODE, 0
    for number in range(1, most + 1):
        willing = limits.eligible(number, found.participations)
        left = int(np.count_nonzero(willing))
        if left < scenario.clients and found.first_exhaustion is None:
            found.first_exhaustion = number
        if left < size:
            found.stopped_in, found.why = number, f"round {number}: {left} of {size} needed clients have budget left"
            break
        members = _cohort(scenario, everyone[willing], size, number)
        # Beyond the limit only cohorts are drawn: they are cheap and decide when budgets end.
        if edges <= _MOST_EDGES and len(found.arranged) < _MOST_ARRANGED:
            led = [earlier.round_plan.leader for earlier in found.arranged]
            planned = _arrange(scenario, number, members, models, holder, led)
            planned.declining = scenario.clients - left
            edges += sum(len(rows) for rows in planned.round_plan.edges.values())
            found.arranged.append(planned)
            holder = planned.round_plan.leader
        models[members] = number
        # A round without edges has no known leader, so a leader that releases nothing is counted as if it did.
        found.participations[found.arranged[-1].releasing if found.arranged[-1].number == number else members] += 1
        found.rounds = number
    return found


def _cohort(scenario: Scenario, willing: Ids, size: int, number: int) -> Ids:
    """Returns the cohort by the run's own draw."""
    # The order of arrival is unknown before the run; the smallest ids stand for the fastest clients.
    if scenario.protocol.selection == "first_come":
        return willing[:size]
    return choose_cohort(willing, size, "uniform", scenario.seed, number)


def _arrange(scenario: Scenario, number: int, members: Ids, models: Ids, holder: int, led: list[int]) -> PlannedRound:
    # Members that missed the last round hold an older model; before the first leader all hold the initial one.
    stale = members[models[members] < number - 1] if holder != NO_NODE else members[:0]
    server = scenario.clients + SERVER
    round_plan = scenario.protocol.plan_round(
        RoundContext(scenario.seed, number, members, holder, stale, server, scenario.clients, led)
    )
    if scenario.aggregate.weights != "uniform":
        # Their values do not matter here, only that they are told.
        round_plan = with_record_shares(round_plan, np.ones(scenario.clients))
    releasing = members
    if isinstance(scenario.protocol, RotatingLeader) and not scenario.protocol.include_own:
        releasing = members[members != round_plan.leader]
    return PlannedRound(number, members, releasing, round_plan)


def _extrapolate(found: Rehearsal, scenario: Scenario, limits: ParticipationLimits, planned: int) -> None:
    """Extends a long run by expectation: each client takes part in an equal fraction of the rounds."""
    rate = scenario.protocol.cohort_size / scenario.clients
    # The expected round in which each client makes its last release.
    ends = np.minimum(limits.last_round, limits.releases / rate)
    # The run ends when fewer clients than a cohort are left: at the cohort_size-th largest of the ends.
    # Ascending, so the index counts from the smallest.
    enough = np.sort(ends)[scenario.clients - scenario.protocol.cohort_size]
    found.extrapolated = True
    found.rounds = int(min(planned, enough))
    if found.rounds < planned:
        found.stopped_in = found.rounds + 1
        found.why = f"about round {found.stopped_in}: too few clients have budget left"
    if ends.min() < found.rounds and found.first_exhaustion is None:
        found.first_exhaustion = int(ends.min()) + 1
    # No client makes more releases than its ledger allows, however long the run is.
    found.participations = np.minimum(rate * found.rounds, limits.releases)
