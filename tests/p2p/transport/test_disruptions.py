"""Nodes that go down, partitions and slow links, and what becomes of messages under way."""

from __future__ import annotations

from typing import Any

import pytest

from p2p.clock import Rank
from p2p.transport.impairments import Partition
from p2p.transport.inbox import Inbox
from p2p.transport.messages import Message
from p2p.transport.sharing import SHARINGS
from tests.p2p.small_network import EACH_SHARING, Rows, SmallNetwork, nodes


def test_a_message_that_was_kept_is_lost_when_its_receiver_goes_down(message_rows: Rows) -> None:
    """Its sender sends it again after the timeout, as it does with any lost message."""
    post, kept = SmallNetwork(tries=2), list[Any]()
    post.network.attach(1, lambda message: kept.append(message), post.inboxes[1])
    post.send(0, [1])
    post.clock.call_at(1.0, Rank.FAULT, 1, lambda: post.network.lose(kept[0], "receiver_down"))
    post.clock.run()
    told = [(row["attempt"], row["sent_s"], row["outcome"], row["reason"]) for row in message_rows(post.log)]
    assert told == [(1, 0.0, "lost", "receiver_down"), (2, 3.0, "in_flight", "")]


def test_what_has_come_to_a_node_is_read_before_it_goes_down() -> None:
    """It came to a node that was up, with the keys of that life; nothing else has opened it by then."""
    post, up = SmallNetwork(), list[bool]()
    post.network.sessions.open(1, 1)
    post.inboxes[1] = Inbox(post.network, 1, lambda deliveries: up.append(not post.network.is_down(1)))
    post.network.attach(1, lambda message: "", post.inboxes[1])
    post.send(0, [1])
    post.clock.call_at(1.0, Rank.FAULT, 1, lambda: post.network.take_down(1))
    post.clock.run()
    assert up == [True]


@EACH_SHARING
def test_what_is_on_its_way_to_a_node_that_goes_down_is_lost(sharing: str, message_rows: Rows) -> None:
    """On the uplink, in transit, or in the queue of the downlink: three to node 3, none of which is there by 0.55 s."""
    post = SmallNetwork(sharing=sharing, tries=1)
    for sender in range(3):
        post.send(sender, [3, (sender + 1) % 3], size_bytes=500)
    post.clock.call_at(0.55, Rank.FAULT, 3, lambda: post.network.take_down(3))
    post.clock.run()
    rows = [row for row in message_rows(post.log) if row["receiver"] == 3]
    assert [(row["outcome"], row["reason"]) for row in rows] == [("lost", "receiver_down")] * 3


@EACH_SHARING
def test_a_node_that_goes_down_takes_its_unsent_messages_with_it(sharing: str, message_rows: Rows) -> None:
    """At 0.25 s a part of the bytes has left; node 1's own message is not touched."""
    post = SmallNetwork(sharing=sharing, tries=3)
    post.send(0, [2, 3], size_bytes=500)
    post.send(1, [2], size_bytes=200)
    post.clock.call_at(0.25, Rank.FAULT, 0, lambda: post.network.take_down(0))
    post.clock.call_at(0.5, Rank.FAULT, 0, lambda: post.network.bring_up(0))
    post.clock.run()
    rows = message_rows(post.log)
    told = [(row["sender"], row["outcome"], row["reason"], row["left_s"]) for row in rows if row["sender"] == 0]
    # A node that has been down does not send its old messages again.
    assert told == [(0, "lost", "sender_down", 0.25)] * 2
    left = {"ideal": [250, 250], "fifo": [250, 0], "fair": [125, 125]}[sharing]
    assert [row["left_bytes"] for row in rows if row["sender"] == 0] == left
    assert [row["outcome"] for row in rows if row["sender"] == 1] == ["delivered"]


def test_a_node_that_is_down_sends_nothing(message_rows: Rows) -> None:
    """What it hands over is not even counted."""
    post = SmallNetwork()
    post.network.take_down(0)
    post.send(0, [1])
    post.network.bring_up(0)
    post.send(0, [2])
    post.clock.run()
    assert [row["receiver"] for row in message_rows(post.log)] == [2]
    assert not post.network.is_down(0)


def test_what_is_in_transit_when_its_sender_goes_down_arrives(message_rows: Rows) -> None:
    """The last byte left at 0.5 s; the sender crashes at 0.55 s, the message arrives at 0.6 s."""
    for sharing in sorted(SHARINGS):
        post = SmallNetwork(sharing=sharing)
        post.send(0, [1])
        post.clock.call_at(0.55, Rank.FAULT, 0, lambda post=post: post.network.take_down(0))  # type: ignore[misc]
        post.clock.run()
        assert [row["outcome"] for row in message_rows(post.log)] == ["delivered"], sharing


@pytest.mark.parametrize("both", [False, True])
@EACH_SHARING
def test_a_partition_ends_what_is_under_way_across_it(sharing: str, both: bool, message_rows: Rows) -> None:
    """From 0.3 s to 1 s, between node 0 and the others: one way or both; nodes 2 and 3 go on."""
    post = SmallNetwork(sharing=sharing, tries=2)
    for sender, receiver in ((0, 1), (1, 0), (2, 3)):
        post.send(sender, [receiver])
    cut = Partition(nodes(0), nodes(1, 2, 3), both=both)
    post.clock.call_at(0.3, Rank.FAULT, 0, lambda: post.network.impair(cut))
    post.clock.call_at(1.0, Rank.FAULT, 0, lambda: post.network.repair(cut))
    post.clock.run()
    told = {
        (row["sender"], row["attempt"]): (row["sent_s"], row["outcome"], row["reason"], row["left_bytes"])
        for row in message_rows(post.log)
    }
    first, again = (0.0, "lost", "partition", 300), (2.3, "delivered", "", 500)
    delivered = (0.0, "delivered", "", 500)
    assert told == {
        (0, 1): first,
        (0, 2): again,
        (2, 1): delivered,
        **({(1, 1): first, (1, 2): again} if both else {(1, 1): delivered}),
    }


def test_losing_a_kept_message_leaves_others_on_their_way(message_rows: Rows) -> None:
    """One is kept since 0.6 s; when the node goes down at 1 s, the one that is under way is lost with it."""
    post = SmallNetwork(tries=1)
    kept: list[Message] = []

    def keep(message: Message) -> None:
        kept.append(message)

    post.network.attach(1, keep, post.inboxes[1])

    def crash() -> None:
        post.network.lose(kept[0], "receiver_down")
        post.network.take_down(1)

    post.send(0, [1])
    post.clock.call_at(0.7, Rank.START, 2, lambda: post.send(2, [1], 5000))
    post.clock.call_at(1.0, Rank.FAULT, 1, crash)
    post.clock.run()
    assert [(row["outcome"], row["left_bytes"]) for row in message_rows(post.log)] == [("lost", 500), ("lost", 300)]
    assert len(kept) == 1


@EACH_SHARING
def test_an_aborted_message_leaves_nothing_to_a_later_one(sharing: str) -> None:
    """The first is cut off at 1 s and would have arrived at 5.5 s; the second has its memory, and arrives on time."""
    post = SmallNetwork(sharing=sharing, latency_s=5.0, tries=1)
    cut = Partition(nodes(0), nodes(1))
    post.send(0, [1])
    post.clock.call_at(1.0, Rank.FAULT, 0, lambda: post.network.impair(cut))
    # Reading the log writes ended messages, which frees their memory for others.
    post.clock.call_at(1.5, Rank.START, 0, lambda: len(post.log.messages))
    post.clock.call_at(2.0, Rank.START, 2, lambda: post.send(2, [3]))
    post.clock.run()
    assert post.arrivals() == [(7.5, 3, "for 3")]


def test_a_slow_link_holds_for_what_begins_later_and_under_fair_sharing_at_once() -> None:
    """500 bytes at 1 kB/s; at 0.25 s the uplink is ten times as slow; another message starts then."""
    arrived = {}
    for sharing in sorted(SHARINGS):
        post = SmallNetwork(sharing=sharing)
        post.send(0, [1])
        post.clock.call_at(0.25, Rank.FAULT, 0, lambda post=post: post.network.scale_links([0], 0.1, 1.0))  # type: ignore[misc]
        post.clock.call_at(0.25, Rank.START, 0, lambda post=post: post.send(0, [2], 100))  # type: ignore[misc]
        post.clock.run()
        arrived[sharing] = [time_s for time_s, _, _ in sorted(post.got, key=lambda one: one[1])]
    # Under fair sharing 250 and 100 bytes share 100 B/s: 100 bytes each take 2 s, the other 150 then 1.5 s.
    assert arrived["ideal"] == pytest.approx([0.6, 0.25 + 1.0 + 0.1])
    assert arrived["fifo"] == pytest.approx([0.6, 0.5 + 1.0 + 0.1])
    assert arrived["fair"] == pytest.approx([0.25 + 3.5 + 0.1, 0.25 + 2.0 + 0.1])


@pytest.mark.parametrize("sharing", ["ideal", "fifo", "fair"])
def test_failing_fast_leaves_the_uplink_to_others(sharing: str, message_rows: Rows) -> None:
    """Node 1 is down. Its message takes no uplink, is tried again after each timeout, and no byte of it is wasted."""
    post = SmallNetwork(sharing=sharing, receiver_offline="fail_fast")
    post.network.take_down(1)
    post.send(0, [1, 2], 500)
    post.clock.run()
    # 500 bytes at 1 kB/s and 0.1 s: as if there was no message to node 1.
    assert post.arrivals() == [(0.6, 2, "for 2")]
    rows = message_rows(post.log, receiver=1)
    assert [(row["sent_s"], row["outcome"], row["reason"], row["left_bytes"]) for row in rows] == [
        (time_s, "lost", "receiver_down", 0) for time_s in (0.0, 2.0, 4.0)
    ]


def test_failing_fast_does_not_hold_for_a_receiver_that_has_restarted(message_rows: Rows) -> None:
    """It is up and takes bytes that it cannot open: they were sealed for its earlier life."""
    post, cut = SmallNetwork(tries=2, receiver_offline="fail_fast"), Partition(nodes(0), nodes(1))
    post.network.impair(cut)
    post.send(0, [1])
    post.clock.call_at(1.0, Rank.FAULT, 0, lambda: post.network.repair(cut))
    post.clock.call_at(1.0, Rank.FAULT, 1, lambda: post.network.take_down(1))
    post.clock.call_at(1.5, Rank.FAULT, 1, lambda: post.network.bring_up(1))
    post.clock.run()
    told = [(row["sent_s"], row["left_s"], row["reason"], row["left_bytes"]) for row in message_rows(post.log)]
    assert told == [(0.0, 0.5, "partition", 500), (2.5, 3.0, "receiver_down", 500)]


def test_failing_fast_is_over_when_the_receiver_is_back() -> None:
    """A control message's second try finds node 1 up again."""
    post = SmallNetwork(receiver_offline="fail_fast")
    post.network.take_down(1)
    post.send(0, [1], 500, kind="control", immediate=True)
    post.clock.call_at(1.0, Rank.FAULT, 1, lambda: post.network.bring_up(1))
    post.clock.run()
    assert post.arrivals() == [(2.6, 1, "for 1")]
