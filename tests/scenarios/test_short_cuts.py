"""What is done for speed changes nothing that happens."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.client import Client
from nodes.controls import Assignment
from nodes.courses import GossipCourse
from nodes.endpoint import Endpoint
from nodes.foresight import Foresight
from p2p.fair import PAIRED_NODES
from p2p.network import Network
from p2p.sharing import SHARINGS
from p2p.table import Table
from privacy.envelopes import Bundle
from privacy.sealing import RealSealer
from scenarios.build import Simulation
from scenarios.digest import events_digest
from tests.by_hand import _prepare
from tests.random_worlds import MANY, quiet_worlds, smooth_worlds, troubled_worlds


@pytest.mark.slow
@pytest.mark.soak
@MANY
@given(st.one_of(troubled_worlds(), quiet_worlds()))
def test_messages_handed_over_together_fare_as_if_each_were_sent_alone(world: list[str]) -> None:
    """As a wave, carried whole, taken in unread and opened together; or as parcels, looked at when they come."""
    together = _prepare(*world)
    together.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "_passes_whole", property(lambda self: False))
        alone = _prepare(*world)
        alone.run()
    assert events_digest(together.log) == events_digest(alone.log)
    assert together.log.messages["used"].tolist() == alone.log.messages["used"].tolist()


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("few", [PAIRED_NODES, 0], ids=["few nodes", "as if they were many"])
@MANY
@given(world=st.one_of(smooth_worlds(), smooth_worlds(), troubled_worlds()))
def test_foretold_rounds_go_as_if_they_were_played_out(few: int, world: list[str]) -> None:
    """To the last bit: every message, stretch and average, what was learnt, and when the run ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("p2p.fair.PAIRED_NODES", few)
        foretold = _prepare(*world)
        foretold.run()
        played = played_out(world)
    assert events_digest(foretold.log) == events_digest(played.log)
    same_rows(foretold.log.messages, played.log.messages, ("sent_s", "sender", "receiver", "kind", "attempt"))
    same_rows(foretold.log.aggregations, played.log.aggregations, ("round", "aggregator", "contributor"))
    same_rows(foretold.log.privacy, played.log.privacy, ("round", "node", "release"))
    assert [repr(row) for row in foretold.log.rounds] == [repr(row) for row in played.log.rounds]
    assert foretold.proxy.outcome == played.proxy.outcome
    assert foretold.clock.now == played.clock.now


QUIET = (
    *("clients=12", "data.samples=240", "rounds=3", "network.sharing=fair", "network.downlink=1 MB/s"),
    "network.uplink={kind: lognormal, median: 2 kB/s, sigma: 1}",
    "network.latency={kind: uniform, low: 10 ms, high: 400 ms}",
)
GOSSIP = "protocol={{kind: gossip, train_per_round: 9, exchange_with: 4, deadline: 60 s, send_at: {send_at}}}"


@pytest.mark.parametrize("send_at", ["ready", "barrier"])
def test_a_quiet_run_is_foretold(send_at: str) -> None:
    """But for the final model, which one client is asked for; else the test above would compare nothing."""
    sent: list[str] = []
    real = Network.send

    def send(self: Network, *facts: Any, **more: Any) -> None:
        sent.append(facts[2])
        real(self, *facts, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "send", send)
        simulation = _prepare(*QUIET, GOSSIP.format(send_at=send_at))
        simulation.run()
    assert sorted(set(sent)) == ["collect", "control"]
    assert simulation.proxy.outcome.rounds_completed == 3


def test_foretold_updates_are_sealed_and_opened_for_real() -> None:
    """Once for each sender, and once by each receiver; by the cipher, not by counting."""
    calls: Counter[tuple[str, int]] = Counter()
    seal, read, send = RealSealer.seal_many, RealSealer.open_in, Endpoint.send

    def seal_many(self: RealSealer, kind: str, number: int, *rest: Any) -> Bundle:
        calls[kind, number] += 1
        return seal(self, kind, number, *rest)

    def open_in(self: RealSealer, bundle: Bundle, *rest: Any) -> Any:
        calls["opened", bundle[0].round] += 1
        return read(self, bundle, *rest)

    def send_but_no_update(self: Endpoint, number: int, kind: str, *rest: Any) -> None:
        assert kind != "update"
        send(self, number, kind, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RealSealer, "seal_many", seal_many)
        patch.setattr(RealSealer, "open_in", open_in)
        patch.setattr(Endpoint, "send", send_but_no_update)
        _prepare(*QUIET, GOSSIP.format(send_at="ready"), "anonymity.sealed=true").run()
    assert [calls["update", number] for number in (1, 2, 3)] == [9, 9, 9]
    assert [calls["opened", number] for number in (1, 2, 3)] == [36, 36, 36]


@pytest.mark.slow
@pytest.mark.parametrize("send_at", ["ready", "barrier"])
def test_foretold_rounds_teach_the_same(send_at: str) -> None:
    """Models to the last bit, and what the ledgers were charged."""
    privacy = "privacy={clip: {kind: flat, norm: 1.0}, noise: {kind: gaussian, sigma: 0.5}}"
    world = [*QUIET, GOSSIP.format(send_at=send_at), "learning=torch", privacy]
    foretold, played = _prepare(*world), played_out(world)
    foretold.run()
    same_rows(foretold.log.privacy, played.log.privacy, ("round", "node"))
    assert len(foretold.log.privacy) == 27
    assert foretold.workbench is not None
    assert played.workbench is not None
    assert np.array_equal(foretold.workbench.state().models, played.workbench.state().models)
    assert [repr(row) for row in foretold.log.rounds] == [repr(row) for row in played.log.rounds]


@pytest.mark.parametrize(
    "trouble",
    [
        "faults=[{kind: crash, who: 3, start: 1000 s}]",
        "faults=[{kind: crash, who: 3, round: 2, phase: send}]",
        "network.loss=0.01",
        "network.jitter=1 ms",
        "anonymity.routing=relay",
        "network.sharing={kind: fair, grid: 1 ms}",
        "network.proxy_downlink=1 MB/s",
        "availability={kind: churn, mean_up: 40 s, mean_down: 6 s}",
    ],
)
def test_what_may_be_disturbed_is_not_foretold(trouble: str) -> None:
    """Not even before anything goes wrong, where it is known that something will."""
    foretold: list[int] = []
    real = Foresight.round

    def told(self: Foresight, number: int) -> GossipCourse | None:
        course = real(self, number)
        foretold.extend([] if course is None else [number])
        return course

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Foresight, "round", told)
        simulation = _prepare(*QUIET, GOSSIP.format(send_at="ready"), trouble)
        assert not simulation.proxy.foretells_set_up()
        simulation.run()
    assert foretold == []


def test_what_is_over_disturbs_nobody() -> None:
    """After a crash of a moment, and the round in which the client gets its first model, rounds are foretold."""
    sent: set[int] = set()
    real = Client.publish

    def publish(self: Client, assignment: Assignment, *rest: Any) -> None:
        sent.add(assignment.round_number)
        real(self, assignment, *rest)

    fault = "faults=[{kind: crash, who: 3, start: 0.1 s, end: 0.2 s}]"
    simulation = _prepare(*QUIET, GOSSIP.format(send_at="ready"), fault)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "publish", publish)
        simulation.run()
    assert simulation.proxy.outcome.rounds_completed == 3
    assert sent == {1}


@pytest.mark.parametrize(
    "world",
    [
        # Registrations come after ten seconds: whoever is not known by then registers again.
        ["network.uplink=11 B/s", "protocol.invite_window=60 s", "protocol.deadline=600 s"],
        # Some wait for nobody, and nobody has far to go.
        ["network.latency=0 s", "network.uplink=1 GB/s", "network.downlink=1 GB/s"],
        ["network.devices=[{name: a, share: 0.5, uplink: 1 kB/s}, {name: b, share: 0.5, uplink: 20 kB/s}]"],
        ["protocol.min_updates=4", "anonymity.rehash=never", "protocol.collect=mean"],
        ["protocol.min_updates=5"],
    ],
)
@pytest.mark.parametrize("sharing", sorted(SHARINGS))
def test_foretold_runs_in_corners(world: list[str], sharing: str) -> None:
    """The same as when they are played out."""
    overrides = [*QUIET, GOSSIP.format(send_at="ready"), *world, f"network.sharing={sharing}"]
    foretold = _prepare(*overrides)
    foretold.run()
    played = played_out(overrides)
    assert events_digest(foretold.log) == events_digest(played.log)
    assert foretold.clock.now == played.clock.now
    assert foretold.proxy.outcome == played.proxy.outcome


def test_a_course_is_let_go_when_its_round_is_over() -> None:
    """Its arrays, keys and updates: processes that wait for orders still know of the last round they were in."""
    simulation = _prepare(*QUIET, GOSSIP.format(send_at="ready"), "rounds=8", "learning=torch", "anonymity.sealed=true")
    simulation.run()
    gc.collect()
    courses = [one for one in gc.get_objects() if type(one) is GossipCourse]
    assert courses
    assert all(len(one.members) == 0 and not one.releases and one.sealing is None for one in courses)
    assert simulation.workbench is not None
    assert len(simulation.workbench.state().given) <= 1


def played_out(world: Sequence[str]) -> Simulation:
    """A run in which nothing is foretold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Foresight, "set_up", lambda self: None)
        patch.setattr(Foresight, "round", lambda self, number: None)
        simulation = _prepare(*world)
        simulation.run()
    return simulation


def same_rows(first: Table, second: Table, names: Sequence[str]) -> None:
    """Two tables hold the same rows, in whatever order; `names` tell rows apart."""
    orders = [np.lexsort([table[name] for name in reversed(names)]) for table in (first, second)]
    for name in first.names:
        np.testing.assert_array_equal(first[name][orders[0]], second[name][orders[1]], err_msg=name)
