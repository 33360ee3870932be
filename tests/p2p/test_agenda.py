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
                agenda.add(entry[0], entry[1], done.append, entry)
        else:
            agenda.add_all([entry[0] for entry in fresh], [entry[1] for entry in fresh], done.append, fresh)
        waiting = sorted(waiting + fresh)
        for _ in range(min(between, len(waiting))):
            assert agenda.next_s == waiting[0][0]
            agenda.fire()
            assert done[-1] == waiting.pop(0)
    while waiting:
        agenda.fire()
        assert done[-1] == waiting.pop(0)
    assert agenda.next_s == np.inf


def test_what_is_not_wanted_any_more_can_be_dropped() -> None:
    """Of three that came in two are kept."""
    agenda, done = Agenda(), list[str]()
    for time_s, name in ((1.0, "a"), (2.0, "b"), (3.0, "c")):
        agenda.add(time_s, 0, done.append, name)
    agenda.keep(lambda name: name != "b")
    agenda.fire()
    agenda.fire()
    assert (done, agenda.next_s) == (["a", "c"], np.inf)
