"""Sharing where it is felt: against filling everything anew, among more nodes than fit into one region."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from p2p import region_filling
from p2p.any_share import AnyShare, share_of
from p2p.fair import FairShare
from p2p.local_share import LocalShare
from p2p.progressive_filling import UPLINK

Kind = type[FairShare] | type[LocalShare] | type[AnyShare]
NODES, DEGREE = 250, 4

pytestmark = pytest.mark.slow


def ends(kind: Kind, seed: int, stagger_s: float, *, troubled: bool = False) -> tuple[NDArray[np.float64], list[int]]:
    """When each of a thousand transfers ends, and what held it; `troubled`: with aborts and other capacities."""
    rng = np.random.default_rng(seed)
    share = kind(rng.uniform(2, 50, NODES), rng.uniform(10, 100, NODES))
    src = np.repeat(np.arange(NODES), DEGREE)
    dst = (src + rng.integers(1, NODES, len(src))) % NODES
    sizes = rng.uniform(10, 100, len(src)) if stagger_s else np.full(len(src), 80.0)
    starts_s = np.sort(rng.uniform(0, stagger_s, len(src)))
    unsent = np.zeros(len(src))
    for moment_s in np.unique(starts_s).tolist():
        ids = np.flatnonzero(starts_s == moment_s)
        share.start(moment_s, ids, src[ids], dst[ids], sizes[ids])
        if troubled and ids[0] % 7 == 0:
            gone = rng.choice(ids[0] + 1, min(2, int(ids[0]) + 1), replace=False)
            unsent[gone] += share.abort(moment_s, gone)
            share.set_capacity(moment_s, int(rng.integers(NODES)), *rng.uniform(1, 60, 2).tolist())
    done = share.advance(1e6)
    found, held = -unsent, np.full(len(src), -1)
    found[done.ids], held[done.ids] = done.finished_s, done.bottleneck
    return found, held.tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stagger_s", [0.0, 5.0, 60.0])
def test_ends_are_those_of_filling_everything(stagger_s: float, seed: int) -> None:
    """Few under way at a time, or all of them; what held each back is the same too."""
    expected, expected_held = ends(FairShare, seed, stagger_s)
    found, held = ends(LocalShare, seed, stagger_s)
    assert found == pytest.approx(expected, rel=1e-11)
    assert held == expected_held


@pytest.mark.parametrize("seed", range(3))
def test_aborts_and_other_capacities(seed: int) -> None:
    """Transfers end early, links become faster and slower: bytes that had not left (below zero here) agree as well."""
    expected, _ = ends(FairShare, seed, 20.0, troubled=True)
    found, _ = ends(LocalShare, seed, 20.0, troubled=True)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_small_and_large_regions_are_filled_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flow by flow, or as arrays."""
    expected, expected_held = ends(LocalShare, seed, 5.0)
    monkeypatch.setattr(region_filling, "_MANY", 0)
    found, held = ends(LocalShare, seed, 5.0)
    assert found == pytest.approx(expected, rel=1e-11)
    assert held == expected_held


@pytest.mark.parametrize("most_regret", [0, 200])
def test_going_over_to_the_other_way_changes_nothing(most_regret: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the midst of it, and back when nothing is under way."""
    monkeypatch.setattr("p2p.any_share._MOST_REGRET", most_regret)
    monkeypatch.setattr("p2p.local_share._CALLS", 0)
    for stagger_s, troubled in ((5.0, False), (500.0, False), (20.0, True)):
        expected, _ = ends(FairShare, 0, stagger_s, troubled=troubled)
        found, _ = ends(AnyShare, 0, stagger_s, troubled=troubled)
        assert found == pytest.approx(expected, rel=1e-9)


def test_many_senders_to_one_are_filled_with_everything() -> None:
    """A change is felt by all of them: so everything is filled anew, and where little is under way it is not."""
    share = AnyShare(np.full(300, 10.0), np.full(300, 50.0))
    ways = []
    for number in range(300):
        share.start(number / 1000, np.array([number]), np.array([number]), np.array([0]), np.array([100.0]))
        ways.append(type(share._share))
    assert ways[0] is LocalShare
    assert ways[-1] is FairShare
    share.advance(1e4)
    share.start(1e4, np.array([999]), np.array([1]), np.array([2]), np.array([100.0]))
    assert type(share._share) is LocalShare
    assert share.advance(2e4).rows() == [(999, 1e4 + 10, UPLINK)]


def test_a_change_is_not_felt_far_away() -> None:
    """A ring of a thousand pairs, each on links of its own: a newcomer turns only whom it meets."""
    share = LocalShare(np.full(2000, 10.0), np.full(2000, 99.0), watched=True)
    pairs = np.arange(0, 2000, 2)
    share.start(0.0, pairs, pairs, pairs + 1, np.full(1000, 100.0))
    assert share.next_event_s() == 10.0
    share.changed.clear()
    share.start(5.0, np.array([5001]), np.array([6]), np.array([9]), np.array([80.0]))
    assert share.next_event_s() == 10.0
    assert sorted(flow.number for flow in share.changed) == [6, 5001]
    assert {number: end_s for number, end_s, _ in share.advance(99.0).rows() if end_s != 10.0} == {6: 15.0, 5001: 18.0}


def unlimited_too(kind: Kind, seed: int) -> dict[int, float]:
    """Ends among few nodes whose links are often unlimited or dead, and become others; bounds are never too late."""
    rng = np.random.default_rng(seed)
    rates = np.array([0.0, 1.0, 2.0, 3.7, np.inf, np.inf])
    share, ends_s = kind(rng.choice(rates[1:], 5), rng.choice(rates[1:], 5)), dict[int, float]()
    for number in range(30):
        now_s = number / 3
        ends_s |= {one: end_s for one, end_s, _ in share.advance(now_s).rows()}
        if number % 4 == 3:
            share.set_capacity(now_s, int(rng.integers(5)), *rng.choice(rates, 2).tolist())
        pair = rng.integers(5, size=2)
        share.start(now_s, np.array([number]), pair[:1], pair[1:], rng.choice([1.0, 5.0, 9.3], 1))
        assert share.soonest_s() <= share.next_event_s() * (1 + 1e-12)
    for node in range(5):
        share.set_capacity(20.0, node, 2.5, 3.5)
    return ends_s | {one: end_s for one, end_s, _ in share.advance(1e6).rows()}


@pytest.mark.parametrize("seed", range(60))
def test_unlimited_and_dead_links(seed: int) -> None:
    """That come and go."""
    expected = unlimited_too(FairShare, seed)
    assert len(expected) == 30
    assert unlimited_too(LocalShare, seed) == pytest.approx(expected, rel=1e-9)


def test_nothing_is_kept_of_what_has_ended() -> None:
    """Ten thousand transfers, one after the other, unwatched."""
    share = LocalShare(np.full(3, 10.0), np.full(3, 10.0))
    for number in range(10_000):
        share.start(float(number), np.array([number]), np.array([0]), np.array([1]), np.array([5.0]))
        share.advance(number + 0.9)
    assert not share.changed
    assert len(share._bounds) < 2000


def test_who_shares_for_whom() -> None:
    """Everything is filled anew among few nodes and on a grid, and only what is felt among many."""
    few, many = np.full(10, 1.0), np.full(1000, 1.0)
    assert isinstance(share_of(few, few), FairShare)
    assert isinstance(share_of(many, many), AnyShare)
    assert isinstance(share_of(many, many, 0.5), FairShare)
