"""Sharing where it is felt: against filling everything anew, among more nodes than fit into one region."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from p2p import region_filling
from p2p.fair import FairShare
from p2p.local_share import LocalShare, share_of

Kind = type[FairShare] | type[LocalShare]
NODES, DEGREE = 250, 4


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


def test_a_change_is_not_felt_far_away() -> None:
    """A ring of a thousand pairs, each on links of its own: a newcomer turns only whom it meets."""
    share = LocalShare(np.full(2000, 10.0), np.full(2000, 99.0))
    pairs = np.arange(0, 2000, 2)
    share.start(0.0, pairs, pairs, pairs + 1, np.full(1000, 100.0))
    assert share.next_event_s() == 10.0
    share.changed.clear()
    share.start(5.0, np.array([5001]), np.array([6]), np.array([9]), np.array([80.0]))
    assert share.next_event_s() == 10.0
    assert sorted(flow.number for flow in share.changed) == [6, 5001]
    assert {number: end_s for number, end_s, _ in share.advance(99.0).rows() if end_s != 10.0} == {6: 15.0, 5001: 18.0}


def test_who_shares_for_whom() -> None:
    """Everything is filled anew among few nodes and on a grid, and only what is felt among many."""
    few, many = np.full(10, 1.0), np.full(1000, 1.0)
    assert isinstance(share_of(few, few), FairShare)
    assert isinstance(share_of(many, many), LocalShare)
    assert isinstance(share_of(many, many, 0.5), FairShare)
