"""Simulated seconds of a run, from its first rounds: events are run without learning, faults and privacy."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from nodes.datasets import Synthetic
from scenarios.planning.rehearsal import Rehearsal
from scenarios.planning.shape import Shape
from scenarios.schema import Scenario

_ROUNDS = 3
_MOST_MESSAGES = 60_000
"""More messages than these in a round take minutes to go through; then times are not told."""


class Timing(NamedTuple):
    """Simulated seconds: until the first round starts, of a round on average, and after the last."""

    set_up_s: float
    round_s: float
    end_s: float

    def total_s(self, rounds: int) -> float:
        """Of a whole run."""
        return self.set_up_s + rounds * self.round_s + self.end_s


def measure(scenario: Scenario, shape: Shape, rehearsal: Rehearsal) -> Timing | None:
    """Runs the first rounds' events; None if that would take long, or no round can be held."""
    from scenarios.build import build

    edges = [sum(len(rows) for rows in planned.arrangement.edges.values()) for planned in rehearsal.arranged[:1]]
    hops = 1 + (scenario.anonymity.hops if scenario.anonymity.relay_count else 0)
    if not edges or hops * edges[0] + 4 * scenario.clients > _MOST_MESSAGES:
        return None
    simulation = build(_bare(scenario, shape, min(_ROUNDS, rehearsal.rounds)))
    simulation.run()
    rounds = simulation.log.rounds
    if not rounds:
        return None
    start_s, end_s = float(rounds[0]["start_s"]), float(rounds[-1]["end_s"])
    return Timing(start_s, (end_s - start_s) / len(rounds), float(simulation.clock.now) - end_s)


def _bare(scenario: Scenario, shape: Shape, rounds: int) -> Scenario:
    """The same links, speeds and protocol, with nothing learned, protected or broken; sizes stay the same."""
    sealed = scenario.anonymity.sealed
    data = Synthetic(samples=shape.records, shape=shape.record, classes=shape.classes)
    return replace(
        scenario,
        rounds=max(1, rounds),
        learning="none",
        data=data if scenario.data.form() is None else scenario.data,
        privacy=None,
        faults=(),
        anonymity=replace(scenario.anonymity, sealed="sizes" if sealed else False),
    )
