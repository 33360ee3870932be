"""One leader and one model per round, however slow, lossy or short-lived leaders are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodes.roles.client import Client
from p2p.log import records
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from tests.by_hand import messages
from tests.conformance.test_tables import tables_of
from tests.outside_checks import violations

pytestmark = pytest.mark.slow

COMMON = """
name: one-leader
data: {name: synthetic, samples: 400}
model: {kind: linear}
learning: none
"""
WORLDS = {
    "incast": """
rounds: 1
clients: 22
protocol: {kind: rotating_leader, train_per_round: 9, leader_timeout: 2 s}
network: {downlink: 1 kB/s}
""",
    "unequal downlinks": """
rounds: 2
clients: 22
protocol: {kind: rotating_leader, train_per_round: 9, leader_timeout: 2 s}
network: {downlink: {kind: lognormal, median: 2 kB/s, sigma: 0.6}}
""",
    "loss without retransmission": """
rounds: 2
clients: 6
protocol: {kind: rotating_leader, train_per_round: 4, selection: first_come, deadline: 10 s, leader_timeout: 2 s}
network: {loss: 0.1, retransmit: {tries: 1}}
""",
    "large cohort with loss": """
rounds: 2
clients: 20
protocol: {kind: rotating_leader, train_per_round: 19, deadline: 20 s, leader_timeout: 10 s}
network: {latency: {kind: uniform, low: 10 ms, high: 300 ms}, loss: 0.1, retransmit: {tries: 1}}
""",
    "slow uplinks, loss and churn": """
rounds: 1
clients: 12
protocol: {kind: rotating_leader, train_per_round: 6, invite_window: 1 s, leader_timeout: 2 s}
network: {uplink: {kind: lognormal, median: 2 kB/s, sigma: 0.6}, latency: 100 ms, loss: 0.4}
availability: {kind: churn, mean_up: 40 s, mean_down: 5 s}
""",
    "barrier and short timeout": """
rounds: 3
clients: 40
protocol: {kind: rotating_leader, train_per_round: 28, deadline: 10 s, selection: first_come, send_at: barrier,
  leader_timeout: 2 s}
network: {latency: {kind: uniform, low: 10 ms, high: 300 ms}, loss: 0.1}
""",
    "slow broadcast and churn": """
rounds: 1
clients: 30
model: {kind: mlp, hidden: [64, 32]}
protocol: {kind: rotating_leader, train_per_round: 27, leader_timeout: 2 s}
privacy: {clip: {kind: flat, norm: 1.0}, noise: {kind: gaussian, sigma: 1.0}}
network: {uplink: 10 kB/s}
availability: {kind: churn, mean_up: 40 s, mean_down: 5 s}
""",
    "slow training and damage": """
rounds: 1
clients: 40
protocol: {kind: rotating_leader, train_per_round: 39, deadline: 5 s, leader_timeout: 3 s}
compute: {kind: lognormal, median: 4 samples/s, sigma: 0.5}
faults: [{kind: slow, who: [39]}, {kind: corrupt, probability: 0.3, start: 5 s}]
""",
}


def run(text: str, *overrides: str) -> Simulation:
    """Runs a scenario to its end."""
    common = "\n".join(line for line in COMMON.splitlines() if not text.count(f"\n{line.partition(':')[0]}:"))
    simulation = build(parse_scenario(common + text, overrides=overrides))
    simulation.run()
    return simulation


def aggregators(simulation: Simulation, round_number: int, *, void: bool) -> set[int]:
    """The nodes that averaged in a round, those whose average counts or the others."""
    table = simulation.log.aggregations
    return set(table["aggregator"][(table["round"] == round_number) & (table["void"] == void)].tolist())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("world", WORLDS)
def test_a_round_has_one_leader_and_one_model(world: str, seed: int) -> None:
    """Two nodes once averaged in each of these worlds, and their tables contradicted each other."""
    simulation = run(WORLDS[world], f"seed={seed}")
    assert simulation.log.rounds
    assert violations(tables_of(simulation)) == []


CLOSE_BYTES, VERDICT_BYTES = 99, 111
"""Sealed: 98 bytes around 1 and 13."""


def test_a_deposed_leader_keeps_its_old_model() -> None:
    """It averages after another was elected: the proxy refuses, so it neither hands on nor keeps the result."""
    deposed = 0
    for seed in range(12):
        simulation = run(WORLDS["incast"], f"seed={seed}")
        (row,) = simulation.log.rounds
        for node in aggregators(simulation, 1, void=True):
            deposed += 1
            assert node != row["leader"]
            assert simulation.clients[node].model_round == 0
            assert messages(simulation.log, sender=node, kind="model") == []
    assert deposed > 0


FIVE = """
rounds: 2
clients: 5
protocol: {kind: rotating_leader, train_per_round: 5, deadline: 30 s, leader_timeout: 4 s, model_deadline: 30 s}
network: {sharing: ideal, latency: 100 ms, uplink: 10 kB/s, downlink: 100 kB/s}
"""


def committed_s(simulation: Simulation, round_number: int) -> float:
    """When the leader handed its models over, which is when it learned that its average is the round's model."""
    return float(min(row["sent_s"] for row in messages(simulation.log, kind="model", round=round_number)))


def test_a_leader_that_crashes_before_the_commit_is_replaced() -> None:
    """The proxy's answer is on its way: it reaches no process that could act on it, so another leader is elected."""
    calm = run(FIVE)
    leader, at_s = calm.log.rounds[0]["leader"], committed_s(calm, 1)
    crash = f"faults=[{{kind: crash, who: {leader}, start: {at_s - 0.05} s, end: {at_s + 60} s}}]"
    simulation = run(FIVE, crash)
    row = simulation.log.rounds[0]
    assert row["leader"] != leader
    assert (row["updates_used"], row["skipped"]) == (3, False)
    assert aggregators(simulation, 1, void=True) == {leader}
    assert violations(tables_of(simulation)) == []


def test_no_leader_is_elected_after_the_commit() -> None:
    """The leader crashes while some of its models are under way; a member that has the model hands it on."""
    slow = ("network.sharing=fifo", "network.uplink=2 kB/s")
    calm = run(FIVE, *slow)
    leader, at_s = calm.log.rounds[0]["leader"], committed_s(calm, 1)
    size = messages(calm.log, kind="model", round=1)[0]["size_bytes"]
    crash_s = at_s + 1.5 * size / 2000  # one model has left, three have not
    simulation = run(FIVE, *slow, f"faults=[{{kind: crash, who: {leader}, start: {crash_s} s, end: {at_s + 60} s}}]")
    row = simulation.log.rounds[0]
    assert (row["leader"], row["updates_used"]) == (leader, 4)
    assert aggregators(simulation, 1, void=False) == {leader}
    models = [row for row in messages(simulation.log, kind="model", round=1) if row["used"]]
    assert len(models) == 4
    assert {row["sender"] == leader for row in models} == {True, False}
    assert violations(tables_of(simulation)) == []


def test_a_commit_without_a_model_ends_the_round() -> None:
    """The leader crashes before any model has left: no election; it is the holder when it is back."""
    calm = run(FIVE, "network.uplink=1 kB/s")
    leader, at_s = calm.log.rounds[0]["leader"], committed_s(calm, 1)
    crash = f"faults=[{{kind: crash, who: {leader}, start: {at_s + 0.01} s, end: {at_s + 20} s}}]"
    simulation = run(FIVE, "network.uplink=1 kB/s", crash)
    first, second = simulation.log.rounds
    assert (first["leader"], first["updates_used"], first["skipped"]) == (leader, 4, False)
    assert [row for row in messages(simulation.log, kind="model", round=1) if row["used"]] == []
    # The round ends when the members are told, not when their time is up.
    assert first["end_s"] < at_s + 20
    handed = messages(simulation.log, kind="handover", round=2)
    assert {row["sender"] for row in handed} == {leader}
    assert len(handed) == 4
    assert second["updates_used"] == 4
    assert violations(tables_of(simulation)) == []


@pytest.mark.parametrize("proxy", ["{standby: false}", "{standby: true, takeover: 2 s}"])
def test_a_request_survives_the_proxy(proxy: str) -> None:
    """The proxy goes down before it has answered; the leader asks again when it, or the standby, is there."""
    calm = run(FIVE)
    at_s = committed_s(calm, 1)
    crash = f"faults=[{{kind: crash, who: proxy, start: {at_s - 0.15} s, end: {at_s + 3} s}}]"
    simulation = run(FIVE, crash, f"proxy={proxy}", "network.retransmit={tries: 1}")
    row = simulation.log.rounds[0]
    assert (row["leader"], row["updates_used"]) == (calm.log.rounds[0]["leader"], 4)
    # It does not wait for its own timeout of 4 s: the repeated assignment tells that the proxy is back.
    back_s = at_s - 0.15 + 2 if "true" in proxy else at_s + 3
    assert back_s < committed_s(simulation, 1) < back_s + 0.5
    assert violations(tables_of(simulation)) == []


def test_a_plan_is_on_record_although_the_proxy_goes_down_while_it_appoints() -> None:
    """The proxy has sent a new leader its assignment and goes down before that one has confirmed.

    Three updates are left of the four that are needed, so no commit tells the proxy who leads.
    """
    lost, few = "{kind: crash, who: leader, round: 1, phase: aggregate}", "protocol.min_updates=4"
    calm = run(FIVE, f"faults=[{lost}]", "rounds=1", few)
    leader, proxy = calm.log.rounds[0]["leader"], calm.world.proxy
    # After its first assignment, the next thing that the proxy sends this member makes it leader.
    appointed_s = sorted(row["sent_s"] for row in messages(calm.log, sender=proxy, receiver=leader, round=1))[2]
    down = f"{{kind: crash, who: proxy, start: {appointed_s + 0.05} s, end: {appointed_s + 1} s}}"
    simulation = run(FIVE, f"faults=[{lost}, {down}]", "rounds=1", few)
    (row,) = simulation.log.rounds
    assert (row["leader"], row["skipped"]) == (leader, True)
    assert leader in simulation.log.graphs["receiver"]
    assert violations(tables_of(simulation)) == []


def test_a_grant_that_comes_too_late_is_asked_for_again() -> None:
    """Retransmissions take longer than the lease: a leader acts on an answer of at most `leader_timeout` ago."""
    lossy = ("network.loss=0.4", "network.retransmit={tries: 4, timeout: 5 s}", "protocol.leader_timeout=3 s")
    too_late = 0
    for seed in range(30):
        simulation = run(FIVE, *lossy, f"seed={seed}", "rounds=1")
        (row,) = simulation.log.rounds
        answers = messages(simulation.log, receiver=row["leader"], size_bytes=VERDICT_BYTES)
        arrived_s = {one["arrived_s"] for one in answers if one["outcome"] == "delivered"}
        first = [one["sent_s"] for one in answers if one["attempt"] == 1]
        late = [at_s for at_s in arrived_s if not any(at_s - 3 <= sent_s <= at_s for sent_s in first)]
        too_late += len(late)
        if not row["skipped"]:
            assert committed_s(simulation, 1) in arrived_s - set(late)
        assert violations(tables_of(simulation)) == []
    assert too_late > 0


@pytest.mark.parametrize("seed", [49, 266, 379, 429])
def test_no_leader_is_elected_while_a_grant_is_on_its_way(seed: int) -> None:
    """A probe of the leader is lost, and its request is granted meanwhile: it is not replaced before the lease ends."""
    lossy = ("network.loss=0.5", "network.retransmit={tries: 6, timeout: 1 s}", "protocol.leader_timeout=3 s")
    simulation = run(FIVE, *lossy, f"seed={seed}", "rounds=1", "protocol.deadline=10 s")
    assert violations(tables_of(simulation)) == []


def test_a_deposed_leader_does_not_average_what_it_has() -> None:
    """It learns that another leads while it waits for updates."""
    told = 0
    for seed in range(40):
        simulation = run(WORLDS["loss without retransmission"], f"seed={seed}", "network.loss=0.2")
        table = simulation.log.aggregations
        for node, number, _, end_s in spans_of(simulation, "wait"):
            closed = messages(simulation.log, receiver=node, size_bytes=CLOSE_BYTES, round=number, arrived_s=end_s)
            told += len(closed)
            assert not closed or end_s not in table["at_s"][table["aggregator"] == node]
    assert told > 0


def test_each_holder_hands_the_model_on_once() -> None:
    """A member out of reach of those that have the model must not keep its round open for ever."""
    slow = ("network.sharing=fifo", "network.uplink=2 kB/s", "rounds=1")
    calm = run(FIVE, *slow)
    leader, at_s = calm.log.rounds[0]["leader"], committed_s(calm, 1)
    models = messages(calm.log, kind="model", round=1)
    first = min(models, key=lambda row: row["arrived_s"])["receiver"]
    crash_s = at_s + 1.5 * models[0]["size_bytes"] / 2000
    cut = [node for node in range(5) if node not in (leader, first)]
    faults = (
        f"{{kind: crash, who: {leader}, start: {crash_s} s, end: {crash_s + 500} s}}",
        f"{{kind: partition, between: [{first}, {cut}], start: {crash_s} s}}",
    )
    simulation = run(FIVE, *slow, f"faults=[{', '.join(faults)}]")
    (row,) = simulation.log.rounds
    assert row["leader"] == leader
    served = messages(simulation.log, sender=first, kind="model", attempt=1)
    assert len(served) == 3
    assert violations(tables_of(simulation)) == []


def spans_of(simulation: Simulation, name: str) -> list[tuple[int, int, float, float]]:
    """Spans of one name as (node, round, start, end)."""
    table = simulation.log.spans
    rows = table["name"] == records.SPAN[name]
    columns: Any = (table[column][rows].tolist() for column in ("node", "round", "start_s", "end_s"))
    return list(zip(*columns, strict=True))


def test_a_member_that_missed_the_deadline_does_not_train_on_for_a_new_leader() -> None:
    """It trains for 9 s where the deadline is 6 s; meanwhile another leader is elected, with a deadline of its own."""
    world = """
rounds: 1
clients: 5
protocol: {kind: rotating_leader, train_per_round: 5, deadline: 6 s, leader_timeout: 1 s}
faults: [{kind: slow, who: [0], factor: 18}, {kind: crash, who: leader, round: 1, phase: train}]
"""
    elected = 0
    for seed in range(8):
        simulation = run(world, f"seed={seed}", "compute=160 samples/s")
        elected += len(set(simulation.log.graphs["receiver"].tolist())) > 1
        trained = [(node, number) for node, number, _, _ in spans_of(simulation, "train")]
        assert len(set(trained)) == len(trained)
        assert (1, 0) not in set(
            zip(simulation.log.aggregations["round"], simulation.log.aggregations["contributor"], strict=True)
        )
        assert violations(tables_of(simulation)) == []
    assert elected > 0


def test_a_round_starts_once_although_its_proxy_goes_down() -> None:
    """The proxy is away for three seconds while it invites: the round began before."""
    world = FIVE + "compute: 40 samples/s\n"
    calm = run(world)
    start_s = calm.log.rounds[1]["start_s"]
    fault = f"faults=[{{kind: crash, who: proxy, start: {start_s + 0.05} s, end: {start_s + 3} s}}]"
    simulation = run(world, fault)
    assert simulation.log.rounds[1]["start_s"] == start_s
    assert violations(tables_of(simulation)) == []


def test_a_member_that_is_done_is_not_invited_again_by_a_newer_plan() -> None:
    """The span of its invitation ends with its first assignment."""
    for seed in range(6):
        simulation = run(WORLDS["loss without retransmission"], f"seed={seed}")
        invited = [(node, number) for node, number, _, _ in spans_of(simulation, "invite")]
        assert len(set(invited)) == len(invited)


def test_an_update_is_not_sent_to_a_leader_that_was_replaced_meanwhile() -> None:
    """A slow member still trains when another leader is elected: its update goes to that one only."""
    world = """
rounds: 1
clients: 6
protocol: {kind: rotating_leader, train_per_round: 6, deadline: 60 s, leader_timeout: 2 s}
network: {sharing: ideal, latency: 50 ms}
faults: [{kind: crash, who: leader, round: 1, phase: train}, {kind: slow, who: [0], factor: 20}]
"""
    met = 0
    for seed in range(8):
        simulation = run(world, f"seed={seed}", "compute=40 samples/s")
        leader = simulation.log.rounds[0]["leader"]
        sent = {row["receiver"] for row in messages(simulation.log, sender=0, kind="update")}
        if 0 in simulation.records[1].edges["update"][:, 0]:
            met += 1
            assert sent == {leader}
    assert met > 0


def test_a_leader_is_charged_for_its_own_update_only_if_its_model_is_handed_over() -> None:
    """A refused average stays where it was made."""
    private = "privacy={clip: flat, noise: {kind: gaussian, sigma: 1.0}}"
    refused = 0
    for seed in range(12):
        simulation = run(WORLDS["incast"], f"seed={seed}", private)
        table = simulation.log.privacy
        charged = set(table["node"][table["round"] == 1].tolist())
        sent = {row["sender"] for row in messages(simulation.log, kind="update", round=1)}
        for node in aggregators(simulation, 1, void=True) - sent:
            refused += 1
            assert node not in charged
    assert refused > 0


def test_clients_hold_no_model_of_a_round_but_the_committed_one() -> None:
    """With learning: every client whose model is of the last round has, to the bit, the leader's."""
    text = WORLDS["unequal downlinks"].replace("rounds: 2", "rounds: 3")
    for seed in range(3):
        simulation = run(text, f"seed={seed}", "learning=torch")
        row = simulation.log.rounds[-1]
        learning = simulation.deferred_learning
        assert learning is not None
        holders: list[Client] = [client for client in simulation.clients if client.model_round == row["round"]]
        assert len(holders) > 2
        vectors = [learning.model(client.node).array() for client in holders]
        assert all(np.array_equal(vectors[0], vector) for vector in vectors)
        assert row["leader"] in {client.node for client in holders}
