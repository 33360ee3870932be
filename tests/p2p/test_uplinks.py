"""Waves on one uplink leave when fair sharing says so, as long as no downlink is short."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.fair import FairShare
from p2p.parcels import Wave
from p2p.uplinks import Uplinks

NODES = 6
STARTS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(0, 1),
        st.integers(1, 900),
        st.sets(st.integers(2, NODES - 1), min_size=1).map(sorted),
    ),
    min_size=1,
    max_size=8,
)


def wave(sender: int, receivers: list[int], size_bytes: int, row: int, now_s: float) -> Wave:
    """A wave without latency, handed over now."""
    made = Wave("update", 1, sender, receivers, size_bytes, 0, [None] * len(receivers), 1, np.inf)
    made.row, made.sent_s, made.latencies = row, now_s, [0.0] * len(receivers)
    return made


@pytest.mark.slow
@given(STARTS)
def test_waves_leave_as_if_all_links_were_shared(starts: list[tuple[int, int, int, list[int]]]) -> None:
    """Two senders with 100 and 300 bytes/s, downlinks that take everything: the ends of FairShare, to the rounding."""
    up, down = np.array([100.0, 300.0, *[50.0] * (NODES - 2)]), np.full(NODES, 1e9)
    uplinks, share, waves, row = Uplinks(up.tolist(), down), FairShare(up, down), list[Wave](), 0
    for now_s, sender, size_bytes, receivers in sorted(starts, key=lambda start: start[0]):
        waves.append(wave(sender, receivers, size_bytes, row, float(now_s)))
        assert uplinks.carry(float(now_s), waves[-1])
        ids, count = np.arange(row, row + len(receivers)), len(receivers)
        share.start(float(now_s), ids, np.full(count, sender), np.array(receivers), np.full(count, float(size_bytes)))
        row += count
    ended = share.advance(1e6)
    left_s = dict(zip(ended.ids.tolist(), ended.finished_s.tolist(), strict=True))
    for one in waves:
        expected = [left_s[one.row + place] for place in range(len(one.receivers))]
        assert expected == pytest.approx([one.left_s] * len(expected), rel=1e-12)


def test_a_wave_that_a_downlink_may_hold_back_is_not_carried() -> None:
    """Node 1 takes 60 bytes/s: one sender at 50 is fine, another one beside it is not; later it is."""
    uplinks = Uplinks([50.0, 50.0, 50.0], np.array([np.inf, 60.0, np.inf]))
    assert uplinks.carry(0.0, wave(0, [1], 100, 0, 0.0))
    assert not uplinks.carry(1.0, wave(2, [1], 100, 1, 1.0))
    assert uplinks.carry(1.0, wave(2, [0], 100, 1, 1.0))
    assert uplinks.carry(2.0, wave(2, [0], 100, 2, 2.0))
    assert uplinks.carry(5.0, wave(2, [1], 100, 3, 5.0))


def test_a_second_wave_puts_the_first_one_off() -> None:
    """100 bytes at 50 bytes/s leave at 2 s; from 1 s on another 25 take half: they leave at 2 s, the first at 2.5 s."""
    uplinks = Uplinks([50.0, 50.0], np.full(2, np.inf))
    first, second = wave(0, [1], 100, 0, 0.0), wave(0, [1], 25, 1, 1.0)
    uplinks.carry(0.0, first)
    assert (first.left_s, first.moved) == (2.0, False)
    uplinks.carry(1.0, second)
    assert (first.left_s, first.moved, second.left_s) == (2.5, True, 2.0)
    assert [(one.wave, one.left) for one in uplinks.let_go(1.5, [0])] == [(first, 50.0), (second, 25.0)]
    assert not uplinks.holds(1.5, 0)


def test_over_unlimited_uplinks_each_has_its_downlink_to_itself() -> None:
    """Node 1 takes 10 bytes/s, node 2 everything at once; while node 1 is busy, nothing else is carried to it."""
    uplinks = Uplinks([np.inf, 50.0, 50.0], np.array([np.inf, 10.0, np.inf]))
    fan = wave(0, [1, 2], 100, 0, 3.0)
    assert uplinks.carry(3.0, fan)
    assert fan.lefts == [13.0, 3.0]
    assert not uplinks.carry(4.0, wave(0, [1, 2], 100, 2, 4.0))
    assert not uplinks.carry(4.0, wave(2, [1], 100, 2, 4.0))
    assert uplinks.falling_on(4.0, {1}) == [fan]
