"""Clients fetch the first model by a rule; what is irregular about orders and models is theirs to judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings

from nodes.messaging.control_messages import Assignment, Peer
from p2p.clock import Rank
from p2p.log.records import SPAN
from p2p.transport.impairments import Partition
from scenarios.composition.simulation import Simulation
from scenarios.run_folder.digest import events_digest
from tests.random_worlds import TIMES, troubled_worlds

Prepare = Callable[..., Simulation]
Rows = Callable[..., list[dict[str, Any]]]
PROXY = 3
# Orders are sent at 0.315 s and arrive, with 173 bytes, at 0.588 s; models come at 0.537 s where the order is faster.


def waits(simulation: Simulation, node: int, round_number: int = 0) -> list[tuple[float, float]]:
    """When a node waited in a round."""
    spans = simulation.log.spans
    rows = (spans["node"] == node) & (spans["round"] == round_number) & (spans["name"] == SPAN["wait"])
    return list(zip(spans["start_s"][rows].round(6).tolist(), spans["end_s"][rows].round(6).tolist(), strict=True))


def cut(simulation: Simulation, sender: int, receiver: int, start_s: float, end_s: float) -> None:
    """Loses what one node hands to another meanwhile."""
    node = np.arange(len(simulation.world.network.links.up))
    partition, clock, network = (
        Partition(node == sender, node == receiver, False),
        simulation.clock,
        simulation.world.network,
    )
    clock.call_at(start_s, Rank.FAULT, 0, lambda: network.impair(partition))
    clock.call_at(end_s, Rank.FAULT, 0, lambda: network.repair(partition))


def reports(rows: list[dict[str, Any]], node: int) -> list[tuple[float, str]]:
    """A node's reports of round 0: when they were sent, and what became of them."""
    mine = [row for row in rows if row["sender"] == node and row["size_bytes"] == 87]
    return [(round(row["sent_s"], 6), row["outcome"]) for row in mine]


def test_the_wait_for_the_model_is_logged(prepare: Prepare, message_rows: Rows) -> None:
    """From the order's arrival to the model's; the report is sent at once."""
    simulation = prepare("data.features=100")
    simulation.run()
    rows = message_rows(simulation.log, round=0)
    for node in range(3):
        (order,) = [row for row in rows if row["receiver"] == node and row["kind"] == "control"]
        (model,) = [row for row in rows if row["receiver"] == node and row["kind"] == "bootstrap"]
        assert order["arrived_s"] < model["arrived_s"]
        assert waits(simulation, node) == [(round(order["arrived_s"], 6), round(model["arrived_s"], 6))]
        assert reports(rows, node) == [(round(model["arrived_s"], 6), "delivered")]
        assert model["used"]


def test_without_a_model_the_client_reports_when_its_time_is_up(prepare: Prepare, message_rows: Rows) -> None:
    """Its model is lost for good; it reports that it has none, and gets one before round 1."""
    simulation = prepare("network.retransmit={tries: 1}", "data.features=100")
    cut(simulation, 6, 0, 0.0, 5.0)
    simulation.run()
    rows = message_rows(simulation.log, round=0)
    ((start_s, end_s),) = waits(simulation, 0)
    assert end_s - start_s > simulation.scenario.protocol.longest_s
    assert reports(rows, 0) == [(end_s, "delivered")]
    assert simulation.proxy.outcome.rounds_completed == 1


@pytest.mark.parametrize("also", ["", ", {kind: duplicate, probability: 1, start: 0 s, end: 90 s}"])
def test_a_crash_forgets_the_fetch(prepare: Prepare, also: str) -> None:
    """Between order and model: no wait is logged over the time that it is down, also when it fetches again.

    Orders that are copied are not followed by the rule.
    """
    crash = "{kind: crash, who: 0, start: 900 ms, end: 40 s}"
    simulation = prepare("data.features=400", f"faults=[{crash}{also}]")
    simulation.run()
    assert waits(simulation, 1)
    assert waits(simulation, 0) == []
    for start_s, end_s in waits(simulation, 0, 1):
        assert end_s <= 0.9 or start_s >= 40


def test_a_report_is_repeated_when_the_order_comes_again(prepare: Prepare, message_rows: Rows) -> None:
    """The proxy loses a report and goes down; its standby orders again, and the client reports again, at once."""
    simulation = prepare(
        "proxy={standby: true, takeover: 1 s}",
        "network.retransmit={tries: 1}",
        "faults=[{kind: crash, who: proxy, start: 3 s}]",
    )
    cut(simulation, 0, PROXY, 0.4, 3.0)
    simulation.run()
    rows = message_rows(simulation.log, round=0)
    first, second = reports(rows, 0)
    assert first[1] == "lost"
    (again,) = [row for row in rows if row["receiver"] == 0 and row["sender"] == PROXY + 1]
    assert second == (round(again["arrived_s"], 6), "delivered")
    assert len([row for row in rows if row["receiver"] == 0 and row["kind"] == "bootstrap"]) == 1


def test_a_round_stays_open_for_an_order_that_its_model_has_overtaken(prepare: Prepare, message_rows: Rows) -> None:
    """The client has the model with its order, but its report is lost: the round closes its time after the receipt."""
    slow = ("network.downlink=100 B/s", "data.features=1", "network.retransmit={tries: 1}")
    simulation = prepare(*slow)
    cut(simulation, 0, PROXY, 1.0, 6.0)
    simulation.run()
    rows = message_rows(simulation.log, round=0)
    (order,) = [row for row in rows if row["receiver"] == 0 and row["kind"] == "control"]
    assert reports(rows, 0) == [(round(order["arrived_s"], 6), "lost")]
    first_invitation = message_rows(simulation.log, round=1)[0]["sent_s"]
    rules = simulation.scenario.protocol
    assert first_invitation == pytest.approx(order["arrived_s"] + rules.longest_s + rules.grace)


def order_while_busy(simulation: Simulation, acknowledge: Callable[[float], None] | None = None) -> None:
    """Gives client 0 an order to fetch while it trains in round 1."""
    client = simulation.clients[0]
    held = client.endpoint.session(1)
    assert held is not None
    assert not client.endpoint.inbox.awaits("orders")
    peers = {"bootstrap": held.assignment.expect_from["update"]}
    order = held.assignment._replace(epoch=1, expect_from=peers, closes_s=90.0, acknowledge=acknowledge)
    client.take_fetch_order(order, simulation.clock.now, by_rule=False)


def test_a_busy_client_follows_the_order_when_it_is_free(prepare: Prepare) -> None:
    """An order to fetch that arrives while it trains; the process follows it before it waits for orders again."""
    simulation = prepare()
    begun: list[float] = []
    begin = simulation.world.network.begin_fetch

    def note(node: int, round_number: int) -> None:
        begun.append(simulation.clock.now)
        begin(node, round_number)

    simulation.world.network.begin_fetch = note  # type: ignore[method-assign]
    simulation.clock.call_at(1.8, Rank.START, 0, lambda: order_while_busy(simulation))
    simulation.clock.call_at(1.8, Rank.START, 1, lambda: begun.append(0.0))
    simulation.run()
    assert begun.pop(0) == 0.0  # nothing had begun by then
    ends_s = simulation.log.spans["end_s"][(simulation.log.spans["node"] == 0) & (simulation.log.spans["round"] == 1)]
    assert begun[0] == pytest.approx(ends_s.max())


def test_a_crash_forgets_an_order_that_had_to_wait(prepare: Prepare) -> None:
    """It is not followed, nor acknowledged, by the next life."""
    simulation = prepare("faults=[{kind: crash, who: 0, start: 1900 ms, end: 10 s}]")
    acknowledged: list[float] = []
    simulation.clock.call_at(1.8, Rank.START, 0, lambda: order_while_busy(simulation, acknowledged.append))
    simulation.run()
    assert simulation.clients[0].endpoint.life == 1
    assert acknowledged == []


def test_a_report_is_repeated_after_models_were_read_together(prepare: Prepare, message_rows: Rows) -> None:
    """The round has drained at 0.724 s; a proxy that knows of no report orders once more."""
    simulation = prepare()
    client = simulation.clients[0]

    def order_again() -> None:
        assert client.model_round == 0
        assert client.endpoint.inbox.awaits("orders")
        peers = {"bootstrap": [Peer(b"server", b"")]}
        client.take_fetch_order(Assignment(0, "member", b"member", {}, peers), simulation.clock.now, by_rule=False)

    simulation.clock.call_at(0.8, Rank.START, 0, order_again)
    simulation.run()
    assert [sent_s for sent_s, _ in reports(message_rows(simulation.log, round=0), 0)] == [0.537, 0.8]


OVERTAKEN = (
    *("clients=6", "data.samples=120", "data.features=4", "seed=1869", "rounds=4", "anonymity.sealed=false"),
    "protocol={kind: rotating_leader, train_per_round: 3, leader_timeout: 2 s, deadline: 20 s, grace: 1 s, "
    "invite_window: 1 s, invite_timeout: 200 s, min_updates: 0}",
    *("network.sharing=ideal", "network.uplink={kind: lognormal, median: 200 B/s, sigma: 1.0}"),
    *("network.downlink=12 B/s", "network.latency=100 ms", "network.loss=0.5"),
    *("network.retransmit={tries: 5, timeout: 6 s}", "network.jitter={kind: uniform, low: 0 ms, high: 900 ms}"),
    "faults=[{kind: crash, who: proxy, start: 0 s, end: 30 s}, {kind: slow_link, who: 0-3, factor: 20, start: 3 s, "
    "end: 6 s}, {kind: crash, who: proxy, start: 5 s, end: 6 s}]",
)
"""A world in which a model comes ten seconds before its order, while an invitation waits for both."""


def test_a_client_is_busy_until_its_order_has_come(prepare: Prepare, message_rows: Rows) -> None:
    """Also if the model came first: the span of the invitation begins when it is free."""
    simulation = prepare(*OVERTAKEN)
    simulation.run()
    arrived = [row for row in message_rows(simulation.log, round=1, outcome="delivered") if row["receiver"] == 2]
    (model,) = [row["arrived_s"] for row in arrived if row["kind"] == "bootstrap"]
    order = min(row["arrived_s"] for row in arrived if row["size_bytes"] == 173)
    assert model + 5 < order
    spans = simulation.log.spans
    mine = (spans["node"] == 2) & (spans["round"] == 1) & (spans["name"] == SPAN["invite"])
    assert spans["start_s"][mine].tolist() == [order]


STALE = [
    *("clients=6", "data.samples=120", "data.features=1", "seed=2275", "rounds=4", "anonymity.sealed=sizes"),
    "protocol={kind: gossip, train_per_round: 5, exchange_with: 1, deadline: 10 s, grace: 0 s, invite_window: 5 s, "
    "invite_timeout: 200 s, min_updates: 0}",
    *("network.sharing=fair", "network.uplink=1 kB/s", "network.downlink=300 B/s", "network.latency=100 ms"),
    *("network.loss=0.2", "network.retransmit={tries: 8, timeout: 6 s}"),
    "network.jitter={kind: uniform, low: 0 ms, high: 900 ms}",
    "faults=[{kind: intruder, every: 300 ms, start: 0 s, end: 400 s}, {kind: reorder, probability: 0.8, delay: 40 s, "
    "start: 8 s, end: 9 s}]",
]
"""A world in which stale messages come after first models were read together."""


@pytest.mark.slow
@pytest.mark.soak
@settings(max_examples=100 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@example(STALE)
@given(troubled_worlds())
def test_models_may_be_read_one_by_one(prepare: Prepare, world: list[str]) -> None:
    """Reading them together changes nothing that is logged, whatever goes wrong."""
    together, one_by_one = prepare(*world), prepare(*world)
    network = one_by_one.world.network
    hand_out = network.hand_out
    network.hand_out = lambda batch, fetch: hand_out(batch, replace(fetch, taken=None))  # type: ignore[method-assign]
    for simulation in (together, one_by_one):
        simulation.run()
    assert events_digest(together.log) == events_digest(one_by_one.log)
