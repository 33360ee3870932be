"""The tables of a run tell one story: random worlds, checked from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from p2p.clock import Rank
from p2p.log.records import KIND
from scenarios.composition.simulation import Simulation
from scenarios.run_folder.arrow_tables import log_to_arrow
from scenarios.run_folder.digest import events_digest
from tests.outside_checks import RULES, Row, Tables, charges_are_releases, violations
from tests.random_worlds import TIMES, troubled_worlds

Prepare = Callable[..., Simulation]


def tables_of(simulation: Simulation) -> Tables:
    """The tables as they would be in the run folder."""
    return Tables(raw_tables(simulation), simulation.scenario.clients, simulation.topology)


@pytest.mark.slow
@pytest.mark.soak
@settings(max_examples=300 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(troubled_worlds(), troubled_worlds(["rotating_leader"])))
def test_tables_tell_one_story_under_every_fault(prepare: Prepare, world: list[str]) -> None:
    """Whatever goes wrong: one leader, one model, one training, and figures that follow from the rows."""
    simulation = prepare(*world)
    simulation.run()
    assert violations(tables_of(simulation)) == []


def test_what_is_cut_off_after_its_round_was_late(prepare: Prepare) -> None:
    """A quorum closes the round while updates wait for a downlink; then all receivers go down."""
    world = (
        *("clients=6", "data.samples=120", "rounds=1", "network.retransmit={tries: 1}", "network.loss=0"),
        "protocol={kind: gossip, train_per_round: 6, exchange_with: 5, deadline: 60 s, finish: {quorum: 0.4}}",
        *("network.sharing=fifo", "network.uplink=1 MB/s", "network.downlink=300 B/s"),
    )
    calm = prepare(*world)
    calm.run()
    crash_s = calm.log.rounds[0]["end_s"] + 0.001
    simulation = prepare(*world, f"faults=[{{kind: crash, who: 0-5, start: {crash_s} s, end: {crash_s + 5} s}}]")
    simulation.run()
    tables = tables_of(simulation)
    late = {(row["node"], row["aggregator"]) for row in tables.dropouts if row["reason"] == "late"}
    updates = [row for row in tables.last_hops("update") if row["reason"] == "receiver_down"]
    assert {(row["origin"], row["receiver"]) for row in updates if row["left_s"] < crash_s} & late
    assert violations(tables) == []


BUSY = [
    *("clients=6", "data.samples=120", "data.features=4", "seed=941", "rounds=1", "anonymity.sealed=sizes"),
    "protocol={kind: rotating_leader, train_per_round: 5, leader_timeout: 10 s, deadline: 2 s, grace: 5 s, "
    "invite_window: 30 s, invite_timeout: 200 s, min_updates: 0}",
    *(
        "anonymity.rehash=never",
        "network.sharing=fifo",
        "network.uplink={kind: lognormal, median: 200 B/s, sigma: 1.0}",
    ),
    *("network.downlink={kind: lognormal, median: 20 B/s, sigma: 1.5}", "network.loss=0.5"),
    *("network.latency={kind: uniform, low: 10 ms, high: 400 ms}", "network.retransmit={tries: 8, timeout: 2 s}"),
    "faults=[{kind: slow_link, who: 2, factor: 20, start: 2 s, end: 10 s}, {kind: intruder, every: 500 ms, start: 5 s, "
    "end: 13 s}, {kind: crash, who: 3, start: 3 s, end: 63 s}]",
    "proxy={standby: true, takeover: 3 s}",
]
"""A world in which a client that has fetched its model answers the next invitation before it reads its order."""


@pytest.mark.slow
@pytest.mark.soak
@settings(max_examples=100 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@example(BUSY)
@given(troubled_worlds())
def test_a_look_at_the_log_changes_nothing(prepare: Prepare, world: list[str]) -> None:
    """Inboxes are opened before the log is read: at whatever instants that happens, the end is the same."""
    alone, watched = prepare(*world), prepare(*world)
    looks = iter(range(2000))

    def look() -> None:
        assert len(watched.log.messages["outcome"]) >= 0
        if next(looks, None) is not None:
            watched.clock.call_at(watched.clock.now + 0.173, Rank.FAULT, 0, look)

    watched.clock.call_at(0.0, Rank.FAULT, 0, look)
    for simulation in (alone, watched):
        simulation.run()
    assert events_digest(alone.log) == events_digest(watched.log)


LONELY = (
    *("clients=4", "data.samples=80", "seed=0", "privacy={clip: flat, noise: {kind: gaussian, sigma: 4}}"),
    "network.uplink=1 MB/s",
)


@pytest.mark.slow
@pytest.mark.parametrize("include_own", ["true", "false"])
@pytest.mark.parametrize("exchange", ["update", "model"])
@pytest.mark.parametrize("min_updates", [0, 1])
def test_members_without_neighbours_are_charged_for_what_lives_on_alone(
    prepare: Prepare, include_own: str, exchange: str, min_updates: int
) -> None:
    """Two of four members over a fixed graph in which they are no neighbours: nothing is sent."""
    graph = "graph: {kind: networkx, generator: gnm_random_graph, arguments: {m: 4}}, redraw: never"
    simulation = prepare(
        *LONELY,
        f"protocol={{kind: gossip, train_per_round: 2, deadline: 60 s, include_own: {include_own}, "
        f"min_updates: {min_updates}, exchange: {exchange}, {graph}}}",
    )
    simulation.run()
    assert not (simulation.log.messages["kind"] == KIND["update"]).any()
    assert list(charges_are_releases(tables_of(simulation))) == []
    lives_on = include_own == "true" and (exchange == "model" or min_updates == 0)
    assert len(simulation.log.privacy) == (2 if lives_on else 0)


def raw_tables(simulation: Simulation) -> dict[str, list[Row]]:
    """The rows of every table, to be doctored."""
    return {name: arrow.to_pylist() for name, arrow in log_to_arrow(simulation.log).items()}


def first(rows: list[Row], **wanted: Any) -> Row:
    """The first row with these values."""
    return next(row for row in rows if all(row[name] == value for name, value in wanted.items()))


def _lengthen(tables: dict[str, list[Row]]) -> None:
    span = first(tables["spans"], name="train")
    span["end_s"] += 10.0


def _go_down(tables: dict[str, list[Row]]) -> None:
    node, end_s = tables["messages"][0]["sender"], tables["messages"][0]["sent_s"] + 1.0
    tables["spans"].append({"node": node, "round": 1, "name": "down", "start_s": -1.0, "end_s": end_s})


def _miss(tables: dict[str, list[Row]]) -> None:
    row = first(tables["aggregations"], round=1)
    missing = {"round": 1, "node": row["contributor"], "aggregator": row["aggregator"], "what": "missing"}
    tables["dropouts"].append({**missing, "reason": "lost", "at_s": row["at_s"]})


def _hand_over(tables: dict[str, list[Row]]) -> None:
    row = first(tables["messages"], kind="handover")
    row["origin"] = (row["origin"] + 1) % 6


DOCTORED: dict[str, Callable[[dict[str, list[Row]]], object]] = {
    "messages_have_one_outcome": lambda tables: tables["messages"][3].update(reason="random"),
    "bytes_by_round_add_up": lambda tables: first(tables["messages"], kind="update").update(size_bytes=99_999),
    "retransmissions_follow_a_loss": lambda tables: tables["messages"][3].update(attempt=2),
    "rounds_follow_each_other": lambda tables: tables["rounds"][1].update(start_s=0.0),
    "one_leader_per_round": lambda tables: tables["rounds"][0].update(leader=99),
    "used_updates_are_those_averaged": lambda tables: first(tables["messages"], kind="update").update(used=False),
    "aggregations_lie_in_their_round": lambda tables: tables["aggregations"][0].update(at_s=1e6),
    "only_the_rounds_model_is_adopted": lambda tables: first(tables["messages"], kind="model").update(sent_s=0.0),
    "the_newest_model_is_handed_over": _hand_over,
    "what_is_missing_did_not_count": _miss,
    "members_contribute_or_drop_out": lambda tables: tables["graphs"].pop(0),
    "spans_fit_into_a_nodes_time": _lengthen,
    "nodes_that_are_down_are_silent": _go_down,
    "charges_are_releases": lambda tables: tables["privacy"].pop(),
}


@pytest.mark.parametrize("rule", [rule.__name__ for rule in RULES])
def test_every_rule_notices_what_it_is_for(prepare: Prepare, rule: str) -> None:
    """A run in which all is well, and the same tables with one value changed."""
    simulation = prepare(
        *("clients=6", "data.samples=120", "rounds=3", "protocol={kind: rotating_leader, train_per_round: 3}"),
        "privacy={clip: flat, noise: {kind: gaussian, sigma: 4}}",
    )
    simulation.run()
    tables = raw_tables(simulation)
    assert violations(Tables(tables, 6, simulation.topology)) == []
    DOCTORED[rule](tables)
    assert rule in {text.partition(":")[0] for text in violations(Tables(tables, 6, simulation.topology))}
