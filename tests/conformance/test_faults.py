"""Whatever goes wrong, and in whatever combination: totals add up, nothing is used that must not be, and runs end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from p2p.clock import Rank
from p2p.log import records
from p2p.log.log import Log
from p2p.transport.sharing import SHARINGS
from scenarios.composition.simulation import Simulation
from scenarios.run_folder.digest import events_digest
from tests.random_worlds import FEW, MANY, balance, quiet_worlds, smooth_worlds, troubled_worlds

Prepare = Callable[..., Simulation]
MOST_EVENTS = 400_000


def run_bounded(simulation: Simulation) -> None:
    """Runs to the end; a run that goes on for ever would fail here and not hang the tests."""
    simulation.supervisor.start_all()
    for _ in range(MOST_EVENTS):
        if simulation.supervisor.ended.processed:
            break
        try:
            simulation.clock.step()
        except simpy.core.EmptySchedule:
            break
    else:
        pytest.fail("the run does not end")
    simulation.supervisor.log_open_spans()
    assert simulation.supervisor.ended.triggered, "nothing can happen any more, and no node has said why"


@pytest.mark.slow
@pytest.mark.soak
@MANY
@given(
    st.one_of(troubled_worlds(), troubled_worlds(), quiet_worlds(), smooth_worlds()),
    st.lists(st.floats(0.05, 90), max_size=3),
)
def test_totals_add_up_and_runs_end_under_every_fault(
    prepare: Prepare, world: list[str], instants: list[float]
) -> None:
    """At every instant; the run ends with its reason, and no outcome is ever changed."""
    simulation = prepare(*world)
    for at_s in instants:
        simulation.clock.call_at(at_s, Rank.START, 10**6, lambda: balance(simulation))
    run_bounded(simulation)
    balance(simulation)
    outcome = simulation.proxy.outcome
    assert outcome.stopped_because
    assert outcome.rounds_completed == simulation.scenario.rounds or outcome.stopped_because != "all rounds done"


@pytest.mark.slow
@pytest.mark.soak
@MANY
@given(troubled_worlds())
def test_only_honest_timely_updates_are_used_once(prepare: Prepare, world: list[str]) -> None:
    """Never twice, from another round, from a stranger, along no edge, or refused."""
    simulation = prepare(*world)
    run_bounded(simulation)
    log, clients = simulation.log, simulation.scenario.clients
    check_aggregations(log, clients)
    used = log.messages["used"] & (log.messages["kind"] == records.KIND["update"])
    assert (log.messages["outcome"][used] == records.OUTCOME["delivered"]).all()


def check_aggregations(log: Log, clients: int) -> None:
    """Every contribution is one delivered update of its round, along an edge that the proxy drew."""
    table = log.aggregations
    edges = set(zip(*(log.graphs[name].tolist() for name in ("round", "sender", "receiver")), strict=True))
    columns = (table[name].tolist() for name in ("round", "aggregator", "contributor", "void"))
    rows = list(zip(*columns, strict=True))
    assert len({row[:3] for row in rows}) == len(rows), "an update was averaged twice by one node"
    for number, aggregator, contributor, _ in rows:
        assert contributor < clients
        assert contributor == aggregator or (number, contributor, aggregator) in edges


@pytest.mark.slow
@pytest.mark.soak
@FEW
@given(troubled_worlds())
def test_equal_seeds_give_equal_events_under_faults(prepare: Prepare, world: list[str]) -> None:
    """Two runs of one scenario cannot be told apart."""
    first, second = prepare(*world), prepare(*world)
    run_bounded(first)
    run_bounded(second)
    assert events_digest(first.log) == events_digest(second.log)
    assert np.array_equal(first.log.dropouts["reason"], second.log.dropouts["reason"])


QUIET = (
    *("clients=12", "data.samples=240", "rounds=3", "network.downlink=1 MB/s"),
    "network.uplink={kind: lognormal, median: 2 kB/s, sigma: 1}",
    "network.latency={kind: uniform, low: 10 ms, high: 400 ms}",
    "protocol={kind: gossip, train_per_round: 9, exchange_with: 4, deadline: 60 s}",
)


@pytest.mark.parametrize(
    "corner",
    [
        # Registrations take more than ten seconds: a client that is not known by then registers again.
        ["network.uplink=11 B/s", "protocol.invite_window=60 s", "protocol.deadline=600 s"],
        # Everything of a phase happens at one instant.
        ["network.latency=0 s", "network.uplink=1 GB/s", "network.downlink=1 GB/s"],
        ["network.devices=[{name: a, share: 0.5, uplink: 1 kB/s}, {name: b, share: 0.5, uplink: 20 kB/s}]"],
        ["protocol.min_updates=4", "anonymity.rehash=never", "protocol.collect=mean"],
        ["network.sharing={kind: fair, grid: 100 ms}"],
    ],
    ids=["slow registration", "no latency", "devices", "rehash never", "grid"],
)
@pytest.mark.parametrize("sharing", sorted(SHARINGS))
def test_quiet_runs_in_corners_complete_with_every_update(prepare: Prepare, corner: list[str], sharing: str) -> None:
    """Nothing goes wrong: every member's update is used wherever it was sent, and nothing is lost or refused."""
    simulation = prepare(*QUIET, f"network.sharing={sharing}", *corner)
    run_bounded(simulation)
    balance(simulation)
    # A round for which too few answer in time is skipped as a whole.
    used = [record["updates_used"] for record in simulation.log.rounds if not record["skipped"]]
    assert len(used) >= 2
    assert set(used) == {36}
    outcomes = simulation.log.messages["outcome"]
    assert np.isin(outcomes, (records.OUTCOME["delivered"], records.OUTCOME["in_flight"])).all()
