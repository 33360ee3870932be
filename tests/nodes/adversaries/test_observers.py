"""What each position sees: stories by hand, random worlds against a plain reading of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodes.learning.deferred_learning import DeferredLearning
from privacy.attacks.observation_columns import IN, MEMBER, OUT, UNKNOWN
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from tests.by_hand import messages
from tests.random_worlds import TIMES, troubled_worlds

Prepare = Callable[..., Simulation]
ALL = (
    "adversaries=[{kind: peer, who: 0}, {kind: coalition, who: [0, 2]}, {kind: server}, {kind: eavesdropper}, "
    "{kind: eavesdropper, name: tap, links: [1]}, {kind: model}, {kind: proxy}, "
    "{kind: proxy, name: proxy-and-0, peers: 0}]"
)
LEARNT = """
name: watched
seed: 4
rounds: 3
clients: 6
data: {name: synthetic, samples: 120, features: 6, classes: 3}
model: {kind: linear}
protocol: {kind: gossip, train_per_round: 5, exchange_with: 2, deadline: 20 s}
privacy: {clip: {kind: flat, norm: 1.0}, noise: {kind: gaussian, sigma: 0.05}}
network: {sharing: fair, uplink: 1 MB/s, downlink: 1 MB/s, latency: 50 ms, loss: 0.1}
"""


def columns_of(simulation: Simulation, name: str) -> dict[str, Any]:
    """All rows of an observer, with the truth."""
    recorder = simulation.observer.recorder
    assert recorder is not None
    recorder.finish(simulation.log)
    parts = [part for part in recorder.watches[name].take() if "truth.origin" in part]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0] if "." in key}


def watch(*overrides: str) -> tuple[Simulation, dict[str, dict[str, Any]]]:
    """A run with learning, and all tensors of each observer."""
    simulation = build(parse_scenario(LEARNT, overrides=overrides), threads=1)
    simulation.run()
    recorder = simulation.observer.recorder
    assert recorder is not None
    recorder.finish(simulation.log)
    found: dict[str, dict[str, Any]] = {}
    for name, one in recorder.watches.items():
        parts: dict[str, list[Any]] = {}
        for part in one.take():
            for key, array in part.items():
                parts.setdefault(key, []).append(array)
        found[name] = {key: np.concatenate(arrays) for key, arrays in parts.items()}
    return simulation, found


def test_a_peer_sees_what_reaches_it(simulate: Callable[..., Simulation]) -> None:
    """Three clients, one round, times by hand: control messages, two updates, its own one, and nothing else."""
    simulation = simulate(ALL)
    seen = columns_of(simulation, "peer")
    updates = (seen["rows.kind"] == 2) & (seen["rows.direction"] == IN)
    log = [row for row in messages(simulation.log, kind="update") if row["receiver"] == 0]
    assert sorted(seen["rows.at_s"][updates].tolist()) == sorted(row["arrived_s"] for row in log)
    assert sorted(seen["truth.origin"][updates].tolist()) == [1, 2]
    assert (seen["rows.identity"] == UNKNOWN).all()
    assert (seen["rows.other"] == UNKNOWN).all()
    assert (seen["rows.by"] == 0).all()
    own = (seen["rows.direction"] == OUT) & (seen["rows.kind"] == 2)
    assert seen["truth.origin"][own].tolist() == [0]
    # Without learning there are no vectors to keep.
    assert (seen["rows.vector"] == UNKNOWN).all()


def test_an_eavesdropper_sees_links_times_and_sizes_only(simulate: Callable[..., Simulation]) -> None:
    """No kind, no pseudonym, no round, no other end; each message once per tapped link."""
    simulation = simulate(ALL, "anonymity.sealed=sizes")
    tap, every = columns_of(simulation, "tap"), columns_of(simulation, "eavesdropper")
    for seen in (tap, every):
        for name in ("kind", "round", "other", "identity", "vector"):
            assert (seen[f"rows.{name}"] == UNKNOWN).all()
        assert not seen["rows.sender"].any()
    rows = messages(simulation.log)
    up = [(row["left_s"], row["size_bytes"]) for row in rows if row["sender"] == 1]
    down = [(row["arrived_s"], row["size_bytes"]) for row in rows if row["receiver"] == 1]
    assert sorted(zip(tap["rows.at_s"].tolist(), tap["rows.size_bytes"].tolist(), strict=True)) == sorted(up + down)
    clients = [row for row in rows if row["sender"] < 3], [row for row in rows if row["receiver"] < 3]
    assert len(every["rows.at_s"]) == len(clients[0]) + len(clients[1])


def test_relays_show_the_other_end(simulate: Callable[..., Simulation]) -> None:
    """On an access link the next hop is visible: a relay, never the true other end."""
    simulation = simulate(
        ALL, "anonymity={sealed: sizes, routing: relay, relays: 3, hops: 2}", "network.relay_uplink=1 MB/s"
    )
    tap = columns_of(simulation, "tap")
    relayed = tap["rows.other"] >= 3 + 4
    assert relayed.any()
    assert (tap["rows.other"] != UNKNOWN).all()
    assert (tap["rows.other"] >= 3).all()


def test_the_proxy_knows_who_is_who(simulate: Callable[..., Simulation]) -> None:
    """Members with their addresses, identities of senders, no payload; with a peer also its updates, identified."""
    simulation = simulate(ALL)
    alone, together = columns_of(simulation, "proxy"), columns_of(simulation, "proxy-and-0")
    members = alone["rows.kind"] == MEMBER
    assert alone["rows.identity"][members].tolist() == [0, 1, 2]
    assert alone["rows.sender"][members].any(axis=1).all()
    assert set(alone["rows.kind"][~members].tolist()) == {0}
    updates = together["rows.kind"] == 2
    assert (together["rows.identity"][updates] == together["truth.origin"][updates]).all()
    assert set(together["truth.origin"][updates].tolist()) == {0, 1, 2}


REPEATED = (
    *("clients=6", "data.samples=120", "data.features=1", "seed=1116", "rounds=1", "anonymity.rehash=chained"),
    "protocol={kind: gossip, train_per_round: 5, exchange_with: 2, deadline: 20 s, grace: 1 s, invite_window: 30 s, "
    "invite_timeout: 200 s, min_updates: 0, selection: uniform}",
    *("network.sharing=ideal", "network.uplink=40 B/s", "network.downlink=300 B/s", "network.loss=0.5"),
    *("network.latency={kind: lognormal, median: 1 s, sigma: 1.5}", "network.retransmit={tries: 2, timeout: 6 s}"),
    "faults=[{kind: intruder, every: 500 ms, start: 0 s, end: 1 s}, {kind: crash, who: 3, start: 0 s, end: 3 s}]",
    "proxy={standby: false, takeover: 1 s}",
)
"""A world in which the set-up is repeated and has not drained when its round begins."""


def test_the_proxy_sees_members_only(simulate: Callable[..., Simulation]) -> None:
    """Not those that had an address from the round's set-up: neither the server nor clients that stay out."""
    simulation = simulate("anonymity.sealed=true", "adversaries=[{kind: proxy}]", *REPEATED)
    seen = columns_of(simulation, "proxy")
    members = seen["truth.origin"][seen["rows.kind"] == MEMBER].tolist()
    assert members == simulation.records[1].cohort.tolist()
    assert len(members) < 6


@pytest.mark.slow
@settings(max_examples=40 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(troubled_worlds(), st.integers(0, 2))
def test_rows_are_those_of_the_log_in_every_world(prepare: Prepare, world: list[str], peer: int) -> None:
    """Under every fault: each arrival at the peer once, whatever became of it, and each byte on a link once."""
    simulation = prepare(*world, ALL.replace("who: 0}", f"who: {peer}}}", 1))
    simulation.run()
    seen, tap = columns_of(simulation, "peer"), columns_of(simulation, "eavesdropper")
    came = [
        row for row in messages(simulation.log, destination=peer, receiver=peer)
        if row["outcome"] in ("delivered", "rejected")
    ]  # fmt: skip
    arrivals = seen["rows.direction"] == IN
    found = zip(
        seen["rows.at_s"][arrivals], seen["rows.size_bytes"][arrivals], seen["truth.origin"][arrivals], strict=True
    )
    assert sorted(map(tuple, found)) == sorted((row["arrived_s"], row["size_bytes"], row["origin"]) for row in came)
    clients = simulation.scenario.clients
    ended = [row for row in messages(simulation.log) if row["outcome"] != "in_flight"]
    up = sum(row["left_bytes"] for row in ended if row["sender"] < clients)
    down = sum(row["size_bytes"] for row in ended if 0 <= row["receiver"] < clients and np.isfinite(row["arrived_s"]))
    assert tap["rows.size_bytes"].sum() == up + down


@pytest.mark.slow
def test_vectors_are_those_that_were_sent() -> None:
    """Every update that a coalition received is its sender's release of that round; identical ones are kept once."""
    released: dict[tuple[int, int], Any] = {}
    simulation = build(parse_scenario(LEARNT, overrides=(ALL, "network.loss=0")), threads=1)
    learning = simulation.deferred_learning
    assert learning is not None
    usual = learning.forget

    def keep(round_number: int) -> None:
        for (number, node), row in ((key, row) for key, row in _releases(learning).items()):
            if number == round_number:
                released[number, node] = row.copy()
        usual(round_number)

    learning.forget = keep  # type: ignore[method-assign]
    simulation.run()
    recorder = simulation.observer.recorder
    assert recorder is not None
    recorder.finish(simulation.log)
    parts = recorder.watches["coalition"].take()
    for number in (1, 2, 3):
        vectors = np.concatenate([part[f"round-{number}"] for part in parts if f"round-{number}" in part])
        assert len(np.unique(vectors, axis=0)) == len(vectors)
        for part in (part for part in parts if "truth.origin" in part):
            rows = (part["rows.round"] == number) & (part["rows.vector"] >= 0) & (part["rows.kind"] == 2)
            for place, origin in zip(part["rows.vector"][rows], part["truth.origin"][rows], strict=True):
                np.testing.assert_array_equal(vectors[place], released[number, origin])


def _releases(learning: DeferredLearning) -> dict[tuple[int, int], Any]:
    return {(number, node): row for (what, number, node), row in learning.state().given.items() if what == "release"}


@pytest.mark.slow
def test_rounds_and_limits_are_kept_and_stated() -> None:
    """Only the rounds asked for; whole rounds up to the limit, then none; rows stay."""
    dimension = 6 * 3 + 3
    _, found = watch(
        "adversaries=[{kind: coalition, size: 6, keep: {rounds: '2'}}, "
        f"{{kind: server}}, {{kind: coalition, name: little, size: 6, keep: {{limit: {5 * dimension * 4 + 10}}}}}]",
        "network.loss=0",
    )
    # Round 0 hands out the first model, which all have.
    assert {key for key in found["coalition"] if key.startswith("round")} == {"round-0", "round-2"}
    assert len(found["coalition"]["round-2"]) == 5
    # The set-up hands one model to all, the first round has five updates: no room for both.
    assert {key for key in found["little"] if key.startswith("round")} == {"round-0"}
    assert len(found["little"]["rows.at_s"]) == len(found["coalition"]["rows.at_s"])


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["central", "rotating_leader", "gossip"])
def test_snapshots_are_the_models_of_the_view(protocol: str) -> None:
    """The server's, the leader's, the peer's own; an outsider gets every aggregate, in gossip the collected model."""
    leader = "{kind: leader, keep: {snapshots: true}}, " if protocol == "rotating_leader" else ""
    extra = "exchange_with: 2, " if protocol == "gossip" else ""
    simulation, found = watch(
        f"protocol={{kind: {protocol}, train_per_round: 5, {extra}deadline: 20 s}}",
        f"adversaries=[{leader}{{kind: model}}, {{kind: peer, who: 2, keep: {{snapshots: true}}}}]",
        "network.loss=0",
    )
    learning = simulation.deferred_learning
    assert learning is not None
    first = learning.first_model().array()
    np.testing.assert_array_equal(found["peer"]["model-0"][0], first)
    np.testing.assert_array_equal(found["peer"]["model-3"][0], learning.model(2).array())
    aggregates = {key for key in found["model"] if key.startswith("model-")}
    if protocol == "gossip":
        assert aggregates == {"model-0"}
        collected = simulation.collected_model()
        assert collected is not None
        np.testing.assert_array_equal(found["model"]["round-4"], collected.array()[None, :])
    else:
        assert aggregates == {"model-0", "model-1", "model-2", "model-3"}
        final = simulation.collected_model()
        assert final is not None
        np.testing.assert_array_equal(found["model"]["model-3"][0], final.array())
    if leader:
        for number in range(4):
            np.testing.assert_array_equal(found["leader"][f"model-{number}"], found["model"][f"model-{number}"])
