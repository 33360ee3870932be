"""The network carries messages, keeps a message log that adds up, and tells when a round is drained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2p.clock import Rank
from p2p.config.distributions import Uniform
from p2p.log.records import NO_NODE, OUTCOME
from p2p.transport.impairments import Chance, Partition
from tests.p2p.small_network import EACH_SHARING, Rows, SmallNetwork, nodes


def test_a_message_takes_size_over_rate_plus_latency(message_rows: Rows) -> None:
    """500 bytes at 1 kB/s and 0.1 s: they arrive after 0.6 s, and the log says so."""
    post = SmallNetwork()
    post.send(0, [1, 2])
    post.clock.run()
    assert post.arrivals() == [(0.6, 1, "for 1"), (0.6, 2, "for 2")]
    (row, _) = message_rows(post.log)
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


@pytest.mark.parametrize("count", [4, 4000])
def test_a_pair_has_one_latency_with_and_without_jitter(count: int) -> None:
    """In both directions; the core, which draws it when there is jitter, draws what the table of links draws."""
    found = []
    for jitter_s in (0.0, 1e-12):
        # So little jitter is rounded to no nanosecond at all. Among many nodes latencies are not drawn in advance.
        post = SmallNetwork(count, up=np.inf, down=np.inf, latency_s=Uniform(low=1.0, high=2.0), jitter_s=jitter_s)
        for sender in range(4):
            post.send(sender, [node for node in range(4) if node != sender], texts=[str(sender)] * 3)
        post.clock.run()
        found.append({(int(text), node): time_s for time_s, node, text in post.arrivals()})
    assert found[0] == found[1]
    assert all(time_s == found[0][receiver, sender] for (sender, receiver), time_s in found[0].items())
    assert len(set(found[0].values())) == 6


def test_a_closed_network_has_its_whole_log(message_rows: Rows) -> None:
    """At the end of a run the core's memory goes, and what is in flight then stays so."""
    post = SmallNetwork()
    post.send(0, [1])
    post.clock.call_at(0.55, Rank.START, 0, lambda: post.send(2, [3]))
    post.clock.run(until=0.8)
    before = message_rows(post.log)
    post.network.close()
    assert str(message_rows(post.log)) == str(before)  # as text, since what has not arrived has NaN as its time
    assert [row["outcome"] for row in before] == ["delivered", "in_flight"]


def test_an_address_of_no_node_is_refused(message_rows: Rows) -> None:
    """The router knows no such address: the message leaves the sender and is rejected, not sent again."""
    post = SmallNetwork()
    post.send(0, [NO_NODE, 1])
    post.clock.run()
    assert [(row["receiver"], row["outcome"], row["reason"]) for row in message_rows(post.log)] == [
        (NO_NODE, "rejected", "unknown_address"),
        (1, "delivered", ""),
    ]


def test_a_receiver_refuses_with_its_reason_or_decides_later(message_rows: Rows) -> None:
    """None leaves a message in flight until it is settled."""
    post, kept = SmallNetwork(), list[Any]()
    post.network.attach(1, lambda message: "replay", post.inboxes[1])
    post.network.attach(2, lambda message: kept.append(message), post.inboxes[2])
    post.send(0, [1, 2])
    post.clock.run()
    assert [row["outcome"] for row in message_rows(post.log)] == ["rejected", "in_flight"]
    post.network.settle(kept[0], "stale_round")
    assert [(row["outcome"], row["reason"]) for row in message_rows(post.log)] == [
        ("rejected", "replay"),
        ("rejected", "stale_round"),
    ]


def test_a_round_is_drained_when_its_last_message_has_ended() -> None:
    """Waiting retransmissions count as under way; a round with no message is drained at once."""
    post, drained = SmallNetwork(loss=1.0), list[tuple[str, float]]()
    post.network.when_drained(7, lambda: drained.append(("empty", post.clock.now)))
    post.send(0, [1])
    post.network.when_drained(1, lambda: drained.append(("round 1", post.clock.now)))
    post.clock.run()
    assert drained == [("empty", 0), ("round 1", 5.5)]


@pytest.mark.parametrize("loss", [0.0, 0.5])
@EACH_SHARING
def test_a_batch_of_separate_messages_is_sending_one_after_the_other(
    message_rows: Rows, sharing: str, loss: float
) -> None:
    """Messages of different sizes in one call, or each in a call of its own: the same log."""
    together, one_by_one = (SmallNetwork(loss=loss, sharing=sharing) for _ in range(2))
    receivers, sizes = [1, 2, 3, 1], [500, 300, 700, 500]
    together.send(0, receivers, sizes, separate=True)
    for receiver, size in zip(receivers, sizes, strict=True):
        one_by_one.send(0, [receiver], size)
    for post in (together, one_by_one):
        post.clock.run()
    assert list(map(str, message_rows(together.log))) == list(map(str, message_rows(one_by_one.log)))


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
def test_the_row_of_a_message_in_flight_shows_only_its_start(sharing: str) -> None:
    """Its end may be known to the core, and may still change; more messages than the core copies at once."""
    post, count = SmallNetwork(sharing=sharing, tries=1), 5000
    post.send(0, [1] * count, texts=["many"] * count)
    post.clock.run(until=0.05)
    some = post.log.messages
    assert np.isnan(some["left_s"]).all()
    assert np.isnan(some["arrived_s"]).all()
    assert not some["bottleneck"].any()
    assert not some["outcome"].any()
    assert some["sent_s"].tolist() == [0.0] * count
    post.clock.run()
    assert np.isfinite(post.log.messages["left_s"]).all()
    assert (post.log.messages["outcome"] == OUTCOME["delivered"]).all()


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


def test_messages_to_a_node_go_to_its_stand_in(message_rows: Rows) -> None:
    """Also retransmissions of what was sent to the node itself."""
    post = SmallNetwork(tries=2)
    post.send(0, [1])
    post.clock.call_at(0.2, Rank.FAULT, 1, lambda: post.network.take_down(1))
    post.clock.call_at(1.0, Rank.FAULT, 1, lambda: post.network.redirect(1, 3))
    post.clock.call_at(1.0, Rank.START, 2, lambda: post.send(2, [1]))
    post.clock.run()
    told = [(row["sender"], row["receiver"], row["attempt"], row["outcome"]) for row in message_rows(post.log)]
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
