"""`ideal` and `fifo` do exactly what the design defines, to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.engines import FifoEngine, IdealEngine
from p2p.sharing import Engine, Transfer
from tests.engine_runs import Ended, advance

UP = np.array([1000.0, 500.0, 2000.0, 250.0, np.inf])
DOWN = np.array([1000.0, 2000.0, 400.0, 800.0, np.inf])


class Sent(NamedTuple):
    """A message to be handed over."""

    at_s: float
    src: int
    dst: int
    size_bytes: int
    latency_s: float
    cut: bool = False


def drive(engine: Engine, sent: Sequence[Sent]) -> list[Ended]:
    """Hands everything over in time and lets the engine run dry, as the network does; by row."""
    waiting = sorted(enumerate(sent), key=lambda pair: pair[1].at_s)
    ended: list[Ended] = []
    while waiting or engine.next_s() < np.inf:
        now_s = min(engine.next_s(), waiting[0][1].at_s if waiting else np.inf)
        ended += advance(engine, now_s)
        while waiting and waiting[0][1].at_s == now_s:
            row, message = waiting.pop(0)
            engine.start(now_s, [Transfer(row, *message[1:6], handed_s=now_s)])
    assert sorted(end.transfer.row for end in ended) == list(range(len(sent)))
    return sorted(ended, key=lambda end: end.transfer.row)


def fifo_arrivals(sent: Sequence[Sent]) -> list[float]:
    """The design's definition of `fifo`, word for word; a cut message ends when it has left."""
    order = sorted(range(len(sent)), key=lambda row: sent[row].at_s)
    start_s, uplink_free_s = {}, dict.fromkeys(range(len(UP)), 0.0)
    for row in order:
        message = sent[row]
        start_s[row] = max(message.at_s, uplink_free_s[message.src])
        uplink_free_s[message.src] = start_s[row] + message.size_bytes / UP[message.src]
    arrived, downlink_free_s = [0.0] * len(sent), dict.fromkeys(range(len(UP)), 0.0)
    first_bytes = [(start_s[row] + sent[row].latency_s, sent[row].src, order.index(row), row) for row in order]
    for first_byte_s, _, _, row in sorted(first_bytes):
        message = sent[row]
        left_s = start_s[row] + message.size_bytes / UP[message.src]
        if message.cut:
            arrived[row] = left_s
            continue
        served_s = max(first_byte_s, downlink_free_s[message.dst]) + message.size_bytes / DOWN[message.dst]
        downlink_free_s[message.dst] = served_s
        arrived[row] = max(left_s + message.latency_s, served_s)
    return arrived


MESSAGES = st.lists(
    st.builds(
        Sent,
        at_s=st.integers(0, 40).map(lambda tenths: tenths / 10),
        src=st.integers(0, 4),
        dst=st.integers(0, 4),
        size_bytes=st.integers(1, 5000),
        latency_s=st.integers(1, 300).map(lambda ms: ms / 1000),
        cut=st.booleans(),
    ).filter(lambda message: message.src != message.dst),
    max_size=25,
)


@pytest.mark.slow
@given(MESSAGES)
def test_fifo_is_its_definition(sent: list[Sent]) -> None:
    """Queues on a heap give the same bits as the formula applied message by message."""
    assert [end.time_s for end in drive(FifoEngine(UP, DOWN), sent)] == fifo_arrivals(sent)


@pytest.mark.slow
@given(MESSAGES)
def test_ideal_is_its_definition(sent: list[Sent]) -> None:
    """t + S/min(U, D) + L, and nobody waits for anybody; a cut message uses the uplink alone."""
    for end, message in zip(drive(IdealEngine(UP, DOWN), sent), sent, strict=True):
        rate = UP[message.src] if message.cut else min(UP[message.src], DOWN[message.dst])
        left_s = message.at_s + message.size_bytes / rate
        assert end.time_s == (left_s if message.cut else left_s + message.latency_s)


def test_fifo_by_hand() -> None:
    """Two senders meet at one downlink; the second message of one waits at its uplink."""
    sent = [
        Sent(0.0, 0, 2, 1000, 0.1),  # leaves 0..1, first byte 0.1, downlink 0.1..2.6
        Sent(0.0, 1, 2, 200, 0.1),  # leaves 0..0.4, first byte 0.1 but sender 0 comes first: downlink 2.6..3.1
        Sent(0.0, 0, 3, 500, 0.2),  # leaves 1..1.5, first byte 1.2, downlink 1.2..1.825
    ]
    ended = drive(FifoEngine(UP, DOWN), sent)
    assert [end.time_s for end in ended] == pytest.approx([2.6, 3.1, 1.825])
    assert [end.bottleneck for end in ended] == ["downlink", "downlink", "downlink"]


def test_what_held_a_message_back() -> None:
    """The slower link; latency alone when neither end has a limit."""
    for engine in (IdealEngine(UP, DOWN), FifoEngine(UP, DOWN)):
        ended = drive(engine, [Sent(0.0, 3, 0, 1000, 0.1), Sent(0.0, 0, 2, 1000, 0.1), Sent(0.0, 4, 4, 1000, 0.1)])
        assert [end.bottleneck for end in ended] == ["uplink", "downlink", "latency"]


def test_an_aborted_message_frees_both_links() -> None:
    """Whoever waited behind it goes on at once, and the bytes that had left are told."""
    engine = FifoEngine(UP, DOWN)
    first = Transfer(0, 0, 2, 1000, 0.1, False, 0.0)
    behind = Transfer(1, 0, 2, 1000, 0.1, False, 0.0)
    engine.start(0.0, [first, behind])
    assert advance(engine, 0.1) == []
    assert engine.abort(0.5, [first]) == [500.0]
    # The second leaves 0.5..1.5, its first byte is there at 0.6, the downlink (400 B/s) takes 2.5 s.
    ended = []
    while engine.next_s() < np.inf:
        ended += advance(engine, engine.next_s())
    assert [(end.transfer.row, end.time_s) for end in ended] == [(1, 3.1)]


def test_an_aborted_ideal_transfer_never_ends() -> None:
    """It is taken out; others are as they were."""
    engine = IdealEngine(UP, DOWN)
    gone, stays = Transfer(0, 0, 1, 1000, 0.1, False, 0.0), Transfer(1, 0, 1, 1000, 0.1, False, 0.0)
    engine.start(0.0, [gone, stays])
    assert engine.abort(0.25, [gone]) == [250.0]
    assert [end.transfer.row for end in advance(engine, 5.0)] == [1]


def test_a_new_rate_holds_from_now_on() -> None:
    """Messages under way keep theirs in `fifo`; the next one to leave has the new one."""
    engine = FifoEngine(UP, DOWN)
    transfers = [Transfer(row, 0, 4, 1000, 0.0, False, 0.0) for row in range(2)]
    engine.start(0.0, transfers)
    engine.set_capacity(0.5, 0, 2000.0, 1000.0)
    ended = advance(engine, 1.0) + advance(engine, 9.0)
    assert [end.time_s for end in ended] == [1.0, 1.5]


def test_endings_of_one_instant_come_by_receiver_then_sender() -> None:
    """So that what happens next does not depend on the order of sending."""
    for engine in (
        IdealEngine(np.full(4, 100.0), np.full(4, 100.0)),
        FifoEngine(np.full(4, 100.0), np.full(4, np.inf)),
    ):
        engine.start(0.0, [Transfer(0, 3, 2, 100, 0.1, False, 0.0), Transfer(1, 1, 2, 100, 0.1, False, 0.0)])
        engine.start(0.0, [Transfer(2, 2, 0, 100, 0.1, False, 0.0)])
        ended = []
        while engine.next_s() < np.inf:
            ended += advance(engine, engine.next_s())
        assert [end.transfer.row for end in ended] == [2, 1, 0]
