"""What every protocol keeps: it ends, its totals add up, nothing is used twice or too late, seeds repeat."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodes.protocols import PROTOCOLS
from nodes.protocols.redraws import EveryRound
from p2p.clock import Rank
from p2p.log import records
from p2p.log.log import Log
from scenarios.composition.simulation import Simulation
from scenarios.run_folder.digest import events_digest
from tests.random_worlds import FEW, LOSSES, MANY, balance, worlds
from topologies.random_graphs import RandomRegular

Prepare = Callable[..., Simulation]
OUT_OF_REACH = [
    *("clients=8", "data.samples=160", "seed=6120", "rounds=1", "anonymity.sealed=true"),
    "protocol={kind: rotating_leader, train_per_round: 7, deadline: 60 s, selection: uniform, send_at: ready, "
    "include_own: false, finish: all, invite_timeout: 60 s, grace: 0 s}",
    *("network.sharing=fair", "network.uplink=300 B/s", "network.downlink=300 B/s", "network.loss=0.5"),
    "network.latency={kind: uniform, low: 10 ms, high: 400 ms}",
    "compute={kind: lognormal, median: 20 samples/s, sigma: 0.5}",
]
"""The proxy loses sight of a leader that is alive, and averages after another was asked to lead."""


RECALLED = [
    *("clients=8", "data.samples=160", "seed=3", "rounds=17", "model={kind: linear}", "learning=none"),
    "data={name: synthetic, samples: 160, test_samples: 40, features: 6, classes: 3}",
    "protocol={kind: rotating_leader, train_per_round: 5, deadline: 12 s, leader_timeout: 3 s, model_deadline: 12 s}",
    *("network.sharing=fifo", "network.downlink=1 Mbit/s", "network.loss=0.05"),
    "network.uplink={kind: lognormal, median: 200 kbit/s, sigma: 0.8}",
    "network.latency={kind: uniform, low: 20 ms, high: 120 ms}",
    "compute={kind: lognormal, median: 10 samples/s, sigma: 0.7}",
    "faults=[{kind: corrupt, probability: 0.1}, {kind: slow, fraction: 0.3, factor: 8}]",
]
"""Members have the old leader's model, and have said so, when the proxy turns to them for another leader."""


@pytest.mark.slow
@pytest.mark.soak
@MANY
@given(worlds(sorted(PROTOCOLS), LOSSES))
@example(RECALLED)
def test_no_client_trains_twice_in_a_round(prepare: Prepare, world: list[str]) -> None:
    """No node crashes here, so a second training would be a second release, with new noise, of the same round."""
    simulation = prepare(*world)
    simulation.run()
    spans = simulation.log.spans
    rows = spans["name"] == records.SPAN["train"]
    pairs = list(zip(spans["node"][rows].tolist(), spans["round"][rows].tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)


@pytest.mark.slow
@pytest.mark.soak
@MANY
@given(worlds(sorted(PROTOCOLS), LOSSES), st.lists(st.floats(0.05, 60), max_size=4))
def test_totals_add_up_at_every_instant(prepare: Prepare, world: list[str], instants: list[float]) -> None:
    """By messages, bytes and kind; an outcome, once written, stays; what is under way has not arrived."""
    simulation = prepare(*world)
    seen: list[np.ndarray[Any, Any]] = []
    for at_s in instants:
        simulation.clock.call_at(at_s, Rank.START, 10**6, lambda: seen.append(balance(simulation)))
    simulation.run()
    final = balance(simulation)
    for outcomes in sorted(seen, key=len):
        ended = outcomes != records.OUTCOME["in_flight"]
        assert (final[: len(outcomes)][ended] == outcomes[ended]).all()
    ended_s = simulation.log.messages["arrived_s"][final == records.OUTCOME["delivered"]]
    assert (ended_s <= simulation.clock.now).all()


@pytest.mark.slow
@pytest.mark.soak
@MANY
@given(worlds(sorted(PROTOCOLS), LOSSES))
@example(OUT_OF_REACH)
def test_no_update_is_used_twice_from_elsewhere_or_too_late(prepare: Prepare, world: list[str]) -> None:
    """Every contribution is an update of this round, along an edge of its graph, there before the deadline.

    What a leader averaged whom the proxy could not reach is void, and its updates are not marked as used.
    """
    simulation = prepare(*world)
    simulation.run()
    log, deadline_s = simulation.log, simulation.scenario.protocol.deadline
    table, messages = log.aggregations, log.messages
    columns = (table[name].tolist() for name in ("round", "aggregator", "contributor", "at_s", "void"))
    rows = list(zip(*columns, strict=True))
    assert len({row[:3] for row in rows}) == len(rows)
    edges = set(zip(*(log.graphs[name].tolist() for name in ("round", "sender", "receiver")), strict=True))
    used = arrivals(log)
    for number, aggregator, contributor, at_s, void in rows:
        if contributor == aggregator:
            assert simulation.scenario.protocol.include_own
            continue
        assert (number, contributor, aggregator) in edges
        assert void == ((number, contributor, aggregator) not in used)
        assert used.pop((number, contributor, aggregator), at_s) <= at_s
        if aggregator < simulation.scenario.clients:
            assert at_s <= last_order_s(simulation, number, aggregator, at_s) + deadline_s + 1e-9
    assert used == {}, "marked as used and not averaged"
    assert not messages["used"][messages["outcome"] == records.OUTCOME["lost"]][
        messages["kind"][messages["outcome"] == records.OUTCOME["lost"]] != records.KIND["control"]
    ].any()


def arrivals(log: Log) -> dict[tuple[int, int, int], float]:
    """When each update that was used arrived, by round, sender and receiver."""
    messages = log.messages
    rows = messages["used"] & (messages["kind"] == records.KIND["update"])
    assert (messages["outcome"][rows] == records.OUTCOME["delivered"]).all()
    columns = (messages[name][rows].tolist() for name in ("round", "sender", "receiver", "arrived_s"))
    found = [((number, sender, receiver), at_s) for number, sender, receiver, at_s in zip(*columns, strict=True)]
    assert len(dict(found)) == len(found)
    return dict(found)


def last_order_s(simulation: Simulation, round_number: int, node: int, until_s: float) -> float:
    """When a node last heard from the proxy in a round: a member may be appointed leader in the middle of it."""
    table = simulation.log.messages
    rows = (table["receiver"] == node) & (table["round"] == round_number) & (table["arrived_s"] <= until_s)
    return float(table["arrived_s"][rows & (table["kind"] == records.KIND["control"])].max())


@pytest.mark.slow
@pytest.mark.soak
@FEW
@given(worlds(["gossip"], st.just(0.0)))
def test_gossip_sends_once_over_every_edge(prepare: Prepare, world: list[str]) -> None:
    """Without loss, exactly, whenever all are trained before the deadline; degree times cohort by default."""
    simulation = prepare(*world, "protocol.deadline=600 s")
    simulation.run()
    protocol: Any = simulation.scenario.protocol
    for number in range(1, simulation.proxy.outcome.rounds_completed + 1):
        sent = count(simulation, "update", number)
        assert sent == np.count_nonzero(simulation.log.graphs["round"] == number)
        if protocol.graph == RandomRegular() and protocol.redraw == EveryRound():
            assert sent == protocol.exchange_with * protocol.train_per_round


@pytest.mark.slow
@pytest.mark.soak
@FEW
@given(worlds(["rotating_leader"], st.just(0.0)))
def test_a_leader_costs_one_less_than_the_cohort(prepare: Prepare, world: list[str]) -> None:
    """m - 1 updates and m - 1 models, if nothing is late, no leader counts as lost, and one update is enough."""
    times = (f"protocol.{name}=600 s" for name in ("deadline", "model_deadline", "leader_timeout"))
    simulation = prepare(*world, *times, "protocol.min_updates=1")
    simulation.run()
    for number in range(1, simulation.proxy.outcome.rounds_completed + 1):
        for kind in ("update", "model"):
            assert count(simulation, kind, number) == simulation.scenario.protocol.cohort_size - 1


def count(simulation: Simulation, kind: str, round_number: int) -> int:
    """How many messages of a kind a round handed over."""
    table = simulation.log.messages
    return int(np.count_nonzero((table["kind"] == records.KIND[kind]) & (table["round"] == round_number)))


@pytest.mark.slow
@pytest.mark.soak
@FEW
@given(worlds(sorted(PROTOCOLS), LOSSES))
def test_equal_seeds_give_equal_events(prepare: Prepare, world: list[str]) -> None:
    """Run twice, the same digest; another seed, another one."""
    digests = []
    for extra in ([], [], ["seed=10001"]):
        simulation = prepare(*world, *extra)
        simulation.run()
        digests.append(events_digest(simulation.log))
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.slow
@pytest.mark.soak
@FEW
@given(worlds(sorted(PROTOCOLS), LOSSES))
def test_rounds_follow_each_other_and_are_recorded(prepare: Prepare, world: list[str]) -> None:
    """One row per completed round, none overlapping, all members known, every span inside the run."""
    simulation = prepare(*world)
    simulation.run()
    rounds, log = simulation.log.rounds, simulation.log
    assert [row["round"] for row in rounds] == list(range(1, simulation.proxy.outcome.rounds_completed + 1))
    assert all(earlier["end_s"] <= later["start_s"] for earlier, later in pairwise(rounds))
    assert all(row["cohort"] == simulation.scenario.protocol.cohort_size for row in rounds)
    assert (log.spans["start_s"] < log.spans["end_s"]).all()
    assert (log.spans["end_s"] <= simulation.clock.now + 1e-9).all()
    used = sum(row["updates_used"] for row in rounds)
    assert used == np.count_nonzero(log.messages["used"] & (log.messages["kind"] == records.KIND["update"]))


@pytest.mark.parametrize("kind", sorted(PROTOCOLS))
def test_a_protocol_has_the_verbs_of_a_protocol(kind: str) -> None:
    """`arrange` for the proxy, `take_part` for members, and how long it takes at most."""
    protocol = PROTOCOLS[kind](train_per_round=4)
    assert protocol.cohort_size == 4
    assert protocol.longest_s >= protocol.deadline
    assert callable(protocol.plan_round)
    assert callable(protocol.take_part)


@pytest.mark.slow
def test_protocols_meet_the_same_world(prepare: Prepare) -> None:
    """On one seed every protocol gets the same links, speeds and cohorts."""
    told = []
    for protocol in (
        "{kind: gossip, train_per_round: 4, exchange_with: 2}",
        "{kind: rotating_leader, train_per_round: 4}",
    ):
        simulation = prepare(
            "clients=9",
            "data.samples=180",
            "rounds=5",
            f"protocol={protocol}",
            "network.uplink={kind: lognormal, median: 1 MB/s, sigma: 0.5}",
            "network.latency={kind: uniform, low: 10 ms, high: 90 ms}",
            "compute={kind: lognormal, median: 20 samples/s, sigma: 0.5}",
        )
        simulation.run()
        cohorts = [simulation.records[number].cohort.tolist() for number in range(1, 6)]
        registered = simulation.log.messages["arrived_s"][:9].tolist()
        told.append((cohorts, registered, [client.profile.train_s for client in simulation.clients]))
    assert told[0] == told[1]
