"""Promises that scenarios once broke, each as a small scenario of its own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from p2p.log import records
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from tests.by_hand import messages

pytestmark = pytest.mark.slow

COMMON = """
name: promise
data: {name: synthetic, samples: 400}
model: {kind: linear}
learning: none
"""


EACH_PROTOCOL = pytest.mark.parametrize(
    "protocol", ["kind: gossip, exchange_with: 3", "kind: rotating_leader", "kind: central"]
)


def run(text: str, *overrides: str) -> Simulation:
    """Runs a scenario to its end."""
    simulation = build(parse_scenario(COMMON + text, overrides=overrides))
    simulation.run()
    return simulation


def downs(simulation: Simulation) -> list[tuple[int, float]]:
    """Every node that went down, and when."""
    spans = simulation.log.spans
    rows = spans["name"] == records.SPAN["down"]
    return list(zip(spans["node"][rows].tolist(), spans["start_s"][rows].tolist(), strict=True))


def unexplained(simulation: Simulation, node: int, since_s: float) -> list[Any]:
    """Retransmissions of a node after an instant whose earlier attempt was made before it."""
    rows = [row for row in messages(simulation.log, sender=node) if row["sent_s"] > since_s]
    made = Counter((row["kind"], row["round"], row["receiver"], row["attempt"]) for row in rows)
    return [
        (*name, attempt)
        for (*name, attempt), count in made.items()
        if attempt > 1 and count > made[(*name, attempt - 1)]
    ]


CRASHES = """
rounds: 1
clients: 6
protocol: {kind: gossip, train_per_round: 6, exchange_with: 3, deadline: 40 s}
network: {loss: 0.4, retransmit: {tries: 6, timeout: 2 s}}
compute: 20 samples/s
"""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("back_s", [0.5, 3.0])
def test_messages_of_an_earlier_life_are_not_sent_again(seed: int, back_s: float) -> None:
    """A node crashes while messages of it wait for their retransmission, and is back before or after that."""
    whole = run(CRASHES, f"seed={seed}")
    again = [row for row in messages(whole.log) if row["attempt"] > 1 and row["kind"] == "update"]
    assert again
    # Half a second before a retransmission is due, so that its timer is running.
    crash_s, node = again[0]["sent_s"] - 0.5, again[0]["sender"]
    fault = f"faults=[{{kind: crash, who: {node}, start: {crash_s} s, end: {crash_s + back_s} s}}]"
    simulation = run(CRASHES, f"seed={seed}", fault)
    assert (node, crash_s) in [(who, pytest.approx(at_s)) for who, at_s in downs(simulation)]
    assert unexplained(simulation, node, crash_s) == []


CHURN = """
rounds: 2
clients: 24
protocol: {kind: rotating_leader, train_per_round: 19, deadline: 30 s}
network: {loss: 0.1}
availability: {kind: churn, mean_up: 40 s, mean_down: 5 s}
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_comes_back_leaves_nothing_of_its_earlier_life(seed: int) -> None:
    """Nothing is damaged here, so nothing is refused as corrupt: keys of another life open no message of this one."""
    simulation = run(CHURN, f"seed={seed}")
    assert len(downs(simulation)) > 10
    assert messages(simulation.log, reason="corrupt") == []
    for node, at_s in downs(simulation):
        assert unexplained(simulation, node, at_s) == []


CLOSES = """
rounds: 3
clients: 20
protocol: {PROTOCOL, train_per_round: 14, deadline: 6 s, grace: 1 s, selection: first_come}
network: {latency: {kind: uniform, low: 10 ms, high: 300 ms}, loss: 0.4, retransmit: {tries: 8, timeout: 2 s}}
compute: {kind: lognormal, median: 10 samples/s, sigma: 0.5}
"""


@EACH_PROTOCOL
@pytest.mark.parametrize("seed", range(3))
def test_nothing_of_a_round_is_sent_again_after_it_closed(protocol: str, seed: int) -> None:
    """Neither updates nor orders; only registrations, which are for the whole run, are counted in round 0."""
    simulation = run(CLOSES.replace("PROTOCOL", protocol), f"seed={seed}")
    ends_s = {record["round"]: record["end_s"] for record in simulation.log.rounds}
    rows = [row for row in messages(simulation.log) if row["round"] in ends_s and row["attempt"] > 1]
    assert len(rows) > 20
    late = [(row["kind"], row["round"], row["sent_s"]) for row in rows if row["sent_s"] > ends_s[row["round"]]]
    assert late == []


@EACH_PROTOCOL
def test_relays_and_an_intruder_get_along(protocol: str) -> None:
    """The intruder's messages go over relays or straight: refused in any case, and the run ends as it should."""
    world = f"""
rounds: 2
clients: 5
protocol: {{{protocol}, train_per_round: 4}}
anonymity: {{routing: relay}}
faults: [{{kind: intruder, every: 500 ms}}]
"""
    simulation = run(world)
    assert simulation.proxy.outcome.rounds_completed == 2
    table = simulation.log.messages
    # Clients, proxy, standby, tracker, server, relays; then intruders.
    foreign = table["origin"] >= simulation.scenario.clients + 4 + simulation.scenario.anonymity.relays
    assert foreign.any()
    assert not table["used"][foreign & (table["kind"] != records.KIND["control"])].any()


HEAVY = """
rounds: 2
clients: 16
protocol: {kind: gossip, train_per_round: 12, exchange_with: 2, deadline: 30 s, grace: 5 s, collect: mean}
anonymity: {sealed: sizes, routing: relay, relays: 5, hops: 2}
network: {sharing: fair, uplink: 500 B/s, downlink: 2 kB/s, latency: 50 ms, retransmit: {tries: 2, timeout: 0.5 s}}
compute: 200 samples/s
faults:
- {kind: duplicate, probability: 0.05, start: 1 s, end: 31 s}
- {kind: duplicate, probability: 0.3, start: 10 s, end: 40 s}
"""


@pytest.mark.parametrize("seed", [1, 2, 5969])
def test_time_does_not_run_backwards_under_fair_sharing(seed: int) -> None:
    """Equal slow links, relays and copies: many ends within a rounding error of each other."""
    simulation = run(HEAVY, f"seed={seed}")
    assert simulation.proxy.outcome.rounds_completed == 2
    table = simulation.log.messages
    arrived = ~np.isnan(table["arrived_s"])
    assert (table["left_s"][arrived] >= table["sent_s"][arrived]).all()
    assert (table["arrived_s"][arrived] >= table["left_s"][arrived]).all()


def test_the_standby_has_the_links_of_the_proxy() -> None:
    """The proxy goes down for good: what the standby sends takes as long as it would have taken the proxy."""
    world = """
rounds: 3
clients: 5
protocol: {kind: gossip, train_per_round: 4, exchange_with: 2}
proxy: {standby: true, takeover: 3 s}
network: {sharing: ideal, proxy_uplink: 1 kB/s, proxy_downlink: 2 kB/s}
faults: [{kind: crash, who: proxy, round: 2, phase: train}]
"""
    simulation = run(world)
    standby = simulation.scenario.clients + 1
    assert simulation.proxy.outcome.rounds_completed == 3
    sent = [row for row in messages(simulation.log, sender=standby, outcome="delivered") if row["receiver"] < 5]
    got = [row for row in messages(simulation.log, receiver=standby, outcome="delivered") if row["sender"] < 5]
    assert sent
    assert got
    for rows, rate in ((sent, 1000.0), (got, 2000.0)):
        for row in rows:
            assert row["left_s"] - row["sent_s"] == pytest.approx(row["size_bytes"] / rate)


def test_noise_shares_over_slow_downlinks_end() -> None:
    """Shares come too late for some, so that their sums have no member left."""
    world = """
rounds: 1
clients: 22
protocol: {kind: rotating_leader, train_per_round: 9, leader_timeout: 2 s}
noise_shares: {sigma_k: 0.1}
network: {downlink: {kind: lognormal, median: 2 kB/s, sigma: 0.6}}
"""
    for seed in range(3):
        assert run(world, f"seed={seed}").proxy.outcome.stopped_because


def test_a_proxy_that_is_away_for_a_second_does_not_stall_the_server() -> None:
    """Three rounds of two clients take seconds, with a proxy that is down for one second in the first."""
    world = """
rounds: 3
clients: 2
protocol: {kind: central, train_per_round: 2, deadline: 60 s}
"""
    calm = run(world)
    simulation = run(world, "faults=[{kind: crash, who: proxy, round: 1, lasts: 1 s}]")
    assert simulation.proxy.outcome.rounds_completed == 3
    assert simulation.clock.now < calm.clock.now + 30


DEADLINE = """
rounds: 1
clients: 4
protocol: {kind: gossip, train_per_round: 4, exchange_with: 2, deadline: 2 s, grace: 0 s}
network: {latency: 300 ms, loss: 0.0, uplink: 1 GB/s, downlink: 1 GB/s}
"""


@pytest.mark.parametrize(
    ("compute", "used"),
    [
        # 10 samples take 1.43 s, and 0.3 s later the update is there: 1.73 s after the assignment.
        ("7 samples/s", 8),
        # 10 samples take 1.82 s: the updates arrive 2.12 s after the assignment.
        ("5.5 samples/s", 0),
    ],
)
def test_the_deadline_runs_from_receipt_of_the_assignment(compute: str, used: int) -> None:
    """Two seconds from then, whatever the latency between the proxy and a member is."""
    simulation = run(DEADLINE, "data.samples=40", f"compute={compute}")
    assert [record["updates_used"] for record in simulation.log.rounds] == [used]
