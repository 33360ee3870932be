"""The network carries messages, loses them, sends them again, and keeps a message log that balances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from p2p.clock import Rank
from p2p.log.records import NOBODY
from p2p.transport.impairments import Chance, Partition
from p2p.transport.sharing import SHARINGS
from tests.p2p.small_network import SmallNetwork

Rows = Callable[..., list[dict[str, Any]]]
EVERYONE = np.ones(4, dtype=np.bool_)
EACH_SHARING = pytest.mark.parametrize("sharing", sorted(SHARINGS))


def nodes(*chosen: int) -> Any:
    """A mask over four nodes."""
    return np.isin(np.arange(4), chosen)


def test_a_message_takes_size_over_rate_plus_latency(book_rows: Rows) -> None:
    """500 bytes at 1 kB/s and 0.1 s: they arrive after 0.6 s, and the log says so."""
    post = SmallNetwork()
    post.send(0, [1, 2])
    post.clock.run()
    assert post.arrivals() == [(0.6, 1, "for 1"), (0.6, 2, "for 2")]
    (row, _) = book_rows(post.log)
    told = {name: row[name] for name in ("sender", "receiver", "size_bytes", "attempt", "sent_s", "outcome", "reason")}
    assert told == {
        "sender": 0,
        "receiver": 1,
        "size_bytes": 500,
        "attempt": 1,
        "sent_s": 0.0,
        "outcome": "delivered",
        "reason": "",
    }
    assert (row["left_s"], row["arrived_s"], row["left_bytes"]) == (0.5, pytest.approx(0.6), 500)
    assert (row["overhead_bytes"], row["bottleneck"]) == (82, "uplink")


@EACH_SHARING
def test_arrivals_do_not_depend_on_how_often_the_clock_stops(sharing: str) -> None:
    """Delays are drawn when the first of them could arrive, so events in between must not hold an arrival up."""

    def arrivals(ticks: int) -> list[tuple[float, int, str]]:
        post = SmallNetwork(sharing=sharing, jitter_s=0.05)
        for number in range(ticks):
            post.clock.call_at(0.01 * number, Rank.START, 0, lambda: None)
        post.send(0, [1, 2, 3])
        post.clock.call_at(0.3, Rank.START, 2, lambda: post.send(2, [0, 1, 3], 100))
        post.clock.run()
        return post.arrivals()

    assert arrivals(500) == arrivals(0)
    assert len(arrivals(0)) == 6


def test_a_closed_network_has_its_whole_log(book_rows: Rows) -> None:
    """At the end of a run the core's memory goes, and what is in flight then stays so."""
    post = SmallNetwork()
    post.send(0, [1])
    post.clock.call_at(0.55, Rank.START, 0, lambda: post.send(2, [3]))
    post.clock.run(until=0.8)
    before = book_rows(post.log)
    post.network.close()
    assert str(book_rows(post.log)) == str(before)  # as text, since what has not arrived has NaN as its time
    assert [row["outcome"] for row in before] == ["delivered", "in_flight"]


def test_a_lost_message_is_sent_again_with_the_identical_bytes(book_rows: Rows) -> None:
    """Everything is lost: two seconds after it had left, each is sent again, three times in total."""
    post = SmallNetwork(loss=1.0)
    post.send(0, [1])
    post.clock.run()
    rows = book_rows(post.log)
    assert [(row["attempt"], row["sent_s"], row["left_s"]) for row in rows] == [(1, 0, 0.5), (2, 2.5, 3), (3, 5, 5.5)]
    assert {(row["size_bytes"], row["outcome"], row["reason"], row["left_bytes"]) for row in rows} == {
        (500, "lost", "random", 500)
    }
    assert post.got == []


def test_what_arrives_in_the_end_is_what_was_sent_first(book_rows: Rows) -> None:
    """A retransmission carries the very same content."""
    post = SmallNetwork(loss=0.5, tries=20)
    for _ in range(10):
        post.send(0, [1, 2, 3])
    post.clock.run()
    assert len(post.got) == 30
    assert {row["attempt"] for row in book_rows(post.log, outcome="delivered")} > {1, 2}
    assert all(text == f"for {node}" for _, node, text in post.arrivals())


@pytest.mark.parametrize(("give_up_s", "attempts"), [(2.4, 1), (2.5, 2), (5.0, 3), (4.9, 2)])
def test_no_message_is_sent_again_after_its_sender_gave_up(book_rows: Rows, give_up_s: float, attempts: int) -> None:
    """Exactly at the time to give up it is still sent."""
    post = SmallNetwork(loss=1.0)
    post.send(0, [1], give_up_s=give_up_s)
    post.clock.run()
    assert len(book_rows(post.log)) == attempts


@EACH_SHARING
def test_a_message_that_will_be_lost_does_not_use_the_downlink(sharing: str) -> None:
    """It occupies the sender's uplink only: node 2 receives another's message at its full rate meanwhile."""
    alone, beside = SmallNetwork(sharing=sharing), SmallNetwork(sharing=sharing)
    for post in (alone, beside):
        if post is beside:
            post.network.impair(Partition(nodes(0), nodes(2)))
            post.send(0, [2])
        post.send(1, [2])
        post.clock.run(until=1.0)
    assert beside.arrivals() == alone.arrivals() == [(0.6, 2, "for 2")]


def test_an_address_of_no_node_is_refused(book_rows: Rows) -> None:
    """The router knows no such address: the message leaves the sender and is rejected, not sent again."""
    post = SmallNetwork()
    post.send(0, [NOBODY, 1])
    post.clock.run()
    assert [(row["receiver"], row["outcome"], row["reason"]) for row in book_rows(post.log)] == [
        (NOBODY, "rejected", "unknown_address"),
        (1, "delivered", ""),
    ]


def test_a_receiver_refuses_with_its_reason_or_decides_later(book_rows: Rows) -> None:
    """None leaves a message in flight until it is settled."""
    post, kept = SmallNetwork(), list[Any]()
    post.network.attach(1, lambda message: "replay", post.inboxes[1])
    post.network.attach(2, lambda message: kept.append(message), post.inboxes[2])
    post.send(0, [1, 2])
    post.clock.run()
    assert [row["outcome"] for row in book_rows(post.log)] == ["rejected", "in_flight"]
    post.network.settle(kept[0], "stale_round")
    assert [(row["outcome"], row["reason"]) for row in book_rows(post.log)] == [
        ("rejected", "replay"),
        ("rejected", "stale_round"),
    ]


def test_a_message_that_was_kept_is_lost_when_its_receiver_goes_down(book_rows: Rows) -> None:
    """Its sender sends it again after the timeout, as it does with any lost message."""
    post, kept = SmallNetwork(tries=2), list[Any]()
    post.network.attach(1, lambda message: kept.append(message), post.inboxes[1])
    post.send(0, [1])
    post.clock.call_at(1.0, Rank.FAULT, 1, lambda: post.network.lose(kept[0], "receiver_down"))
    post.clock.run()
    told = [(row["attempt"], row["sent_s"], row["outcome"], row["reason"]) for row in book_rows(post.log)]
    assert told == [(1, 0.0, "lost", "receiver_down"), (2, 3.0, "in_flight", "")]


def test_a_round_is_drained_when_its_last_message_has_ended() -> None:
    """Waiting retransmissions count as under way; a round with no message is drained at once."""
    post, drained = SmallNetwork(loss=1.0), list[tuple[str, float]]()
    post.network.when_drained(7, lambda: drained.append(("empty", post.clock.now)))
    post.send(0, [1])
    post.network.when_drained(1, lambda: drained.append(("round 1", post.clock.now)))
    post.clock.run()
    assert drained == [("empty", 0), ("round 1", 5.5)]


def test_after_a_round_has_closed_lost_messages_are_not_sent_again(book_rows: Rows) -> None:
    """A timer that was running is dropped too; a message that outlives its round goes on."""
    post, drained = SmallNetwork(loss=1.0), list[float]()
    post.send(0, [1])
    post.send(1, [2], outlives_round=True)
    post.clock.call_at(1.0, Rank.START, 0, lambda: post.network.close_round(1))
    post.network.when_drained(1, lambda: drained.append(post.clock.now))
    post.clock.run()
    assert [(row["sender"], row["attempt"]) for row in book_rows(post.log)] == [(0, 1), (1, 1), (1, 2), (1, 3)]
    assert drained == [5.5]


def test_a_round_that_is_opened_again_sends_lost_messages_again(book_rows: Rows) -> None:
    """Closed at 0.2 s, opened again at 0.4 s: the loss at 0.5 s is noticed as ever."""
    post = SmallNetwork(loss=1.0, tries=2)
    post.send(0, [1])
    post.clock.call_at(0.2, Rank.START, 0, lambda: post.network.close_round(1))
    post.clock.call_at(0.4, Rank.START, 0, lambda: post.network.reopen_round(1))
    post.clock.run()
    assert [row["attempt"] for row in book_rows(post.log)] == [1, 2]


@EACH_SHARING
def test_loss_depends_on_the_message_alone(sharing: str, book_rows: Rows) -> None:
    """Whether a message is lost does not depend on the order of events or on how links are shared."""
    post = SmallNetwork(loss=0.4, sharing=sharing, tries=1)
    for sender in range(4):
        post.send(sender, [node for node in range(4) if node != sender])
    post.clock.run()
    lost = {(row["sender"], row["receiver"]) for row in book_rows(post.log, outcome="lost")}
    reference = SmallNetwork(loss=0.4, sharing="ideal", tries=1)
    for sender in reversed(range(4)):
        reference.send(sender, [node for node in range(4) if node != sender], size_bytes=77)
    reference.clock.run()
    assert lost == {(row["sender"], row["receiver"]) for row in book_rows(reference.log, outcome="lost")}
    assert 0 < len(lost) < 12


@pytest.mark.slow
def test_the_share_of_losses_is_the_one_asked_for() -> None:
    """4000 messages at 10%: within four standard deviations."""
    post = SmallNetwork(loss=0.1, tries=1)
    for _ in range(1000):
        post.send(0, [0, 1, 2, 3])
    post.clock.run()
    assert abs(np.mean(post.log.messages["outcome"] == 2) - 0.1) < 4 * np.sqrt(0.09 / 4000)


def test_damage_does_not_outlive_its_transmission(book_rows: Rows) -> None:
    """A damaged message that is also lost is sent again as it was: later attempts are damaged no more often."""
    post = SmallNetwork(loss=0.5, tries=20)
    post.network.impair(Chance("corrupt", "damage", 0.3, EVERYONE))
    for _ in range(200):
        post.send(0, [1, 2, 3])
    post.clock.run()
    attempts = {index: row["attempt"] for index, row in enumerate(book_rows(post.log))}
    again = [message.content for _, _, message in post.got if attempts[message.row] > 1]
    assert abs(np.mean([text.endswith("damaged") for text in again]) - 0.3) < 0.11
    assert max(text.count("damaged") for text in again) == 1


def test_a_copy_has_a_fate_of_its_own_and_is_not_copied_again(book_rows: Rows) -> None:
    """It may arrive although the original was lost, and it is never sent again."""
    post = SmallNetwork(loss=0.5, tries=2)
    post.network.impair(Chance("duplicate", "double", 1.0, EVERYONE))
    for _ in range(100):
        post.send(0, [1])
    post.clock.run()
    rows = book_rows(post.log)
    attempts = [row["outcome"] for row in rows if row["attempt"] == 1]
    # A copy starts at the same instant, after all originals have their rows.
    original, copy = attempts[:100], attempts[100:]
    assert {*zip(original, copy, strict=True)} == {
        (one, other) for one in ("lost", "delivered") for other in ("lost", "delivered")
    }
    # Each original that was lost is sent once more, and that attempt is copied too.
    assert len([row for row in rows if row["attempt"] == 2]) == 2 * original.count("lost")


@pytest.mark.parametrize("loss", [0.0, 0.5])
@EACH_SHARING
def test_a_batch_of_separate_messages_is_sending_one_after_the_other(
    book_rows: Rows, sharing: str, loss: float
) -> None:
    """Messages of different sizes in one call, or each in a call of its own: the same log."""
    together, one_by_one = (SmallNetwork(loss=loss, sharing=sharing) for _ in range(2))
    receivers, sizes = [1, 2, 3, 1], [500, 300, 700, 500]
    together.send(0, receivers, sizes, separate=True)
    for receiver, size in zip(receivers, sizes, strict=True):
        one_by_one.send(0, [receiver], size)
    for post in (together, one_by_one):
        post.clock.run()
    assert list(map(str, book_rows(together.log))) == list(map(str, book_rows(one_by_one.log)))


def test_the_message_log_is_up_to_date_whenever_it_is_read() -> None:
    """Rows appear when handed over, and outcomes when they are known."""
    post = SmallNetwork()
    post.send(0, [1, 2])
    assert len(post.log.messages) == 2
    assert np.isnan(post.log.messages["arrived_s"]).all()
    post.clock.run()
    post.log.mark_used([1])
    assert post.log.messages["used"].tolist() == [False, True]
    assert post.log.messages["arrived_s"].tolist() == [0.6, 0.6]


@EACH_SHARING
def test_what_is_on_its_way_to_a_node_that_goes_down_is_lost(sharing: str, book_rows: Rows) -> None:
    """On the uplink, in transit, or in the queue of the downlink: three to node 3, none of which is there by 0.55 s."""
    post = SmallNetwork(sharing=sharing, tries=1)
    for sender in range(3):
        post.send(sender, [3, (sender + 1) % 3], size_bytes=500)
    post.clock.call_at(0.55, Rank.FAULT, 3, lambda: post.network.take_down(3))
    post.clock.run()
    rows = [row for row in book_rows(post.log) if row["receiver"] == 3]
    assert [(row["outcome"], row["reason"]) for row in rows] == [("lost", "receiver_down")] * 3


@EACH_SHARING
def test_a_node_that_goes_down_takes_its_unsent_messages_with_it(sharing: str, book_rows: Rows) -> None:
    """At 0.25 s a part of the bytes has left; node 1's own message is not touched."""
    post = SmallNetwork(sharing=sharing, tries=3)
    post.send(0, [2, 3], size_bytes=500)
    post.send(1, [2], size_bytes=200)
    post.clock.call_at(0.25, Rank.FAULT, 0, lambda: post.network.take_down(0))
    post.clock.call_at(0.5, Rank.FAULT, 0, lambda: post.network.bring_up(0))
    post.clock.run()
    rows = book_rows(post.log)
    told = [(row["sender"], row["outcome"], row["reason"], row["left_s"]) for row in rows if row["sender"] == 0]
    # A node that has been down does not send its old messages again.
    assert told == [(0, "lost", "sender_down", 0.25)] * 2
    left = {"ideal": [250, 250], "fifo": [250, 0], "fair": [125, 125]}[sharing]
    assert [row["left_bytes"] for row in rows if row["sender"] == 0] == left
    assert [row["outcome"] for row in rows if row["sender"] == 1] == ["delivered"]


def test_a_node_that_is_down_sends_nothing(book_rows: Rows) -> None:
    """What it hands over is not even counted."""
    post = SmallNetwork()
    post.network.take_down(0)
    post.send(0, [1])
    post.network.bring_up(0)
    post.send(0, [2])
    post.clock.run()
    assert [row["receiver"] for row in book_rows(post.log)] == [2]
    assert not post.network.is_down(0)


def test_what_is_in_transit_when_its_sender_goes_down_arrives(book_rows: Rows) -> None:
    """The last byte left at 0.5 s; the sender crashes at 0.55 s, the message arrives at 0.6 s."""
    for sharing in sorted(SHARINGS):
        post = SmallNetwork(sharing=sharing)
        post.send(0, [1])
        post.clock.call_at(0.55, Rank.FAULT, 0, lambda post=post: post.network.take_down(0))  # type: ignore[misc]
        post.clock.run()
        assert [row["outcome"] for row in book_rows(post.log)] == ["delivered"], sharing


@pytest.mark.parametrize("both", [False, True])
@EACH_SHARING
def test_a_partition_ends_what_is_under_way_across_it(sharing: str, both: bool, book_rows: Rows) -> None:
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
        for row in book_rows(post.log)
    }
    first, again = (0.0, "lost", "partition", 300), (2.3, "delivered", "", 500)
    delivered = (0.0, "delivered", "", 500)
    assert told == {
        (0, 1): first,
        (0, 2): again,
        (2, 1): delivered,
        **({(1, 1): first, (1, 2): again} if both else {(1, 1): delivered}),
    }


def test_reordering_delays_some_messages(book_rows: Rows) -> None:
    """By at most two seconds; without it all of a batch arrive together."""
    post = SmallNetwork()
    post.network.impair(Chance("reorder", "shuffle", 0.5, EVERYONE, delay_s=2.0))
    for _ in range(50):
        post.send(0, [1])
    post.clock.run()
    extra_s = np.array([row["arrived_s"] - 0.6 for row in book_rows(post.log)])
    assert 10 < np.count_nonzero(extra_s > 1e-9) < 40
    assert extra_s.max() <= 2.0


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


def test_a_listener_hears_what_is_on_its_way_when_it_begins() -> None:
    """Also what was handed over before, and what goes to an inbox."""
    post, heard = SmallNetwork(), list[str]()
    post.network.sessions.open(1, 1)
    post.send(0, [1, 2])
    post.clock.call_at(0.3, Rank.FAULT, 0, lambda: post.network.listen(lambda message: heard.append(message.content)))
    post.clock.run()
    post.network.read_wire()
    assert heard == ["for 1", "for 2"]


def test_a_listener_does_not_hear_what_had_passed_before() -> None:
    """One message has arrived at 0.6 s; the listener comes at 0.7 s; a lost message is heard once it has left."""
    post, heard = SmallNetwork(tries=1), list[str]()
    post.send(0, [1])
    post.clock.call_at(0.7, Rank.FAULT, 0, lambda: post.network.listen(lambda message: heard.append(message.content)))
    post.clock.call_at(0.8, Rank.FAULT, 0, lambda: post.network.impair(Partition(nodes(0), nodes(2))))
    post.clock.call_at(0.9, Rank.START, 0, lambda: post.send(0, [2, 3]))
    post.clock.run()
    post.network.read_wire()
    assert heard == ["for 2", "for 3"]


def test_messages_to_a_node_go_to_its_stand_in(book_rows: Rows) -> None:
    """Also retransmissions of what was sent to the node itself."""
    post = SmallNetwork(tries=2)
    post.send(0, [1])
    post.clock.call_at(0.2, Rank.FAULT, 1, lambda: post.network.take_down(1))
    post.clock.call_at(1.0, Rank.FAULT, 1, lambda: post.network.redirect(1, 3))
    post.clock.call_at(1.0, Rank.START, 2, lambda: post.send(2, [1]))
    post.clock.run()
    told = [(row["sender"], row["receiver"], row["attempt"], row["outcome"]) for row in book_rows(post.log)]
    assert told == [(0, 1, 1, "lost"), (2, 3, 1, "delivered"), (0, 3, 2, "delivered")]


@EACH_SHARING
def test_many_messages_at_once_all_arrive(sharing: str) -> None:
    """More than any first allocation holds: 120 batches of 40 messages to 50 nodes, with copies, loss and jitter."""
    post = SmallNetwork(50, sharing=sharing, loss=0.1, tries=30, jitter_s=0.01)
    post.network.impair(Chance("duplicate", "double", 0.2, np.ones(50, dtype=np.bool_)))
    for number in range(120):
        post.send(number % 50, [(number + hop) % 50 for hop in range(1, 41)], 10 + number)
    post.clock.run()
    table = post.log.messages
    assert not (table["outcome"] == 0).any()
    originals = {(message.sender, message.receiver, message.sequence) for _, _, message in post.got}
    assert len(originals) == 120 * 40
    assert len(table) == len(post.got) + int(np.count_nonzero(table["outcome"] == 2))


@pytest.mark.parametrize("sharing", ["ideal", "fifo", "fair"])
def test_failing_fast_leaves_the_uplink_to_others(sharing: str, book_rows: Rows) -> None:
    """Node 1 is down. Its message takes no uplink, is tried again after each timeout, and no byte of it is wasted."""
    post = SmallNetwork(sharing=sharing, receiver_offline="fail_fast")
    post.network.take_down(1)
    post.send(0, [1, 2], 500)
    post.clock.run()
    # 500 bytes at 1 kB/s and 0.1 s: as if there was no message to node 1.
    assert post.arrivals() == [(0.6, 2, "for 2")]
    rows = book_rows(post.log, receiver=1)
    assert [(row["sent_s"], row["outcome"], row["reason"], row["left_bytes"]) for row in rows] == [
        (time_s, "lost", "receiver_down", 0) for time_s in (0.0, 2.0, 4.0)
    ]


def test_failing_fast_is_over_when_the_receiver_is_back() -> None:
    """A control message's second try finds node 1 up again."""
    post = SmallNetwork(receiver_offline="fail_fast")
    post.network.take_down(1)
    post.send(0, [1], 500, kind="control", immediate=True)
    post.clock.call_at(1.0, Rank.FAULT, 1, lambda: post.network.bring_up(1))
    post.clock.run()
    assert post.arrivals() == [(2.6, 1, "for 1")]
