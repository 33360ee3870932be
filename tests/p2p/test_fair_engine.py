"""The engine of fair sharing: the story of a few transfers."""

from __future__ import annotations

import numpy as np
import pytest

from p2p.fair import FairShare
from p2p.fair_engine import FairEngine
from p2p.sharing import Transfer
from tests.engine_runs import advance


def engine(up: list[float], down: list[float]) -> FairEngine:
    return FairEngine(np.array(up, dtype=float), np.array(down, dtype=float))


def transfer(row: int, src: int, dst: int, size: float, latency_s: float = 0.5, cut: bool = False) -> Transfer:
    return Transfer(row, src, dst, size, latency_s, cut, 0.0)


def story(fair: FairEngine, until_s: float = 1e9) -> list[tuple[float, int, str]]:
    told = []
    while (next_s := fair.next_s()) <= until_s:
        told += [(ended.time_s, ended.transfer.row, ended.bottleneck) for ended in advance(fair, next_s)]
    return told


def test_latency_comes_after_the_last_byte() -> None:
    """10 B/s shared: 50 and 100 bytes leave at 10 and 15 s, and arrive half a second later."""
    fair = engine([10, 1, 1], [99, 99, 99])
    long, short = transfer(1, 0, 1, 100), transfer(2, 0, 2, 50)
    fair.start(0.0, [long, short])
    assert story(fair) == [(10.5, 2, "uplink"), (15.5, 1, "uplink")]
    assert (short.left_s, long.left_s) == (10.0, 15.0)


def test_a_cut_transfer_ends_when_it_has_left_and_spares_the_downlink() -> None:
    """The receiver's 10 B/s are all for the other."""
    fair = engine([10, 10, 1], [9, 9, 10])
    fair.start(0.0, [transfer(1, 0, 2, 100, cut=True)])
    fair.start(0.0, [transfer(2, 1, 2, 100)])
    assert story(fair) == [(10.0, 1, "uplink"), (10.5, 2, "uplink")]


def test_unlimited_links_leave_only_the_latency() -> None:
    """Handed over and arrived half a second later."""
    fair = engine([np.inf, 1], [1, np.inf])
    fair.start(2.0, [transfer(1, 0, 1, 100)])
    assert story(fair) == [(2.5, 1, "latency")]


def test_aborts_tell_the_bytes_that_had_left() -> None:
    """One half sent, one on its way with everything sent, one not begun in time; the rest speeds up."""
    fair = engine([10, 10, 1], [99, 99, 99])
    half, gone, stays = transfer(1, 0, 1, 100), transfer(2, 1, 2, 20), transfer(3, 0, 2, 100)
    fair.start(0.0, [half, gone, stays])
    assert fair.abort(2.25, [half, gone]) == [11.25, 20.0]
    late = transfer(4, 0, 1, 50)
    fair.start(3.0, [late])
    assert fair.abort(3.0, [late]) == [0.0]
    assert story(fair) == [(0.5 + 2.25 + (100 - 11.25) / 10, 3, "uplink")]


def test_capacity_changes_hold_for_what_is_under_way() -> None:
    """Full rate for 2 s, then a fifth of it."""
    fair = engine([10, 1], [99, 99])
    fair.start(0.0, [transfer(1, 0, 1, 100)])
    fair.set_capacity(2.0, 0, 2.0, 1.0)
    assert story(fair) == [(42.5, 1, "uplink")]


def test_one_instant_costs_one_filling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred senders, each in a call of its own, and the caller asks after every one."""
    fillings = []
    fill_now = FairShare._fill

    def counted(self: FairShare) -> None:
        fillings.append(self._due_s)
        fill_now(self)

    monkeypatch.setattr(FairShare, "_fill", counted)
    fair = engine([10.0] * 100, [10.0] * 100)
    for node in range(100):
        both = [transfer(2 * node + other, node, (node + 1 + other) % 100, 50) for other in range(2)]
        fair.start(1.0, both)
        assert fair.next_s() == 6.0
    assert {time_s for time_s, _, _ in story(fair)} == {11.5}
    assert fillings == [1.0]


def test_who_is_alone_needs_no_filling_until_another_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds alone at 10 bytes/s, then two at 5; the second has the link alone in the end."""
    fillings = []
    fill_now = FairShare._fill

    def counted(self: FairShare) -> None:
        fillings.append(self._due_s)
        fill_now(self)

    monkeypatch.setattr(FairShare, "_fill", counted)
    fair = engine([10.0, 10.0, 10.0], [np.inf, np.inf, np.inf])
    fair.start(0.0, [transfer(1, 0, 2, 150)])
    fair.start(0.0, [transfer(2, 1, 2, 20)])
    assert (fair.next_s(), fillings) == (2.5, [])
    assert [ended.transfer.row for ended in advance(fair, 10.0)] == [2]
    fair.start(10.0, [transfer(3, 0, 2, 150)])
    assert story(fair) == [(20.5, 1, "uplink"), (30.5, 3, "uplink")]
    assert fillings == [10.0, 20.0]


@pytest.mark.parametrize(("second_sender", "ends", "fillings"), [(1, (10.5, 20.5), 1), (0, (20.5, 30.5), 2)])
def test_an_end_that_frees_nobody_needs_no_filling(
    monkeypatch: pytest.MonkeyPatch, second_sender: int, ends: tuple[float, float], fillings: int
) -> None:
    """100 and 200 bytes at 10 B/s to one receiver: from two senders they do not meet; from one, the end of the first
    leaves the second twice as fast."""
    filled, fill_now = list[float](), FairShare._fill

    def counted(self: FairShare) -> None:
        filled.append(self._due_s)
        fill_now(self)

    monkeypatch.setattr(FairShare, "_fill", counted)
    fair = engine([10.0, 10.0, 10.0], [99.0, 99.0, 99.0])
    for row, sender, size in ((1, 0, 100), (2, second_sender, 200)):
        fair.start(0.0, [transfer(row, sender, 2, size), transfer(row + 10, sender, -1, 0, cut=True)])
    arrivals = [(time_s, row) for time_s, row, _ in story(fair) if row < 10]
    assert arrivals == [(ends[0], 1), (ends[1], 2)]
    assert len(filled) == fillings
