"""An agenda does everything in its order, however it came in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.agenda import Agenda

ENTRIES = st.tuples(st.integers(0, 20), st.integers(0, 5))


@pytest.mark.slow
@given(st.lists(st.lists(ENTRIES, max_size=150), max_size=14), st.integers(0, 40))
def test_what_is_due_first_happens_first(pieces: list[list[tuple[int, int]]], between: int) -> None:
    """By time, then node, then order of entry; also if more comes in when some has happened, singly or at once."""
    agenda, done, waiting, number = Agenda(), list[tuple[int, int, int]](), list[tuple[int, int, int]](), 0
    for piece in pieces:
        fresh = [(time, node, number + place) for place, (time, node) in enumerate(piece)]
        number += len(piece)
        if len(piece) % 2:
            for entry in fresh:
                agenda.add(entry[0], entry[1], done.append, entry, entry[2])
        else:
            times, nodes, orders = zip(*fresh, strict=True) if fresh else ((), (), ())
            agenda.add_all(times, nodes, orders, done.append, fresh)
        waiting = sorted(waiting + fresh)
        for _ in range(min(between, len(waiting))):
            assert agenda.next_s == waiting[0][0]
            agenda.fire()
            assert done[-1] == waiting.pop(0)
    while waiting:
        agenda.fire()
        assert done[-1] == waiting.pop(0)
    assert agenda.next_s == np.inf


@pytest.mark.slow
@given(st.lists(st.integers(0, 300), max_size=200), st.integers(0, 5), st.integers(1, 4))
def test_what_is_not_wanted_any_more_is_dropped(times: list[int], before: int, divisor: int) -> None:
    """Whatever came in lately, lies on the heap or in a run: the rest happens in its order, and no step is too many."""
    agenda, done = Agenda(), list[int]()
    for time in times:
        agenda.add(time, 0, done.append, time)
    for _ in range(min(before, len(times))):
        agenda.fire()
    left = [time for time in sorted(times)[len(done) :] if time % divisor]
    agenda.keep(lambda time: time % divisor > 0)
    done.clear()
    while agenda.next_s < np.inf:
        assert agenda.next_s == left[len(done)]
        agenda.fire()
    assert done == left


def test_what_has_no_order_comes_after_what_has() -> None:
    """At one instant and node."""
    agenda, done = Agenda(), list[str]()
    agenda.add(1.0, 0, done.append, "as it came")
    agenda.add(1.0, 0, done.append, "second", 7)
    agenda.add(1.0, 0, done.append, "first", 3)
    for _ in range(3):
        agenda.fire()
    assert done == ["first", "second", "as it came"]
