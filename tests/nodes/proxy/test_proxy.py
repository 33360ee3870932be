"""The trusted proxy: invitations, cohorts, addresses, and why a run stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2p.log import records
from scenarios.composition.simulation import Simulation

Simulate = Callable[..., Simulation]
Rows = Callable[..., list[dict[str, Any]]]
SIX = ("clients=6", "data.samples=120", "rounds=3", "protocol.train_per_round=4")
LEADER = "protocol={kind: rotating_leader, train_per_round: 4}"
CENTRAL = "protocol={kind: central, train_per_round: 4}"


@pytest.mark.parametrize("protocol", ["protocol.deadline=60 s", LEADER, CENTRAL])
def test_it_never_receives_an_update(simulate: Simulate, protocol: str) -> None:
    """Control messages are all it ever sends or gets."""
    simulation = simulate(*SIX, protocol)
    messages, proxy = simulation.log.messages, simulation.world.proxy
    its = (messages["sender"] == proxy) | (messages["receiver"] == proxy)
    assert its.any()
    assert (messages["kind"][its] == records.KIND["control"]).all()
    assert its[messages["kind"] == records.KIND["control"]].all()


def test_addresses_change_every_round(simulate: Simulate) -> None:
    """No member is ever seen twice under one address, and all are forgotten once a round is quiet."""
    simulation = simulate(*SIX)
    tables = [simulation.records[number].addresses for number in (1, 2, 3)]
    assert len({address for table in tables for address in table.values()}) == 12
    assert all(simulation.world.router.node_of(address) is None for table in tables for address in table.values())


def test_rehash_never_keeps_addresses(simulate: Simulate) -> None:
    """So that the effect of rehashing can be studied."""
    simulation = simulate(*SIX, "anonymity.rehash=never")
    tables = [simulation.records[number].addresses for number in (1, 2, 3)]
    for node in {node for table in tables for node in table}:
        assert len({table[node] for table in tables if node in table}) == 1
    assert sum(len(table) for table in tables) > len({address for table in tables for address in table.values()})


def test_first_come_takes_the_near_ones(simulate: Simulate, dropouts: Callable[..., Any]) -> None:
    """Those with the shortest way to the proxy, every round; the slower ones are not called absent."""
    far = "network.latency={kind: uniform, low: 10 ms, high: 500 ms}"
    simulation = simulate(*SIX, far, "protocol.selection=first_come")
    proxy, messages = simulation.world.proxy, simulation.log.messages
    registered = (messages["receiver"] == proxy) & (messages["round"] == 0) & (messages["sender"] < 6)
    by_way = np.argsort(messages["arrived_s"][registered][:6])
    nearest = sorted(messages["sender"][registered][:6][by_way][:4].tolist())
    assert [simulation.records[number].cohort.tolist() for number in (1, 2, 3)] == [nearest] * 3
    assert dropouts(simulation.log) == []


def test_uniform_waits_for_the_window_and_takes_any(simulate: Simulate) -> None:
    """Far clients train as often as near ones."""
    far = "network.latency={kind: uniform, low: 10 ms, high: 500 ms}"
    simulation = simulate(*SIX, far, "rounds=12")
    cohorts = {tuple(simulation.records[number].cohort.tolist()) for number in range(1, 13)}
    assert len(cohorts) > 4


def test_who_did_not_answer_is_invited_again(simulate: Simulate, message_rows: Rows) -> None:
    """The window (0.3 s) is shorter than the way there and back (0.386 s): answers come during the second window."""
    simulation = simulate(*SIX, "protocol.invite_window=300 ms")
    assert simulation.proxy.outcome.rounds_completed == 3
    invites = [row for row in message_rows(simulation.log, round=1, sender=6) if row["size_bytes"] == 91]
    start_s = simulation.log.rounds[0]["start_s"]
    sent_s = sorted(row["sent_s"] for row in invites)
    assert sent_s == pytest.approx([start_s] * 6 + [start_s + 0.3] * 6)
    assert len(simulation.records[1].cohort) == 4
    assert len(set(simulation.records[1].cohort.tolist())) == 4


def test_it_gives_up_inviting_after_the_timeout(simulate: Simulate, dropouts: Callable[..., Any]) -> None:
    """No client can answer (everything is lost): the run ends with its reason, and all are absent."""
    simulation = simulate(*SIX, "network.loss=1.0", "protocol.invite_timeout=30 s")
    assert simulation.proxy.outcome.rounds_completed == 0
    assert "0 of 4 needed clients joined" in simulation.proxy.outcome.stopped_because
    assert dropouts(simulation.log) == []  # no client registered, so none was invited


@pytest.mark.slow
def test_a_run_stops_when_too_few_have_budget(simulate: Simulate, dropouts: Callable[..., Any]) -> None:
    """No client ever overspends; when fewer than a cohort can still pay, the run says so and ends."""
    privacy = "privacy={clip: {kind: flat, norm: 1.0}, noise: {kind: gaussian, sigma: 2.0}, delta: 1.0e-5}"
    budget = "privacy.budget={by: rigorous, epsilon: 9.0}"
    simulation = simulate(*SIX, "rounds=20", privacy, budget)
    outcome, log = simulation.proxy.outcome, simulation.log
    assert outcome.rounds_completed < 20
    last = outcome.rounds_completed + 1
    absent = [row for row in dropouts(log) if row[:2] == (last, "absence")]
    assert {row[4] for row in absent} == {"budget"}
    assert 6 - len(absent) < 4
    assert outcome.stopped_because == f"round {last}: {6 - len(absent)} of 4 needed clients have budget left"
    releases = np.bincount(log.privacy["node"], minlength=6)
    assert releases.max() - releases.min() <= 4
    assert all(log.privacy["rigorous"] <= 9.0)


@pytest.mark.slow
def test_a_published_budget_lasts_exactly_the_planned_rounds(simulate: Simulate) -> None:
    """Planned for T rounds, runs T rounds."""
    calibrate = "{kind: adpdfl, epsilon: 8, delta: 1.0e-5}"
    privacy = f"privacy={{clip: {{kind: flat, norm: 1.0}}, noise: {{kind: gaussian, calibrate: {calibrate}}}}}"
    simulation = simulate(*SIX, "rounds=7", privacy)
    assert simulation.proxy.outcome.rounds_completed == 7
    assert simulation.proxy.outcome.stopped_because == "all rounds done"
    assert float(simulation.log.privacy["published"].max()) == pytest.approx(8.0, rel=1e-6)


@pytest.mark.parametrize("hand_out", ["neighbours", "graph"])
def test_what_is_handed_out_is_paid_for(simulate: Simulate, message_rows: Rows, hand_out: str) -> None:
    """An assignment names the neighbours, or all members and all edges: 8 more bytes an edge."""
    simulation = simulate(*SIX, f"anonymity.hand_out={hand_out}", "protocol.exchange_with=1")
    orders = [row["size_bytes"] for row in message_rows(simulation.log, round=1, sender=6) if row["size_bytes"] > 91]
    if hand_out == "graph":
        assert orders == [140 + 4 * 33 + 4 * 8] * 4
    else:  # a ring: two neighbours, or one if both are the same
        assert set(orders) <= {140 + 33, 140 + 2 * 33}


@pytest.mark.parametrize("protocol", ["protocol.deadline=20 s", LEADER, CENTRAL])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_no_run_hangs_or_breaks_on_lost_messages(simulate: Simulate, protocol: str, seed: int) -> None:
    """Registrations, answers, assignments: anything may be lost for good."""
    simulation = simulate(*SIX, protocol, "network.loss=0.5", f"seed={seed}", "protocol.invite_timeout=60 s")
    outcome = simulation.proxy.outcome
    assert outcome.rounds_completed == 3 or outcome.stopped_because.startswith("round")
    assert np.isfinite(simulation.clock.now)


def test_central_waits_for_its_server(simulate: Simulate) -> None:
    """With `first_come` the server's answer may be the last; it is needed all the same."""
    slow_server = ("protocol.selection=first_come", "network.server_uplink=50 B/s")
    simulation = simulate(*SIX, CENTRAL, *slow_server)
    assert simulation.proxy.outcome.rounds_completed == 3


def test_rounds_never_overlap(simulate: Simulate) -> None:
    """A round starts when the last one has ended, also with members that are too slow or messages that are late."""
    simulation = simulate(
        *SIX, "compute={kind: uniform, low: 2 samples/s, high: 40 samples/s}", "protocol.deadline=3 s", "rounds=6"
    )
    rounds = simulation.log.rounds
    assert [row["start_s"] for row in rounds[1:]] == [row["end_s"] for row in rounds[:-1]]
    table = simulation.log.aggregations
    for row in rounds:
        at_s = table["at_s"][table["round"] == row["round"]]
        assert ((at_s >= row["start_s"]) & (at_s <= row["end_s"])).all()


def test_a_limited_proxy_is_slower(simulate: Simulate) -> None:
    """Its links are unlimited unless the scenario says otherwise."""
    free, narrow = simulate(*SIX), simulate(*SIX, "network.proxy_uplink=200 B/s", "network.sharing=fifo")
    assert narrow.clock.now > free.clock.now + 5


def test_a_round_is_not_forgotten_while_it_goes_on(simulate: Simulate, tmp_path: Path) -> None:
    """In round 1 the first model is handed out once more; its last messages end while the members train."""
    times_s = [
        *([3, 11, 3, 11, 0, 3, 0], [0, 11, 11, 0, 11, 11, 0], [3, 3, 3, 3, 0, 11, 11], [0, 11, 11, 0, 3, 3, 0]),
        *([11, 11, 0, 0, 0, 11, 0], [3, 11, 11, 0, 0, 3, 11], [3, 0, 3, 3, 0, 3, 11]),
    ]
    path = tmp_path / "latencies.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in times_s))
    simulation = simulate(
        "protocol={kind: gossip, train_per_round: 3, exchange_with: 1, deadline: 200 s, invite_window: 5 s}",
        *("network.sharing=fair", "network.uplink=20 kB/s", "network.downlink=1 GB/s", "learning=torch"),
        f"network.latency={{kind: matrix, path: {path}, unit: s, round_trip: false, place: in_order}}",
    )
    assert simulation.proxy.outcome.rounds_completed == 1
    assert simulation.log.rounds[0]["updates_used"] == 3


def test_a_proxy_that_was_to_return_and_is_lost_for_good_ends_the_run(simulate: Simulate) -> None:
    """The second crash, which has no end, comes while it is down for the first."""
    faults = "faults=[{kind: crash, who: proxy, start: 0 s, end: 10 s}, {kind: crash, who: proxy, start: 1 s}]"
    simulation = simulate(faults)
    assert simulation.proxy.outcome.stopped_because == "the proxy was lost at 1 s and there is no standby"
    assert simulation.clock.now == 1.0
