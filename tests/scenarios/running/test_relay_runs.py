"""Runs over relays: the same learning as without, at the price that the message log shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from p2p.clock import Rank
from p2p.log.records import KIND, OUTCOME
from privacy.accounting.receipts import received_pairs, rows_by_round
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from scenarios.metrics.communication.critical_path import critical_paths
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.communication.traffic import message_totals
from scenarios.metrics.headline.headline import bytes_headline
from scenarios.node_numbers import relay_nodes

Simulate = Callable[..., Simulation]
Rows = Callable[..., list[dict[str, Any]]]
RELAY = ("anonymity.routing=relay", "anonymity.relays=4", "anonymity.hops=2")
HEADER = 82


def pairs(simulation: Simulation) -> list[tuple[int, int, int]]:
    """Who averaged whose update in which round."""
    columns = (simulation.log.aggregations[name].tolist() for name in ("round", "aggregator", "contributor"))
    return sorted(zip(*columns, strict=True))


def received_updates(simulation: Simulation) -> list[list[int]]:
    """Whose updates count as received by whom: a relay is no receiver."""
    messages = simulation.log.messages
    services = np.zeros(0, dtype=np.int64)
    found = received_pairs(messages, rows_by_round(messages)[1], "update", 3, services)
    return [[int(node) for node in pair] for pair in found]


def test_relays_change_the_cost_and_nothing_else(simulate: Simulate) -> None:
    """Contributors are true senders, nothing is missing, and every data message costs its three hops."""
    direct, relayed = simulate(), simulate(*RELAY)
    assert pairs(relayed) == pairs(direct)
    assert not len(relayed.log.dropouts)
    record, plain = relayed.records[1], direct.records[1]
    assert (record.used, record.missing) == (plain.used, plain.missing) == (6, 0)
    sent = {
        name: message_totals(one.log.messages)[1]["by_kind"] for name, one in (("direct", direct), ("relayed", relayed))
    }
    assert sent["relayed"]["update"] == 3 * sent["direct"]["update"] + 6 * 3 * HEADER
    assert sent["relayed"]["control"] == sent["direct"]["control"]
    rows = [received_updates(simulation) for simulation in (relayed, direct)]
    assert rows[0] == rows[1]


def test_an_update_arrives_when_its_hops_say(simulate: Simulate, message_rows: Rows) -> None:
    """Two layers of 82 on 122 bytes: 0.286 + 0.1 s from a peer, no time but latency between relays, 0.122 + 0.1 s."""
    simulation = simulate(*RELAY, "network.relay_uplink=1000 GB/s", "network.relay_downlink=1000 GB/s")
    for row in message_rows(simulation.log, kind="update"):
        if row["receiver"] == row["destination"]:
            first = message_rows(simulation.log)[message_rows(simulation.log)[row["previous"]]["previous"]]
            assert row["arrived_s"] - first["sent_s"] == pytest.approx(0.386 + 0.1 + 0.222, abs=1e-8)


def test_relays_pay_and_only_peers_have_spans(simulate: Simulate) -> None:
    """What relays send and receive is theirs; a way's time is on the critical path hop by hop."""
    simulation = simulate(*RELAY)
    relays = relay_nodes(simulation.scenario)
    assert relays == (7, 8, 9, 10)
    assert bytes_headline(simulation.log, Roles(3, relays))["relay_bytes"] > 0
    assert simulation.log.spans["node"].max() < 7
    ((record, path),) = critical_paths(simulation.log, 3)
    assert sum(step.duration_s for step in path) == pytest.approx(record["end_s"] - record["start_s"])
    hops = [(step.node, step.receiver) for step in path if step.what == "update"]
    assert len(hops) >= 3
    assert all(before[1] == after[0] for before, after in zip(hops[-3:], hops[-2:], strict=False))


def test_what_relays_lose_is_told_by_its_true_ends(
    simulate: Simulate, prepare: Simulate, dropouts: Callable[..., list[tuple[int, str, int, int, str]]]
) -> None:
    """Two relays go down: what they lose is missing at a client from a client, and no node is said to have crashed."""
    once = (*RELAY, "network.retransmit.tries=1", "protocol.deadline=10 s")
    start_s = simulate(*once).records[1].start_s
    simulation = prepare(*once)
    for relay in (7, 8):
        take_down = partial(simulation.world.network.take_down, relay)
        simulation.clock.call_at(start_s, Rank.FAULT, 0, take_down)
    simulation.run()
    counts, sizes = message_totals(simulation.log.messages)
    for total in (counts, sizes):
        assert total["sent"] == total["delivered"] + total["lost"] + total["rejected"] + total["in_flight"]
    missing = [row for row in dropouts(simulation.log) if row[1] == "missing"]
    assert all(sender < 3 and aggregator < 3 and reason == "lost" for _, _, sender, aggregator, reason in missing)
    columns = simulation.log.messages
    lost = (columns["outcome"] == OUTCOME["lost"]) & (columns["kind"] == KIND["update"])
    averaged = np.isin(columns["destination"], list(simulation.records[1].aggregated_s))
    assert len(missing) == np.count_nonzero(lost & averaged) > 0
    assert set(pairs(simulation)) < set(pairs(simulate(*once)))


@pytest.mark.slow
def test_the_price_of_relays_can_be_read_with_either_routing() -> None:
    """The catalog's scenario, and the same with transport assumed, have no problems."""
    from scenarios.loading.load import load_scenario

    assert load_scenario("price-of-relays").anonymity.relay_count == 20
    assert load_scenario("price-of-relays", ["anonymity.routing=assumed"]).anonymity.relay_count == 0
    for change in ([], ["protocol.kind=gossip", "protocol.exchange_with=6"]):
        assert len(load_scenario("slow-uplinks", change).network.devices) == 3


def test_more_hops_than_relays_is_a_problem() -> None:
    """A message crosses different relays."""
    from p2p.config.errors import UserError

    with pytest.raises(UserError, match=r"anonymity.hops = 5: must be <= relays, which is 2"):
        parse_scenario("anonymity: {routing: relay, relays: 2, hops: 5}")
