"""Generated traces have the statistics of the published ones."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import get_args

import numpy as np
import pytest

from nodes.faults.availability import DayTrace, TraceName
from nodes.faults.trace_models import TRACES, Diurnal, OnlineSessions
from p2p.random_streams import stream

DAY_S = 86_400.0


def test_every_trace_can_be_named_and_says_where_it_comes_from() -> None:
    """The names of the scenario file are those of the table."""
    assert set(TRACES) == set(get_args(TraceName))
    assert all("20" in model.source for model in TRACES.values())


@pytest.mark.parametrize("name", get_args(TraceName))
def test_intervals_follow_each_other(name: TraceName) -> None:
    """Each ends after it began and before the next; equal seeds give equal intervals, other nodes others."""
    trace = DayTrace(trace=name)
    first = list(islice(trace.down(3, 7), 50))
    assert all(0 <= begin_s < end_s for begin_s, end_s in first)
    assert all(end_s <= begin_s for (_, end_s), (begin_s, _) in pairwise(first))
    assert first == list(islice(trace.down(3, 7), 50))
    assert first != list(islice(trace.down(4, 7), 50))


@pytest.mark.parametrize("name", [name for name, model in TRACES.items() if isinstance(model, OnlineSessions)])
def test_medians_and_availability_of_sessions(name: str) -> None:
    """Over long times: the medians of the source, and the share of the time that clients are up."""
    model = TRACES[name]
    assert isinstance(model, OnlineSessions)
    down = list(islice(model.down(stream(1, name), 0.0), 20_000))[1:]
    pauses = np.array([end_s - begin_s for begin_s, end_s in down])
    sessions = np.array([begin_s - end_s for (_, end_s), (begin_s, _) in pairwise(down)])
    assert np.median(pauses) == pytest.approx(model.median_down_s, rel=0.05)
    assert np.median(sessions) == pytest.approx(model.median_up_s, rel=0.05)
    assert sessions.sum() / (sessions.sum() + pauses.sum()) == pytest.approx(model.availability, abs=0.03)


@pytest.mark.slow
def test_the_share_that_is_up_swings_over_the_day() -> None:
    """2,000 phones on their third day: as many are up as the curve says, four times as many at 2 h as at 14 h."""
    model = TRACES["phones_charging"]
    assert isinstance(model, Diurnal)
    assert model.share_at(2 * 3600) / model.share_at(14 * 3600) == pytest.approx(4.0)
    up = dict.fromkeys((2, 8, 14, 20), 0)
    for node in range(2000):
        down = []
        for begin_s, end_s in model.down(stream(1, "day", node), 0.0):
            down.append((begin_s, end_s))
            if begin_s > 3 * DAY_S:
                break
        for hour in up:
            at_s = 2 * DAY_S + 3600 * hour
            up[hour] += not any(begin_s <= at_s < end_s for begin_s, end_s in down)
    # A session lasts two hours, so the share follows the curve with that delay: flatter, and later.
    assert up[2] / up[14] > 2.0
    assert np.mean(list(up.values())) / 2000 == pytest.approx(model.availability, abs=0.04)
