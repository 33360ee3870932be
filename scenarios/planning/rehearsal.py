"""The rounds of a run on paper: who will take part, who sends to whom, and when the budgets end it.

Cohorts, leaders and graphs are found by the seed alone, so with nobody offline these are the run's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodes.client import Arrangement, Draft
from nodes.cohorts import choose_cohort
from nodes.protocols.rotating_leader import RotatingLeader
from p2p.records import NOBODY
from privacy.ledger import SLACK, LedgerRule
from scenarios.schema import Scenario

Ids = NDArray[np.int64]
_SERVER = 3
# Cohorts and edges that a plan may draw: a few seconds. Longer runs are extrapolated.
_MOST_DRAWS, _MOST_ROUNDS = 3e6, 5000
_MOST_EDGES, _MOST_ARRANGED = 1e6, 1000


@dataclass(slots=True)
class PlannedRound:
    """One round on paper: its cohort, who of it releases an update, and every edge by kind."""

    number: int
    members: Ids
    releasing: Ids
    arrangement: Arrangement
    declining: int = 0


@dataclass(slots=True)
class Rehearsal:
    """The run on paper.

    Attributes:
        rounds: rounds that will be completed.
        stopped_in: the round that cannot be held; None if all can.
        why: why it ends, in the words of a run.
        participations: how often each client will have taken part; expected values where extrapolated.
        first_exhaustion: the first round in which somebody has no budget left; None if that does not happen.
        arranged: the rounds worked out edge by edge: all of them, or the first few.
        extrapolated: whether the run was too long to go through all of it.
    """

    rounds: int
    stopped_in: int | None
    why: str
    participations: NDArray[np.float64]
    first_exhaustion: int | None
    arranged: list[PlannedRound] = field(default_factory=list)
    extrapolated: bool = False


def rehearse(scenario: Scenario, rules: Sequence[LedgerRule], release_mu2: NDArray[np.float64]) -> Rehearsal:
    """Goes through the rounds; `rules` is empty and `release_mu2` unused without privacy."""
    limits = Limits.of(scenario.clients, rules, release_mu2)
    most = int(min(scenario.rounds, _MOST_ROUNDS, max(3.0, _MOST_DRAWS / scenario.clients)))
    found = _go_through(scenario, limits, most)
    if found.stopped_in is None and found.rounds < scenario.rounds:
        _extrapolate(found, scenario, limits)
    return found


@dataclass(frozen=True, slots=True)
class Limits:
    """How long each client may take part: its last round, and its number of releases."""

    last_round: NDArray[np.float64]
    releases: NDArray[np.float64]

    @classmethod
    def of(cls, clients: int, rules: Sequence[LedgerRule], release_mu2: NDArray[np.float64]) -> Limits:
        """From the rule of each client's ledger; without rules nothing ends."""
        if not rules:
            return cls(np.full(clients, np.inf), np.full(clients, np.inf))
        fits = [releases_allowed(rule, float(cost)) for rule, cost in zip(rules, release_mu2, strict=True)]
        return cls(np.array([rule.max_round for rule in rules], dtype=np.float64), np.array(fits))

    def eligible(self, round_number: int, done: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Who may make one more release in that round."""
        return (round_number <= self.last_round) & (done < self.releases)


def releases_allowed(rule: LedgerRule, release_mu2: float) -> float:
    """How many releases with that mu^2 a ledger allows; infinite where it does not count them."""
    if rule.by != "rigorous":
        return math.inf
    seen = release_mu2 * rule.view_share
    return float(math.floor(rule.mu2_limit * (1.0 + SLACK) / seen)) if seen > 0 else math.inf


def _go_through(scenario: Scenario, limits: Limits, most: int) -> Rehearsal:
    size, everyone = scenario.protocol.cohort_size, np.arange(scenario.clients)
    found = Rehearsal(0, None, "all rounds done", np.zeros(scenario.clients), None)
    models, holder, edges = np.zeros(scenario.clients, dtype=np.int64), NOBODY, 0
    for number in range(1, most + 1):
        willing = limits.eligible(number, found.participations)
        left = int(np.count_nonzero(willing))
        if left < scenario.clients and found.first_exhaustion is None:
            found.first_exhaustion = number
        if left < size:
            found.stopped_in, found.why = number, f"round {number}: {left} of {size} needed clients have budget left"
            break
        members = _cohort(scenario, everyone[willing], size, number)
        if edges <= _MOST_EDGES and len(found.arranged) < _MOST_ARRANGED:
            planned = _arrange(scenario, number, members, models, holder)
            planned.declining = scenario.clients - left
            edges += sum(len(rows) for rows in planned.arrangement.edges.values())
            found.arranged.append(planned)
            holder = planned.arrangement.leader
        models[members] = number
        found.participations[found.arranged[-1].releasing if found.arranged[-1].number == number else members] += 1
        found.rounds = number
    return found


def _cohort(scenario: Scenario, willing: Ids, size: int, number: int) -> Ids:
    """The run's own draw; who comes first is not known before, so the smallest numbers stand for the fastest."""
    if scenario.protocol.selection == "first_come":
        return willing[:size]
    return choose_cohort(willing, size, "uniform", scenario.seed, number)


def _arrange(scenario: Scenario, number: int, members: Ids, models: Ids, holder: int) -> PlannedRound:
    stale = members[models[members] < number - 1] if holder != NOBODY else members[:0]
    server = scenario.clients + _SERVER
    arrangement = scenario.protocol.arrange(Draft(scenario.seed, number, members, holder, stale, server))
    releasing = members
    if isinstance(scenario.protocol, RotatingLeader) and not scenario.protocol.include_own:
        releasing = members[members != arrangement.leader]
    return PlannedRound(number, members, releasing, arrangement)


def _extrapolate(found: Rehearsal, scenario: Scenario, limits: Limits) -> None:
    """The rest of a long run, by expectation: everybody takes part in its share of the rounds."""
    rate = scenario.protocol.cohort_size / scenario.clients
    ends = np.minimum(limits.last_round, limits.releases / rate)
    enough = np.sort(ends)[scenario.clients - scenario.protocol.cohort_size]
    found.extrapolated = True
    found.rounds = int(min(scenario.rounds, enough))
    if found.rounds < scenario.rounds:
        found.stopped_in = found.rounds + 1
        found.why = f"about round {found.stopped_in}: too few clients have budget left"
    if ends.min() < found.rounds and found.first_exhaustion is None:
        found.first_exhaustion = int(ends.min()) + 1
    found.participations = np.minimum(rate * found.rounds, limits.releases)
