"""A trial of the first rounds without learning, faults and privacy: seconds, bytes, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nodes.datasets.registry import Synthetic
from nodes.faults.availability import Always
from nodes.schedules.fixed import Fixed
from p2p.links.latency import pair_latencies
from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.communication.traffic import bytes_by_round
from scenarios.metrics.diagnosis import diagnose
from scenarios.metrics.findings import Finding
from scenarios.planning.participation import Rehearsal
from scenarios.planning.problem_size import ProblemSize
from scenarios.schema import Scenario

_ROUNDS, _ROUNDS_WITH_CHURN = 3, 50
_MOST_MESSAGES = 60_000
"""Rounds with more messages take minutes to simulate; no timing is reported for them."""


class Trial(NamedTuple):
    """What a trial of the first rounds took.

    Attributes:
        set_up_s, round_s, end_s: seconds before the first round, per round on average, and after the last round.
        rounds: how many rounds were tried.
        bytes: bytes sent in these rounds by kind, those sent again included.
        findings: what was wrong with them.
    """

    set_up_s: float
    round_s: float
    end_s: float
    rounds: int
    bytes: Mapping[str, int]
    findings: list[Finding]

    def total_s(self, rounds: int) -> float:
        """Returns the simulated seconds of a whole run."""
        return self.set_up_s + rounds * self.round_s + self.end_s


def measure(scenario: Scenario, shape: ProblemSize, rehearsal: Rehearsal) -> Trial | None:
    """Simulates the first rounds; returns None if that would take long or no round completes."""
    from scenarios.build import build
    from scenarios.metrics.limits import limits_of
    from scenarios.node_numbers import relay_nodes

    edges = [sum(len(rows) for rows in planned.round_plan.edges.values()) for planned in rehearsal.arranged[:1]]
    hops = 1 + (scenario.anonymity.hops if scenario.anonymity.relay_count else 0)
    # Four control messages per client: invitation, answer, assignment, completion report.
    messages = hops * edges[0] + 4 * scenario.clients if edges else 0
    if not 0 < messages <= _MOST_MESSAGES:
        return None
    # Who is offline differs from round to round, so more rounds are tried, as far as that is quick.
    most = _ROUNDS if isinstance(scenario.availability, Always) else _ROUNDS_WITH_CHURN
    wanted = max(_ROUNDS, min(most, _MOST_MESSAGES // messages))
    simulation = build(_without_learning(scenario, shape, min(wanted, rehearsal.rounds)))
    simulation.run()
    log = simulation.log
    if not log.rounds:
        return None
    start_s, end_s = float(log.rounds[0]["start_s"]), float(log.rounds[-1]["end_s"])
    # From the first round's start to the last one's end, so pauses between rounds belong to them.
    round_s, rest_s = (end_s - start_s) / len(log.rounds), float(simulation.clock.now) - end_s
    findings = diagnose(log, Roles(scenario.clients, relay_nodes(scenario)), limits_of(simulation))
    return Trial(start_s, round_s, rest_s, len(log.rounds), _bytes_by_kind(log), findings)


def _bytes_by_kind(log: Log) -> dict[str, int]:
    numbers = np.array([record["round"] for record in log.rounds], dtype=np.int64)
    sums = bytes_by_round(log.messages, numbers).sum(axis=0)
    return {kind: int(amount) for kind, amount in zip(records.KINDS, sums, strict=True) if amount}


def proxy_latency_s(scenario: Scenario) -> float:
    """Returns the median one-way latency from the proxy to a client; the time on access links is left out."""
    from scenarios.node_numbers import PROXY

    clients = np.arange(scenario.clients)
    proxy = np.full_like(clients, scenario.clients + PROXY)
    return float(np.median(pair_latencies(scenario.network.latency, scenario.seed, proxy, clients)))


def _without_learning(scenario: Scenario, shape: ProblemSize, rounds: int) -> Scenario:
    """Returns the scenario with the same network and protocol, but without learning, budgets and faults.

    Message sizes are unchanged: data of unknown shape is replaced by synthetic data of the same shape, and sealing
    is accounted by size only.
    """
    # Real encryption costs time and changes no size.
    sealed = scenario.anonymity.sealed
    data = Synthetic(samples=shape.records, shape=shape.record, classes=shape.classes)
    return replace(
        scenario,
        rounds=max(1, rounds),
        learning="none",
        data=data if scenario.data.form() is None else scenario.data,
        # Noise shares are sized by the clipping norm, which the privacy section has.
        privacy=None if scenario.noise_shares is None else scenario.privacy,
        # The number of rounds is known here, and budgets would need the noise that is left out.
        schedule=Fixed(),
        faults=(),
        anonymity=replace(scenario.anonymity, sealed="sizes" if sealed else False),
    )
