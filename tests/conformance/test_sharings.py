"""What every model of sharing keeps, whatever else it does: all transfers end, none beats its links, abort frees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.arrivals import Flows, arrivals
from p2p.sharing import SHARINGS, Engine, Transfer
from tests.engine_runs import Ended, advance

UP = np.array([1000.0, 500.0, 2000.0, 250.0, np.inf])
DOWN = np.array([1000.0, 2000.0, 400.0, 800.0, np.inf])
KINDS = pytest.mark.parametrize("kind", sorted(SHARINGS))


class Sent(NamedTuple):
    """A message to be handed over."""

    at_s: float
    src: int
    dst: int
    size_bytes: int
    cut: bool = False


def latency_s(src: int, dst: int) -> float:
    """One way, the same both ways."""
    return (1 + src + dst) / 10


MESSAGES = st.lists(
    st.builds(
        Sent,
        at_s=st.integers(0, 40).map(lambda tenths: tenths / 10),
        src=st.integers(0, 4),
        dst=st.integers(0, 4),
        size_bytes=st.integers(1, 5000),
        cut=st.just(False),
    ).filter(lambda message: message.src != message.dst and (message.src < 4 or message.dst < 4)),
    max_size=20,
)


def drive(engine: Engine, sent: Sequence[Sent]) -> list[Ended]:
    """Hands everything over in time, batch by batch, and lets the engine run dry; in the order of endings."""
    times = sorted({message.at_s for message in sent})
    ended: list[Ended] = []
    while times or engine.next_s() < np.inf:
        now_s = min(engine.next_s(), times[0] if times else np.inf)
        ended += advance(engine, now_s)
        if times and times[0] == now_s:
            times.pop(0)
            batch = [(row, message) for row, message in enumerate(sent) if message.at_s == now_s]
            engine.start(now_s, [make(row, message) for row, message in batch])
    return ended


def make(row: int, message: Sent) -> Transfer:
    """The transfer of a message."""
    at_s, src, dst, size_bytes, cut = message
    return Transfer(row, src, dst, size_bytes, latency_s(src, dst), cut, at_s)


@KINDS
@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(MESSAGES)
def test_each_ends_once_in_order_and_not_before_its_links_allow(kind: str, sent: list[Sent]) -> None:
    """t + S/min(U, D) + L is the earliest for anybody."""
    ended = drive(SHARINGS[kind]().engine(UP, DOWN), sent)
    assert sorted(end.transfer.row for end in ended) == list(range(len(sent)))
    times = [end.time_s for end in ended]
    assert times == sorted(times)
    for end in ended:
        message = sent[end.transfer.row]
        fastest_s = message.size_bytes / min(UP[message.src], DOWN[message.dst]) + latency_s(message.src, message.dst)
        assert end.time_s >= message.at_s + fastest_s - 1e-6
        assert end.transfer.left_s <= end.time_s + 1e-9
        assert end.bottleneck in {"uplink", "downlink", "latency"}


@KINDS
@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(MESSAGES)
def test_the_engine_of_a_run_is_the_reference(kind: str, sent: list[Sent]) -> None:
    """Event by event it gives what the pure function gives for all flows at once."""
    ended = drive(SHARINGS[kind]().engine(UP, DOWN), sent)
    found = np.full(len(sent), np.nan)
    for end in ended:
        found[end.transfer.row] = end.time_s
    flows = Flows(
        src=np.array([message.src for message in sent], dtype=np.int64),
        dst=np.array([message.dst for message in sent], dtype=np.int64),
        size_bytes=np.array([message.size_bytes for message in sent], dtype=np.float64),
        start_s=np.array([message.at_s for message in sent], dtype=np.float64),
    )
    delays = np.array([[latency_s(src, dst) for dst in range(5)] for src in range(5)])
    expected = arrivals(kind, UP, DOWN, delays, flows)
    if kind == "fair":
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    else:
        assert found.tolist() == expected.tolist()


@KINDS
def test_alone_a_message_takes_size_over_rate_plus_latency(kind: str) -> None:
    """When nobody else is about, all models agree."""
    for src, dst in ((0, 1), (1, 2), (3, 0), (4, 2), (0, 4)):
        (end,) = drive(SHARINGS[kind]().engine(UP, DOWN), [Sent(1.0, src, dst, 1000)])
        assert end.time_s == pytest.approx(1.0 + 1000 / min(UP[src], DOWN[dst]) + latency_s(src, dst))


@KINDS
def test_a_cut_message_ends_when_it_has_left(kind: str) -> None:
    """It uses the sender's uplink alone, and delays no one at the receiver."""
    engine = SHARINGS[kind]().engine(UP, DOWN)
    ended = drive(engine, [Sent(0.0, 0, 2, 1000, cut=True), Sent(0.0, 1, 2, 100)])
    times = {end.transfer.row: end.time_s for end in ended}
    assert times[0] == pytest.approx(1.0)
    assert times[1] == pytest.approx(100 / 400 + latency_s(1, 2))


@KINDS
def test_aborting_frees_the_links(kind: str) -> None:
    """Two messages share an uplink; one is taken out at 0.5 s, and the other is there no later than without it."""
    engine = SHARINGS[kind]().engine(UP, DOWN)
    gone, stays = make(0, Sent(0.0, 0, 1, 1000)), make(1, Sent(0.0, 0, 3, 1000))
    engine.start(0.0, [gone, stays])
    while engine.next_s() <= 0.5:
        advance(engine, engine.next_s())
    advance(engine, 0.5)
    (left,) = engine.abort(0.5, [gone])
    assert 0 < left <= 500
    ended = []
    while engine.next_s() < np.inf:
        ended += advance(engine, engine.next_s())
    assert [end.transfer.row for end in ended] == [1]
    assert ended[0].time_s <= 0.5 + 1000 / DOWN[3] + latency_s(0, 3) + 1e-9


@KINDS
def test_nothing_under_way_is_nothing_to_wait_for(kind: str) -> None:
    """An idle engine has no next event."""
    engine = SHARINGS[kind]().engine(UP, DOWN)
    assert engine.next_s() == np.inf
    assert advance(engine, 10.0) == []
