"""Gossip rounds as stories computed by hand. Sizes and times: see tests/by_hand.py."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from p2p.log import records
from scenarios.composition.simulation import Simulation

Simulate = Callable[..., Simulation]
Story = Callable[..., list[tuple[float, int, str]]]
PROXY, SERVER = 3, 6


def test_setting_up(simulate: Simulate, story: Story) -> None:
    """Everyone registers; the server hands out the first model, which overtakes no message here."""
    assert story(simulate().log, 0) == [
        # Register, 115 bytes: 0.115 + 0.1 s; the server has no limits, only latency.
        (0.0, 0, "sends control to 3"),
        (0.0, 1, "sends control to 3"),
        (0.0, 2, "sends control to 3"),
        (0.0, SERVER, "sends control to 3"),
        (0.1, PROXY, "gets control from 6"),
        (0.215, PROXY, "gets control from 0"),
        (0.215, PROXY, "gets control from 1"),
        (0.215, PROXY, "gets control from 2"),
        # Assignments: 173 bytes to clients (one peer, the server), at once to the server.
        (0.215, PROXY, "sends control to 0"),
        (0.215, PROXY, "sends control to 1"),
        (0.215, PROXY, "sends control to 2"),
        (0.215, PROXY, "sends control to 6"),
        (0.315, SERVER, "gets control from 3"),
        # The first model: 122 bytes, 0.222 s; the server is done.
        (0.315, SERVER, "sends bootstrap to 0"),
        (0.315, SERVER, "sends bootstrap to 1"),
        (0.315, SERVER, "sends bootstrap to 2"),
        (0.315, SERVER, "sends control to 3"),
        (0.415, PROXY, "gets control from 6"),
        (0.488, 0, "gets control from 3"),
        (0.488, 1, "gets control from 3"),
        (0.488, 2, "gets control from 3"),
        (0.537, 0, "gets bootstrap from 6"),
        (0.537, 0, "sends control to 3"),
        (0.537, 1, "gets bootstrap from 6"),
        (0.537, 1, "sends control to 3"),
        (0.537, 2, "gets bootstrap from 6"),
        (0.537, 2, "sends control to 3"),
        # Done, 87 bytes.
        (0.724, PROXY, "gets control from 0"),
        (0.724, PROXY, "gets control from 1"),
        (0.724, PROXY, "gets control from 2"),
    ]


def test_a_round_of_three_with_ideal_links(simulate: Simulate, story: Story, spans: Callable[..., Any]) -> None:
    """No member waits for another: all update at once."""
    log = simulate().log
    expected = []
    for node in range(3):
        others = [other for other in range(3) if other != node]
        expected += [
            (0.724, PROXY, f"sends control to {node}"),  # the set-up's end
            (0.915, node, "gets control from 3"),  # invite, 91 bytes
            (0.915, node, "sends control to 3"),
            (1.11, PROXY, f"gets control from {node}"),  # answer, 95 bytes
            (1.11, PROXY, f"sends control to {node}"),
            (1.416, node, "gets control from 3"),  # assignment, 140 + 2 * 33 = 206 bytes
            *((2.416, node, f"sends update to {other}") for other in others),  # 20 records at 20 a second
            *((2.638, node, f"gets update from {other}") for other in others),  # 122 bytes
            (2.638, node, "averages 0 1 2"),
            (2.638, node, "sends control to 3"),
            (2.825, PROXY, f"gets control from {node}"),  # done, 87 bytes
        ]
    assert story(log, 1) == sorted(expected)
    assert log.rounds[0]["start_s"] == pytest.approx(0.724)
    assert log.rounds[0]["end_s"] == pytest.approx(2.825)
    assert spans(log, 1) == [
        row
        for node in range(3)
        for row in (
            (node, "invite", 0.915, 1.416),
            (node, "send", 2.416, 2.538),
            (node, "train", 1.416, 2.416),
            (node, "wait", 2.416, 2.638),
        )
    ]


def test_a_round_of_three_with_queues(simulate: Simulate, story: Story, spans: Callable[..., Any]) -> None:
    """`fifo`: whole messages one after the other. In the set-up the first model waits for the assignment on the
    downlink (free at 0.488, then 0.122 s: 0.610 instead of 0.537), so all is 0.073 s later than with ideal links.
    """
    log = simulate("network.sharing=fifo").log
    # Sent at t = 2.489. Uplinks: first update t..t+0.122, second t+0.122..t+0.244. First bytes 0.1 s after the start.
    # Downlink of 0: from 1 and from 2 both at t+0.1; sender 1 first: t+0.1..0.222, then sender 2: ..0.344.
    # Downlink of 1: from 0 t+0.1..0.222; from 2 (its second) first byte t+0.222: ..0.344.
    # Downlink of 2: from 0 and from 1 (their second) both at t+0.222; sender 0 first: ..0.344, then sender 1: ..0.466.
    sent_s = 2.489
    expected = [
        (0, 1, sent_s + 0.222),
        (1, 0, sent_s + 0.222),
        (2, 0, sent_s + 0.344),
        (2, 1, sent_s + 0.344),
        (0, 2, sent_s + 0.344),
        (1, 2, sent_s + 0.466),
    ]
    for node, others in ((0, [1, 2]), (1, [0, 2]), (2, [0, 1])):
        arrived = [(round(at_s, 6), node, f"gets update from {src}") for src, dst, at_s in expected if dst == node]
        last_s = max(at_s for at_s, _, _ in arrived)
        # Done leaves after the updates have (t+0.244 at the latest), which is before anyone has all.
        assert [event for event in story(log, 1, ["update"]) if event[1] == node] == sorted(
            [(sent_s, node, f"sends update to {other}") for other in others]
            + arrived
            + [(last_s, node, "averages 0 1 2")]
        )
    assert log.rounds[0]["end_s"] == pytest.approx(sent_s + 0.466 + 0.187)
    assert [span for span in spans(log, 1) if span[:2] == (2, "aggregate")] == [
        (2, "aggregate", round(sent_s + 0.344, 6), round(sent_s + 0.466, 6))
    ]


def test_the_final_model_is_collected(simulate: Simulate, story: Story) -> None:
    """The server asks a random client, as round 2; the run ends when both are done."""
    simulation = simulate()
    (client,) = simulation.proxy.outcome.collected_from
    assert story(simulation.log, 2) == sorted(
        [
            (2.825, PROXY, f"sends control to {client}"),
            (2.825, PROXY, "sends control to 6"),
            (2.925, SERVER, "gets control from 3"),
            (2.925, SERVER, "sends control to 3"),
            (3.025, PROXY, "gets control from 6"),
            (3.016, client, "gets control from 3"),  # invite
            (3.016, client, "sends control to 3"),
            (3.211, PROXY, f"gets control from {client}"),  # answer
            (3.211, PROXY, f"sends control to {client}"),
            (3.211, PROXY, "sends control to 6"),
            (3.311, SERVER, "gets control from 3"),
            (3.484, client, "gets control from 3"),  # assignment with one peer
            (3.484, client, "sends collect to 6"),
            (3.484, client, "sends control to 3"),
            (3.671, PROXY, f"gets control from {client}"),
            (3.706, SERVER, f"gets collect from {client}"),
            (3.706, SERVER, "sends control to 3"),
            (3.806, PROXY, "gets control from 6"),
        ]
    )
    assert simulation.clock.now == pytest.approx(3.806)


def test_an_update_exactly_at_the_deadline_counts(simulate: Simulate) -> None:
    """Training takes 1 s, 122 bytes at 122 B/s another, latency a quarter: 2.25 s, exact in binary."""
    fast = ("network.uplink=122 B/s", "network.downlink=1 GB/s", "network.latency=250 ms")
    met = simulate(*fast, "protocol.exchange_with=1", "protocol.deadline=2.25 s").log
    missed = simulate(*fast, "protocol.exchange_with=1", "protocol.deadline=2.2499 s").log
    received_s = met.spans["end_s"][met.spans["name"] == records.SPAN["invite"]]
    assert len(met.aggregations) == 6
    assert (met.aggregations["at_s"] == received_s[0] + 2.25).all()
    assert len(missed.aggregations) == 0


def test_a_late_update_is_missing_and_never_used(
    simulate: Simulate, dropouts: Callable[..., Any], message_rows: Callable[..., list[dict[str, Any]]]
) -> None:
    """It is delivered, its bytes are wasted, and the round goes on without it."""
    simulation = simulate("protocol.deadline=1.1 s", "rounds=2", "protocol.min_updates=0")
    # Trained after 1 s, 0.222 s on the way, deadline 1.1 s: all are late; each averages its own alone.
    rows = message_rows(simulation.log, kind="update")
    assert [(row["outcome"], row["used"]) for row in rows] == [("delivered", False)] * 12
    missing = [(1, "missing", sender, at, "late") for sender in range(3) for at in range(3) if sender != at]
    dropped = [(1, "dropout", node, -1, "late") for node in range(3)]
    assert [row for row in dropouts(simulation.log) if row[0] == 1] == sorted(missing + dropped)
    assert simulation.log.rounds[0]["updates_used"] == 0
    assert simulation.log.rounds[0]["updates_missing"] == 6
    assert simulation.proxy.outcome.rounds_completed == 2


def test_who_is_still_training_at_the_deadline_sends_nothing(simulate: Simulate, dropouts: Callable[..., Any]) -> None:
    """There is no update to send or to average; the round ends with the deadline, and the next one begins."""
    simulation = simulate("compute=1 samples/s", "protocol.deadline=10 s", "rounds=2")
    assert simulation.proxy.outcome.rounds_completed == 2
    assert not (simulation.log.messages["kind"] == records.KIND["update"]).any()
    assert len(simulation.log.aggregations) == 0
    assert {row[1:] for row in dropouts(simulation.log)} == {("dropout", node, -1, "late") for node in range(3)}


def test_barrier_sends_at_one_instant(simulate: Simulate, story: Story) -> None:
    """The slowest training, plus once more what the invitation took: 1.11 + 1 + (1.11 - 0.724) = 2.496, to the bit."""
    log = simulate("protocol.send_at=barrier").log
    sent_s = log.messages["sent_s"][log.messages["kind"] == records.KIND["update"]]
    assert len(sent_s) == 6
    assert len(set(sent_s.tolist())) == 1
    assert sent_s[0] == pytest.approx(2.496)
    assert (2.718, 0, "averages 0 1 2") in story(log, 1)


def test_barrier_holds_back_the_fast(simulate: Simulate, spans: Callable[..., Any]) -> None:
    """A member that is ready before waits idle, and all send at one instant although they train at different speeds."""
    log = simulate("protocol.send_at=barrier", "compute={kind: uniform, low: 5 samples/s, high: 40 samples/s}").log
    sent_s = log.messages["sent_s"][log.messages["kind"] == records.KIND["update"]]
    assert len(set(sent_s.tolist())) == 1
    idle = [span for span in spans(log, 1) if span[1] == "idle"]
    assert len(idle) == 3
    assert {end_s for *_, end_s in idle} == {round(float(sent_s[0]), 6)}


def test_own_updates_can_be_left_out(simulate: Simulate, story: Story) -> None:
    """`include_own: false` averages only what came."""
    told = story(simulate("protocol.include_own=false").log, 1, [])
    assert [what for _, _, what in told] == ["averages 1 2", "averages 0 2", "averages 0 1"]


@pytest.mark.parametrize(("clients", "cohort", "degree"), [(6, 4, 2), (8, 5, 4), (5, 2, 1)])
def test_the_graph_is_what_is_sent(simulate: Simulate, clients: int, cohort: int, degree: int) -> None:
    """Without loss: exactly degree * cohort updates in every round, along the recorded graph, all used."""
    simulation = simulate(
        f"clients={clients}", "rounds=3", f"protocol.train_per_round={cohort}", f"protocol.exchange_with={degree}"
    )
    messages, graphs = simulation.log.messages, simulation.log.graphs
    for number in (1, 2, 3):
        rows = (messages["kind"] == records.KIND["update"]) & (messages["round"] == number)
        edges = graphs["round"] == number
        sent = sorted(zip(messages["sender"][rows].tolist(), messages["receiver"][rows].tolist(), strict=True))
        assert sent == sorted(zip(graphs["sender"][edges].tolist(), graphs["receiver"][edges].tolist(), strict=True))
        assert len(sent) == degree * cohort
        assert messages["used"][rows].all()
        assert len(simulation.records[number].cohort) == cohort


def test_collecting_the_mean_asks_everyone(simulate: Simulate) -> None:
    """Also with `first_come`, which is a rule for cohorts only."""
    simulation = simulate("clients=6", "protocol.collect=mean", "protocol.selection=first_come")
    assert simulation.proxy.outcome.collected_from == list(range(6))
    assert len(simulation.server.collected) == 6


def test_a_lost_update_comes_again_with_the_same_bytes(
    simulate: Simulate, message_rows: Callable[..., list[dict[str, Any]]]
) -> None:
    """A row of its own for every transmission; what arrives in the end is used like any other."""
    simulation = simulate("network.loss=0.4", "rounds=4", "seed=3")
    by_path: dict[tuple[int, int, int], list[dict[str, Any]]] = {}
    for row in message_rows(simulation.log, kind="update"):
        by_path.setdefault((row["round"], row["sender"], row["receiver"]), []).append(row)
    assert any(len(rows) > 1 for rows in by_path.values())
    for rows in by_path.values():
        assert [row["attempt"] for row in rows] == list(range(1, len(rows) + 1))
        assert len({(row["size_bytes"], row["overhead_bytes"]) for row in rows}) == 1
        assert all((row["outcome"], row["reason"]) == ("lost", "random") for row in rows[:-1])
        for earlier, later in pairwise(rows):
            assert later["sent_s"] == pytest.approx(earlier["left_s"] + 2.0)
    assert any(rows[-1]["used"] for rows in by_path.values() if len(rows) > 1)
