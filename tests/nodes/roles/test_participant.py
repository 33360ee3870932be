"""The verbs protocols are written in do the bookkeeping."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import simpy

from nodes.messaging.control_messages import Assignment, Peer
from nodes.messaging.round_session import Received
from p2p.clock import Rank
from p2p.log.log import Log
from scenarios.composition.simulation import Simulation

Prepare = Callable[..., Simulation]
PEERS = [Peer(b"a" * 32, b""), Peer(b"b" * 32, b"")]


def order(closes_s: float = 100.0) -> Assignment:
    """A member's order that expects two updates."""
    return Assignment(1, "member", b"m" * 32, {}, {"update": PEERS}, closes_s=closes_s)


def collecting(simulation: Simulation, deadline_s: float) -> list[tuple[float, int]]:
    """Lets client 0 collect updates; the list tells when it went on, and with how many."""
    noted: list[tuple[float, int]] = []

    def process() -> Generator[simpy.Event, Any, None]:
        received = yield from simulation.clients[0].collect(order(), "update", deadline_s)
        noted.append((simulation.clock.now, len(received)))

    simulation.clock.process(process())
    return noted


def put(simulation: Simulation, at_s: float, row: int) -> None:
    """An opened update from the sender of a row of the message log."""
    item = Received(b"a" * 32, simulation.learning.first_model(), row)
    inbox = simulation.clients[0].endpoint.inbox
    simulation.clock.call_at(at_s, Rank.ARRIVAL, 0, lambda: inbox.put(("update", 1), item))


def test_collecting_ends_with_the_last_one(prepare: Prepare, spans: Callable[..., Any]) -> None:
    """And the wait is a span."""
    simulation = prepare()
    noted = collecting(simulation, 9.0)
    put(simulation, 2.0, 0)
    put(simulation, 3.0, 1)
    simulation.clock.run(until=20)
    assert noted == [(3.0, 2)]
    assert spans(simulation.log, 1) == [(0, "wait", 0.0, 3.0)]


def test_collecting_ends_at_the_deadline(prepare: Prepare) -> None:
    """With what has come, an arrival at that instant included."""
    simulation = prepare()
    noted = collecting(simulation, 9.0)
    put(simulation, 9.0, 0)
    simulation.clock.run(until=20)
    assert noted == [(9.0, 1)]


def test_a_deadline_never_outlasts_the_round(prepare: Prepare) -> None:
    """However late the assignment came, the proxy's closing time bounds it."""
    client = prepare().clients[0]
    assert client.deadline_s(order(closes_s=100.0), 60.0) == 60.0
    assert client.deadline_s(order(closes_s=40.0), 60.0) == 40.0


def test_averaging_nothing_is_no_aggregation(prepare: Prepare) -> None:
    """Nothing is written down, and the model is as old as it was."""
    simulation = prepare()
    client = simulation.clients[0]
    assert not client.average(order(), [], None)
    assert len(simulation.log.aggregations) == 0
    assert client.model_round == -1


def test_every_message_used_is_marked(simulate: Prepare) -> None:
    """Whatever is averaged or adopted served its purpose; control messages always do."""
    log: Log = simulate("rounds=2").log
    assert log.messages["used"].all()
