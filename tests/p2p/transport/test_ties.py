"""What happens at one instant happens by rank, node and row, whatever order it was scheduled in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from p2p.clock import Rank
from p2p.transport.messages import Message
from p2p.transport.sharing import SHARINGS
from tests.p2p.small_network import SmallNetwork

Rows = Callable[..., list[dict[str, Any]]]
EACH_SHARING = pytest.mark.parametrize("sharing", sorted(SHARINGS))


@EACH_SHARING
def test_a_round_is_drained_after_all_arrivals_of_the_instant(sharing: str) -> None:
    """Three messages arrive together; the report comes after the last of them, also where that is of another round."""
    post, told = SmallNetwork(sharing=sharing, up=np.inf, latency_s=0.125), list[str]()

    def take(message: Message) -> str:
        told.append(f"{message.receiver} gets it")
        return ""

    for node in range(4):
        post.network.attach(node, take, post.inboxes[node])
    post.send(0, [1, 2], 1000)
    post.send(0, [3], 1000, round_number=2)
    post.network.when_drained(1, lambda: told.append(f"drained at {post.clock.now}"))
    post.clock.run()
    assert told == ["1 gets it", "2 gets it", "3 gets it", "drained at 1.125"]


@EACH_SHARING
@pytest.mark.parametrize("pairs", [[(3, 2), (1, 2)], [(3, 2), (1, 2), (2, 0)]])
def test_arrivals_of_one_instant_come_by_receiver_then_row(sharing: str, pairs: list[tuple[int, int]]) -> None:
    """Node 3 sends to 2, node 1 to 2, and perhaps node 2 to 0, in all orders of sending."""
    for order in permutations(pairs):
        post = SmallNetwork(sharing=sharing, down=np.inf)
        for sender, receiver in order:
            post.send(sender, [receiver], 100)
        post.clock.run()
        to_two = [pair[0] for pair in order if pair[1] == 2]
        assert [message.sender for _, _, message in post.got] == [2, *to_two][-len(pairs) :]


def test_fifo_downlinks_serve_first_bytes_of_one_instant_by_sender(message_rows: Rows) -> None:
    """In all orders of sending: node 0 before 1 before 2; each takes half a second on the downlink."""
    for order in permutations(range(3)):
        post = SmallNetwork(sharing="fifo", up=np.inf)
        for sender in order:
            post.send(sender, [3], 500)
        post.clock.run()
        arrived = {row["sender"]: row["arrived_s"] for row in message_rows(post.log)}
        assert arrived == pytest.approx({0: 0.6, 1: 1.1, 2: 1.6})


def test_fifo_frees_a_link_before_the_next_first_byte_reaches_it(message_rows: Rows) -> None:
    """A downlink is free at 0.6 s, when another first byte arrives: nothing waits."""
    post = SmallNetwork(sharing="fifo", up=np.inf)
    post.send(2, [3], 500)
    post.clock.call_at(0.5, Rank.START, 1, partial(post.send, 1, [3], 500))
    post.clock.run()
    assert [row["arrived_s"] for row in message_rows(post.log)] == pytest.approx([0.6, 1.1])


def test_a_fair_flow_that_ends_frees_its_link_for_one_that_starts_then(message_rows: Rows) -> None:
    """The first has left at exactly 1 s; the second starts then and has the whole link."""
    post = SmallNetwork(sharing="fair", latency_s=0.0)
    post.send(0, [1], 1000)
    post.clock.call_at(1.0, Rank.START, 0, partial(post.send, 0, [2], 1000))
    post.clock.run()
    assert [row["arrived_s"] for row in message_rows(post.log)] == [1.0, 2.0]


@EACH_SHARING
def test_a_fault_comes_before_an_arrival_of_its_instant(sharing: str, message_rows: Rows) -> None:
    """The receiver goes down at the very instant at which a message would arrive: it is lost."""
    post = SmallNetwork(sharing=sharing, latency_s=0.125, tries=1)
    post.send(0, [1, 2], 250)
    arrives_s = {"ideal": 0.375, "fifo": 0.375, "fair": 0.625}[sharing]
    post.clock.call_at(arrives_s, Rank.FAULT, 1, lambda: post.network.take_down(1))
    post.clock.run()
    assert [(row["outcome"], row["reason"]) for row in message_rows(post.log)] == [
        ("lost", "receiver_down"),
        ("delivered", ""),
    ]


@EACH_SHARING
def test_bytes_that_have_left_by_an_instant_have_left_before_a_fault_in_it(sharing: str, message_rows: Rows) -> None:
    """The sender goes down exactly when its last byte has left: the message arrives."""
    post = SmallNetwork(sharing=sharing, latency_s=0.125)
    post.send(0, [1], 250)
    post.clock.call_at(0.25, Rank.FAULT, 0, lambda: post.network.take_down(0))
    post.clock.run()
    assert [(row["outcome"], row["arrived_s"]) for row in message_rows(post.log)] == [("delivered", 0.375)]


def test_a_batch_that_names_one_receiver_twice_sends_two_messages(message_rows: Rows) -> None:
    """Both share its downlink."""
    post = SmallNetwork(sharing="fair", up=np.inf, down=700.0, latency_s=0.125)
    post.send(0, [1, 1], 700)
    post.clock.run()
    assert [row["arrived_s"] for row in message_rows(post.log)] == [2.125, 2.125]


def test_many_messages_of_one_node_at_once_end_together(message_rows: Rows) -> None:
    """Fifty flows of ten bytes over 1 kB/s, in batches of their own: one instant, whatever rounding says."""
    post = SmallNetwork(sharing="fair", down=np.inf, latency_s=0.125)
    for _ in range(50):
        post.send(0, [1], 10)
    post.clock.run()
    assert {row["left_s"] for row in message_rows(post.log)} == {0.5}


def test_ends_that_differ_by_rounding_are_one_instant(message_rows: Rows) -> None:
    """0.7 + 0.1 is less than 0.6 + 0.2 in floating point; flows that end then have the same end."""
    post = SmallNetwork(sharing="fair", down=np.inf, latency_s=0.0)
    for sender, (start_s, size) in enumerate([(0.7, 100), (0.6, 200)]):
        post.clock.call_at(start_s, Rank.START, sender, partial(post.send, sender, [3], size))
    post.clock.run()
    assert 0.7 + 0.1 < 0.6 + 0.2
    assert [row["left_s"] for row in message_rows(post.log)] == [0.7 + 0.1] * 2


@EACH_SHARING
def test_the_order_of_independent_batches_does_not_matter(sharing: str, message_rows: Rows) -> None:
    """Senders hand over at one instant in any order: every message leaves and arrives at the same times."""
    found = []
    for order in permutations(range(4)):
        post = SmallNetwork(sharing=sharing, up=[700.0, 1100.0, np.inf, 300.0], down=[np.inf, 900.0, 500.0, 400.0])
        for sender in order:
            post.send(sender, [(sender + 1) % 4, (sender + 2) % 4], 300 + sender)
        post.clock.run()
        columns = ("sender", "receiver", "left_s", "arrived_s", "outcome", "bottleneck")
        found.append(sorted(tuple(row[name] for name in columns) for row in message_rows(post.log)))
    if sharing == "fair":
        # Rates are added up in the order of rows, so the last digit may differ.
        for other in found[1:]:
            assert [one[:2] + one[4:] for one in other] == [one[:2] + one[4:] for one in found[0]]
            assert np.allclose([one[2:4] for one in other], [one[2:4] for one in found[0]], rtol=1e-13)
    else:
        assert all(other == found[0] for other in found)
