"""Simulated duration of a run, extrapolated from its first rounds without learning, faults and privacy."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nodes.datasets.registry import Synthetic
from p2p.links.latency import pair_latencies
from scenarios.planning.participation import Rehearsal
from scenarios.planning.problem_size import Shape
from scenarios.schema import Scenario

_ROUNDS = 3
_MOST_MESSAGES = 60_000
"""Rounds with more messages take minutes to simulate; no timing is reported for them."""


class Timing(NamedTuple):
    """Simulated seconds before the first round, per round on average, and after the last round."""

    set_up_s: float
    round_s: float
    end_s: float

    def total_s(self, rounds: int) -> float:
        """Returns the simulated seconds of a whole run."""
        return self.set_up_s + rounds * self.round_s + self.end_s


def measure(scenario: Scenario, shape: Shape, rehearsal: Rehearsal) -> Timing | None:
    """Simulates the first rounds; returns None if that would take long or no round completes."""
    from scenarios.build import build

    edges = [sum(len(rows) for rows in planned.round_plan.edges.values()) for planned in rehearsal.arranged[:1]]
    hops = 1 + (scenario.anonymity.hops if scenario.anonymity.relay_count else 0)
    # Four control messages per client: invitation, answer, assignment, completion report.
    if not edges or hops * edges[0] + 4 * scenario.clients > _MOST_MESSAGES:
        return None
    simulation = build(_without_learning(scenario, shape, min(_ROUNDS, rehearsal.rounds)))
    simulation.run()
    rounds = simulation.log.rounds
    if not rounds:
        return None
    start_s, end_s = float(rounds[0]["start_s"]), float(rounds[-1]["end_s"])
    return Timing(start_s, (end_s - start_s) / len(rounds), float(simulation.clock.now) - end_s)


def proxy_latency_s(scenario: Scenario) -> float:
    """Returns the median one-way latency from the proxy to a client; the time on access links is left out."""
    from scenarios.build import PROXY

    clients = np.arange(scenario.clients)
    proxy = np.full_like(clients, scenario.clients + PROXY)
    return float(np.median(pair_latencies(scenario.network.latency, scenario.seed, proxy, clients)))


def _without_learning(scenario: Scenario, shape: Shape, rounds: int) -> Scenario:
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
        faults=(),
        anonymity=replace(scenario.anonymity, sealed="sizes" if sealed else False),
    )
