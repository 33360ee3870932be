"""Faults one by one: whom they strike, how long work takes, and what protocols do when leaders and proxies die."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.faults.targets import check_window, parse_nodes
from nodes.roles.slowdown import Slow, finish_s
from p2p.log.records import DROPOUT_REASON, KIND, OUTCOME, REASON, WHAT
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario

WORLD = """
name: faults
seed: 3
rounds: 3
clients: 12
data: {name: synthetic, samples: 240}
model: {kind: mlp, hidden: [8]}
protocol: {kind: rotating_leader, train_per_round: 8, leader_timeout: 10 s}
network: {sharing: fair, uplink: 1 Mbit/s, downlink: 4 Mbit/s, latency: {kind: uniform, low: 20 ms, high: 120 ms}}
compute: 40 samples/s
learning: none
anonymity: {sealed: sizes}
"""
GOSSIP = "protocol={kind: gossip, train_per_round: 8, exchange_with: 3, deadline: 20 s}"


def run(*overrides: str) -> Simulation:
    """The small world, with changes, to its end."""
    simulation = build(parse_scenario(WORLD, overrides=overrides))
    simulation.run()
    return simulation


def rows(simulation: Simulation) -> list[dict[str, Any]]:
    """The rounds' rows."""
    return simulation.log.rounds


def test_who_is_named() -> None:
    """Numbers, ranges, lists and roles; everything wrong is told."""
    assert parse_nodes(3, 10, ()).nodes == (3,)
    assert parse_nodes("2-4", 10, ()).nodes == (2, 3, 4)
    assert parse_nodes((1, "3-4", 1), 10, ()).nodes == (1, 3, 4)
    assert parse_nodes("leader", 10, ("leader",)).role == "leader"
    for who in ("leader", "9-2", "5-10", 10, "x"):
        assert parse_nodes(who, 10, ()).problems
    assert check_window(5.0, 5.0, None)
    assert check_window(1.0, 2.0, 3.0)
    assert not check_window(1.0, 2.0, None)


def test_slow_work_by_hand() -> None:
    """Ten seconds of work from 0; five times as slow from 4 to 14: 4 + 2 of work by 14, then 4 more."""
    slow = [Slow(4.0, 14.0, 5.0)]
    assert finish_s(0.0, 10.0, slow) == 18.0
    assert finish_s(20.0, 10.0, slow) == 30.0
    assert finish_s(6.0, 1.0, slow) == 11.0
    assert finish_s(0.0, 10.0, []) == 10.0


@given(
    st.floats(0, 50),
    st.floats(0.01, 50),
    st.lists(st.tuples(st.floats(0, 50), st.floats(0.1, 30), st.floats(1, 20)), max_size=4),
)
def test_slowness_only_delays(start_s: float, work_s: float, intervals: list[tuple[float, float, float]]) -> None:
    """Never earlier than at full speed, never later than all slowness at once for all of the time."""
    slow = [Slow(begin_s, begin_s + length_s, factor) for begin_s, length_s, factor in intervals]
    worst = float(np.prod([one.factor for one in slow]))
    end_s = finish_s(start_s, work_s, slow)
    assert start_s + work_s - 1e-9 <= end_s <= start_s + work_s * worst + 1e-6


@pytest.mark.parametrize("phase", ["invite", "train", "send", "aggregate", "broadcast"])
def test_a_round_survives_its_leader(phase: str) -> None:
    """Whenever it dies, another leads; six updates count once, and the dead one is the dropout."""
    simulation = run(f"faults=[{{kind: crash, who: leader, round: 2, phase: {phase}}}]")
    assert simulation.proxy.outcome.stopped_because == "all rounds done"
    before, struck, _ = rows(simulation)
    assert (before["updates_used"], struck["updates_used"], struck["skipped"]) == (7, 6, False)
    table = simulation.log.dropouts
    dropouts = np.flatnonzero((table["what"] == WHAT["dropout"]) & (table["round"] == 2))
    assert table["reason"][dropouts].tolist() == [DROPOUT_REASON["crashed"]]
    assert int(table["node"][dropouts[0]]) != struck["leader"]
    pairs = simulation.log.aggregations
    counted = [
        (int(aggregator), int(contributor))
        for number, aggregator, contributor, void in zip(
            *(pairs[name] for name in ("round", "aggregator", "contributor", "void")), strict=True
        )
        if number == 2 and not void
    ]
    assert {aggregator for aggregator, _ in counted} == {struck["leader"]}
    assert len(set(counted)) == len(counted) == 7


def test_a_standby_takes_over() -> None:
    """The round goes on after the takeover; without a standby the run stops and says why."""
    crash = "faults=[{kind: crash, who: proxy, start: 3 s}]"
    stood_by = run(crash, "proxy={standby: true, takeover: 4 s}")
    assert stood_by.proxy.outcome.rounds_completed == 3
    assert stood_by.proxy.node == stood_by.world.standby
    alone = run(crash)
    assert alone.proxy.outcome.stopped_because == "the proxy was lost at 3 s and there is no standby"
    back = run("faults=[{kind: crash, who: proxy, start: 3 s, end: 9 s}]")
    assert back.proxy.outcome.rounds_completed == 3


def test_a_partition_heals() -> None:
    """Updates across the cut are missing as partitioned; afterwards nothing is."""
    simulation = run(GOSSIP, "rounds=4", "faults=[{kind: partition, between: [0-5, 6-11], start: 1 s, end: 25 s}]")
    table = simulation.log.dropouts
    missing = table["reason"][table["what"] == WHAT["missing"]]
    assert len(missing) > 0
    assert (missing == DROPOUT_REASON["partitioned"]).all()
    assert rows(simulation)[-1]["updates_missing"] == 0


def test_a_node_that_comes_back_catches_up() -> None:
    """Who was away while others learned gets the current model from the last leader."""
    simulation = run("rounds=5", "faults=[{kind: crash, who: 0-3, start: 1 s, end: 8 s}]")
    assert simulation.proxy.outcome.rounds_completed == 5
    newest = max(client.model_round for client in simulation.clients)
    last = rows(simulation)[-1]
    table = simulation.log.messages
    served = table["receiver"][(table["kind"] == KIND["handover"]) & table["used"]]
    assert set(served.tolist()) & {0, 1, 2, 3}
    members = [client for client in simulation.clients if client.node in simulation.records[5].cohort]
    assert last["updates_missing"] == 0
    assert all(client.model_round == newest for client in members)


def test_an_intruder_gets_nothing_used() -> None:
    """All that it sends is refused with a reason, or is a message that serves no node: none of it is used."""
    simulation = run(GOSSIP, "faults=[{kind: intruder, every: 100 ms}]")
    messages = simulation.log.messages
    sent = messages["sender"] >= simulation.scenario.clients + 4
    assert sent.sum() > 10
    assert (messages["outcome"][sent] == OUTCOME["rejected"]).mean() > 0.9
    reasons = set(messages["reason"][sent & (messages["outcome"] == OUTCOME["rejected"])].tolist())
    assert {REASON["replay"], REASON["unknown_address"]} <= reasons
    assert not messages["used"][sent & (messages["outcome"] != OUTCOME["delivered"])].any()
    assert not messages["used"][sent & (messages["kind"] != KIND["control"])].any()
    assert rows(simulation)[0]["updates_missing"] == 0


def test_a_quorum_goes_on_without_stragglers() -> None:
    """The leader averages without the slow ones, whose updates are late; the round lasts until they have reported."""
    slow = "faults=[{kind: slow, fraction: 0.3, factor: 30}]"
    patient, hasty = run(slow, "rounds=1"), run(slow, "rounds=1", "protocol.finish={quorum: 0.6}")
    averaged_s = [float(one.log.aggregations["at_s"].max()) for one in (patient, hasty)]
    assert averaged_s[1] < averaged_s[0] / 5
    assert (rows(patient)[0]["updates_used"], rows(hasty)[0]["updates_used"]) == (7, 5)
    table = hasty.log.dropouts
    late = table["node"][table["what"] == WHAT["missing"]]
    assert (table["reason"] == DROPOUT_REASON["late"]).all()
    assert set(late.tolist()) >= set(hasty.log.faults[0]["who"]) & set(hasty.records[1].cohort.tolist())
    assert rows(hasty)[0]["end_s"] == pytest.approx(rows(patient)[0]["end_s"], rel=0.1)
