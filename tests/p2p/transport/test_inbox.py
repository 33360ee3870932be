"""An inbox wakes its process once: when everything expected has arrived, or at the deadline."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np
import pytest
import simpy

from p2p.clock import Rank
from p2p.transport.impairments import Chance
from tests.p2p.small_network import SmallNetwork

Rows = Callable[..., list[dict[str, Any]]]
Noted = list[tuple[float, list[str]]]
READER = 1
KEY = ("update", 1)


def network(**more: Any) -> SmallNetwork:
    """Ten nodes without limits and latency, so that messages arrive at once; node 1 has a session of round 1."""
    post = SmallNetwork(10, up=np.inf, down=np.inf, latency_s=0.0, **more)
    post.network.sessions.open(READER, 1)
    return post


def read(post: SmallNetwork, count: int, deadline_s: float | None, times: int = 1) -> Noted:
    """Starts a reader; the list says when it went on, and with what."""
    noted: Noted = []

    def reader() -> Generator[simpy.Event, Any, None]:
        for _ in range(times):
            items = yield post.inboxes[READER].expect(KEY, count, deadline_s)
            noted.append((post.clock.now, items))

    post.clock.process(reader())
    return noted


def send_at(post: SmallNetwork, time_s: float, text: str, sender: int = 0, **more: Any) -> None:
    """Sends the reader a message of round 1."""
    send = partial(post.send, sender, [READER], 10, texts=[text], **more)
    post.clock.call_at(time_s, Rank.START, sender, send)


def test_the_last_expected_message_wakes_the_process() -> None:
    """Not those before it, and not those of another kind."""
    post = network()
    noted = read(post, 2, 9.0)
    send_at(post, 1.0, "first")
    send_at(post, 2.0, "other", kind="model")
    send_at(post, 3.0, "second")
    post.clock.run()
    assert noted == [(3.0, ["first", "second"])]
    assert post.inboxes[READER].take(("model", 1)) == ["other"]


@pytest.mark.parametrize(("sent_s", "counts"), [(2.0, True), (np.nextafter(2.0, 3.0), False)])
def test_an_arrival_exactly_at_the_deadline_counts(sent_s: float, counts: bool) -> None:
    """The next instant's does not; it stays in the inbox."""
    post = network()
    noted = read(post, 3, 2.0)
    send_at(post, sent_s, "close")
    post.clock.run()
    # Sent as a start of the deadline's instant, it arrives before a process goes on at that instant.
    assert noted == [(2.0, ["close"] if counts else [])]
    assert post.inboxes[READER].take(KEY) == ([] if counts else ["close"])


def test_a_message_over_a_link_that_arrives_at_the_deadline_counts() -> None:
    """500 bytes at 1 kB/s and half a second of latency: exactly 1 s."""
    for deadline_s, expected in ((1.0, ["for 1"]), (np.nextafter(1.0, 0.0), [])):
        post = SmallNetwork(latency_s=0.5)
        post.network.sessions.open(READER, 1)
        noted = read(post, 2, deadline_s)
        post.send(0, [READER], 500)
        post.clock.run()
        assert noted == [(deadline_s, expected)]


def test_what_arrived_before_the_wait_counts() -> None:
    """A process that comes late goes on at once if nothing is missing."""
    post = network()
    send_at(post, 0.0, "early")
    post.clock.run(until=4.0)
    noted = read(post, 1, None)
    post.clock.run()
    assert noted == [(4.0, ["early"])]


def test_a_wait_that_ended_leaves_no_deadline_behind() -> None:
    """The first wait ended early; its deadline does not end the second."""
    post = network()
    noted: Noted = []

    def reader() -> Generator[simpy.Event, Any, None]:
        for deadline_s in (5.0, 9.0):
            items = yield post.inboxes[READER].expect(KEY, 1, deadline_s)
            noted.append((post.clock.now, items))

    post.clock.process(reader())
    send_at(post, 1.0, "a")
    send_at(post, 8.0, "b")
    post.clock.run()
    assert noted == [(1.0, ["a"]), (8.0, ["b"])]


def test_many_deadlines_that_were_met_move_no_other() -> None:
    """Nine processes are served before their deadline, one is not: it goes on at its own."""
    post, noted = network(), list[tuple[float, int, int]]()
    for node in range(1, 10):
        post.network.sessions.open(node, 1)

    def reader(node: int) -> Generator[simpy.Event, Any, None]:
        items = yield post.inboxes[node].expect(KEY, 1, 60.0 if node < 9 else 120.0)
        noted.append((post.clock.now, node, len(items)))

    for node in range(1, 10):
        post.clock.process(reader(node))
    post.clock.call_at(5.0, Rank.START, 0, lambda: post.send(0, list(range(1, 9))))
    post.clock.run()
    assert noted == [*((5.0, node, 1) for node in range(1, 9)), (120.0, 9, 0)]


def test_more_than_expected_stays_for_the_next_wait() -> None:
    """Three arrive at one instant, two are expected: a quorum, and its leftover."""
    post = network()
    noted = read(post, 2, None, times=1)
    for sender in (4, 3, 5):
        send_at(post, 1.0, f"from {sender}", sender)
    post.clock.run()
    # All three start before a process goes on at that instant; by node, whatever the order of the calls.
    assert noted == [(1.0, ["from 3", "from 4"])]
    assert post.inboxes[READER].take(KEY) == ["from 5"]


def test_at_the_deadline_everything_is_handed_over() -> None:
    """Nothing is held back for another wait."""
    post = network()
    noted = read(post, 9, 2.0)
    for sender in (2, 3, 4):
        send_at(post, 1.0, f"from {sender}", sender)
    post.clock.run()
    assert noted == [(2.0, ["from 2", "from 3", "from 4"])]
    assert not post.inboxes[READER].has(KEY)


def test_a_refused_message_does_not_count(message_rows: Rows) -> None:
    """Two are expected: the second to arrive is refused when both are opened, so one more is awaited."""
    post = network()
    noted = read(post, 2, 9.0)
    for time_s, text in ((1.0, "a"), (2.0, "bad"), (3.0, "b"), (4.0, "c")):
        send_at(post, time_s, text)
    post.clock.run()
    assert noted == [(3.0, ["a", "b"])]
    assert post.opened == [["a", "bad"], ["b"]]
    assert post.inboxes[READER].take(KEY) == ["c"]
    assert [row["outcome"] for row in message_rows(post.log)] == ["delivered", "rejected", "delivered", "delivered"]


def test_a_refused_message_does_not_move_the_deadline() -> None:
    """The wait goes on after the refusal, up to the same instant."""
    post = network()
    noted = read(post, 1, 9.0)
    send_at(post, 1.0, "bad")
    send_at(post, 9.5, "late")
    post.clock.run()
    assert noted == [(9.0, [])]


def test_items_put_by_hand_and_messages_count_together() -> None:
    """Two are expected; one is put in by the node itself."""
    post = network()
    noted = read(post, 2, 9.0)
    post.clock.call_at(0.5, Rank.ARRIVAL, 0, lambda: post.inboxes[READER].put(KEY, "item"))
    send_at(post, 1.0, "message")
    post.clock.run()
    assert noted == [(1.0, ["item", "message"])]


def test_reading_the_log_early_changes_nothing(message_rows: Rows) -> None:
    """Outcomes are decided before the log is read; the wait continues with what is missing."""
    post, outcomes = network(), list[list[str]]()
    noted = read(post, 3, 9.0)
    for time_s, text in ((1.0, "a"), (2.0, "bad"), (3.0, "b"), (4.0, "c")):
        send_at(post, time_s, text)
        look = lambda: outcomes.append([row["outcome"] for row in message_rows(post.log)])  # noqa: E731
        post.clock.call_at(time_s + 0.5, Rank.START, 9, look)
    post.clock.run()
    assert noted == [(4.0, ["a", "b", "c"])]
    assert outcomes[1] == ["delivered", "rejected"]


def test_a_message_in_the_inbox_is_not_under_way_any_more() -> None:
    """The round is drained although no process has read the message."""
    post, drained = network(), list[float]()
    send_at(post, 1.0, "unread")
    post.clock.call_at(1.0, Rank.START, 9, lambda: post.network.when_drained(1, lambda: drained.append(post.clock.now)))
    post.clock.run()
    assert drained == [1.0]
    assert post.opened == [["unread"]], "opened before the round's contents are dropped"


def test_forgetting_drops_items_and_the_wait() -> None:
    """A wait that is forgotten never goes on."""
    post = network()
    noted = read(post, 2, 4.0)
    send_at(post, 1.0, "a")
    post.clock.call_at(2.0, Rank.START, 0, lambda: post.inboxes[READER].forget(KEY))
    send_at(post, 3.0, "b")
    post.clock.run()
    assert noted == []
    assert post.inboxes[READER].take(KEY) == ["b"]


def test_waking_early_hands_over_what_has_arrived() -> None:
    """A process that waits for the key goes on with one of three; one that waits for another key does not."""
    post = network()
    noted = read(post, 3, 9.0)
    send_at(post, 1.0, "a")
    post.clock.call_at(2.0, Rank.START, 0, lambda: post.inboxes[READER].wake_if_waiting(("model", 1)))
    post.clock.call_at(3.0, Rank.START, 0, lambda: post.inboxes[READER].wake_if_waiting(KEY))
    post.clock.run()
    assert noted == [(3.0, ["a"])]


def test_clearing_drops_what_arrived_for_a_round() -> None:
    """Items of the kinds named, of that round."""
    post = network()
    send_at(post, 1.0, "a")
    post.clock.run()
    post.inboxes[READER].clear(2, ("update",))
    assert post.inboxes[READER].has(KEY)
    post.inboxes[READER].clear(1, ("update", "model"))
    assert not post.inboxes[READER].has(KEY)


def test_a_sleep_ends_at_its_instant_as_a_start_of_the_node() -> None:
    """Nodes 3 and 2 sleep until the same instant: node 2 goes on first, after an arrival of that instant."""
    post, seen = network(), list[tuple[float, Any]]()
    for node in (3, 2):

        def sleeper(node: int = node) -> Generator[simpy.Event, Any, None]:
            yield post.inboxes[node].sleep(2.0)
            seen.append((post.clock.now, node))

        post.clock.process(sleeper())
    post.clock.call_at(2.0, Rank.ARRIVAL, 5, lambda: seen.append((post.clock.now, "arrival")))
    post.clock.run()
    assert seen == [(2.0, "arrival"), (2.0, 2), (2.0, 3)]


def test_a_copy_is_delivered_beside_its_original() -> None:
    """Both reach the inbox: telling them apart is the receiver's task."""
    post = network()
    post.network.impair(Chance("duplicate", "double", 1.0, np.ones(10, dtype=np.bool_)))
    noted = read(post, 2, 9.0)
    send_at(post, 1.0, "twice")
    post.clock.run()
    assert noted == [(1.0, ["twice", "twice"])]


def test_without_a_session_a_message_is_handed_over_on_arrival() -> None:
    """Before the session opens, and after it has closed."""
    post = SmallNetwork(up=np.inf, down=np.inf, latency_s=0.0)
    send_at(post, 1.0, "before")
    post.clock.call_at(2.0, Rank.START, 9, lambda: post.network.sessions.open(READER, 1))
    send_at(post, 3.0, "within")
    post.clock.call_at(4.0, Rank.START, 9, lambda: post.network.sessions.close(READER, 1))
    send_at(post, 5.0, "after")
    post.clock.run()
    assert [text for _, _, text in post.arrivals()] == ["before", "after"]
    assert post.inboxes[READER].take(KEY) == ["within"]
