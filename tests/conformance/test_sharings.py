"""What every model of sharing keeps: all messages end, none beats its links, an abort frees, and both ways in agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.clock import Rank
from p2p.transport.flow_arrivals import Flows, arrivals
from p2p.transport.sharing import SHARINGS
from tests.p2p.small_network import SmallNetwork

Rows = Callable[..., list[dict[str, Any]]]
UP = np.array([1000.0, 500.0, 2000.0, 250.0, np.inf])
DOWN = np.array([1000.0, 2000.0, 400.0, 800.0, np.inf])
KINDS = pytest.mark.parametrize("kind", sorted(SHARINGS))


class Sent(NamedTuple):
    """A message to be handed over."""

    at_s: float
    src: int
    dst: int
    size_bytes: int


MESSAGES = st.lists(
    st.builds(
        Sent,
        at_s=st.integers(0, 40).map(lambda tenths: tenths / 10),
        src=st.integers(0, 4),
        dst=st.integers(0, 4),
        size_bytes=st.integers(1, 5000),
    ).filter(lambda message: message.src != message.dst),
    max_size=20,
)


def play(kind: str, sent: Sequence[Sent]) -> SmallNetwork:
    """Hands everything over in time to a network of five nodes, node 4 without limits."""
    post = SmallNetwork(5, up=UP.tolist(), down=DOWN.tolist(), latency_s=0.1, sharing=kind, tries=1)
    for message in sorted(sent):
        send = partial(post.send, message.src, [message.dst], message.size_bytes)
        post.clock.call_at(message.at_s, Rank.START, message.src, send)
    post.clock.run()
    return post


@KINDS
@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(MESSAGES)
def test_each_ends_once_in_order_and_not_before_its_links_allow(
    message_rows: Rows, kind: str, sent: list[Sent]
) -> None:
    """t + S/min(U, D) + L is the earliest for any message."""
    post = play(kind, sent)
    rows = message_rows(post.log)
    assert len(rows) == len(post.got) == len(sent)
    times = [time_s for time_s, _, _ in post.got]
    assert times == sorted(times)
    for row in rows:
        fastest_s = row["size_bytes"] / min(UP[row["sender"]], DOWN[row["receiver"]]) + 0.1
        assert row["arrived_s"] >= row["sent_s"] + fastest_s - 1e-9
        assert row["left_s"] <= row["arrived_s"]
        assert row["bottleneck"] in {"uplink", "downlink", "latency"}


@KINDS
@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(MESSAGES)
def test_a_run_gives_the_arrivals_of_the_pure_function(message_rows: Rows, kind: str, sent: list[Sent]) -> None:
    """Event by event it gives what is computed for all flows at once, to the bit."""
    rows = message_rows(play(kind, sent).log)
    flows = Flows(
        src=np.array([row["sender"] for row in rows], dtype=np.int64),
        dst=np.array([row["receiver"] for row in rows], dtype=np.int64),
        size_bytes=np.array([row["size_bytes"] for row in rows], dtype=np.float64),
        start_s=np.array([row["sent_s"] for row in rows], dtype=np.float64),
    )
    assert [row["arrived_s"] for row in rows] == arrivals(kind, UP, DOWN, 0.1, flows).tolist()


@KINDS
def test_alone_a_message_takes_size_over_rate_plus_latency(kind: str, message_rows: Rows) -> None:
    """Without any other, all models agree, and name the slower link."""
    held = []
    for src, dst in ((0, 1), (1, 2), (3, 0), (4, 2), (0, 4), (4, 4)):
        (row,) = message_rows(play(kind, [Sent(1.0, src, dst, 1000)]).log)
        assert row["arrived_s"] == pytest.approx(1.0 + 1000 / min(UP[src], DOWN[dst]) + 0.1)
        held.append(row["bottleneck"])
    assert held == ["uplink", "downlink", "uplink", "downlink", "uplink", "latency"]


@KINDS
def test_aborting_frees_the_links(kind: str, message_rows: Rows) -> None:
    """Two messages share an uplink; one's receiver goes down at 0.5 s, and the other is no later than without it."""
    post = SmallNetwork(5, up=UP.tolist(), down=DOWN.tolist(), sharing=kind, tries=1)
    post.send(0, [1, 3], 1000)
    post.clock.call_at(0.5, Rank.FAULT, 1, lambda: post.network.take_down(1))
    post.clock.run()
    gone, stays = message_rows(post.log)
    assert (gone["outcome"], gone["left_s"], stays["outcome"]) == ("lost", 0.5, "delivered")
    assert 0 < gone["left_bytes"] <= 500
    assert stays["arrived_s"] <= 0.5 + 1000 / DOWN[3] + 0.1 + 1e-9


@KINDS
def test_an_idle_network_has_nothing_to_wait_for(kind: str) -> None:
    """The clock stands where it was."""
    post = SmallNetwork(sharing=kind)
    post.clock.run()
    assert post.clock.now == 0.0
