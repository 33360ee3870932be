"""Lost messages are sent again, up to a point; damage, copies and reordering are fates of one transmission."""

from __future__ import annotations

import numpy as np
import pytest

from p2p.clock import Rank
from p2p.transport.core.layout import FIRST_TOPIC
from p2p.transport.impairments import Bursts, Chance, Impairment, Partition
from p2p.transport.messages import Note
from tests.p2p.small_network import EACH_SHARING, Rows, SmallNetwork, nodes

EVERYONE = np.ones(4, dtype=np.bool_)


def test_a_lost_message_is_sent_again_with_the_identical_bytes(message_rows: Rows) -> None:
    """Everything is lost: two seconds after it had left, each is sent again, three times in total."""
    post = SmallNetwork(loss=1.0)
    post.send(0, [1])
    post.clock.run()
    rows = message_rows(post.log)
    assert [(row["attempt"], row["sent_s"], row["left_s"]) for row in rows] == [(1, 0, 0.5), (2, 2.5, 3), (3, 5, 5.5)]
    assert {(row["size_bytes"], row["outcome"], row["reason"], row["left_bytes"]) for row in rows} == {
        (500, "lost", "random", 500)
    }
    assert post.got == []


def test_what_arrives_in_the_end_is_what_was_sent_first(message_rows: Rows) -> None:
    """A retransmission carries the very same content."""
    post = SmallNetwork(loss=0.5, tries=20)
    for _ in range(10):
        post.send(0, [1, 2, 3])
    post.clock.run()
    assert len(post.got) == 30
    assert {row["attempt"] for row in message_rows(post.log, outcome="delivered")} > {1, 2}
    assert all(text == f"for {node}" for _, node, text in post.arrivals())


@pytest.mark.parametrize(("give_up_s", "attempts"), [(2.4, 1), (2.5, 2), (5.0, 3), (4.9, 2)])
def test_no_message_is_sent_again_after_its_sender_gave_up(message_rows: Rows, give_up_s: float, attempts: int) -> None:
    """Exactly at the time to give up it is still sent."""
    post = SmallNetwork(loss=1.0)
    post.send(0, [1], give_up_s=give_up_s)
    post.clock.run()
    assert len(message_rows(post.log)) == attempts


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


def test_after_a_round_has_closed_lost_messages_are_not_sent_again(message_rows: Rows) -> None:
    """A timer that was running is dropped too; a message that outlives its round goes on."""
    post, drained = SmallNetwork(loss=1.0), list[float]()
    post.send(0, [1])
    post.network.tell(1, 2, 1, Note(FIRST_TOPIC, 500, 82, outlives_round=True), 0)
    post.clock.call_at(1.0, Rank.START, 0, lambda: post.network.close_round(1))
    post.network.when_drained(1, lambda: drained.append(post.clock.now))
    post.clock.run()
    assert [(row["sender"], row["attempt"]) for row in message_rows(post.log)] == [(0, 1), (1, 1), (1, 2), (1, 3)]
    assert drained == [5.5]


def test_a_round_that_has_closed_does_not_wait_for_retransmissions() -> None:
    """Closed at 0.2 s: when the loss is noticed at 0.5 s, nothing of the round is under way any more."""
    post, drained = SmallNetwork(loss=1.0), list[float]()
    post.send(0, [1])
    post.clock.call_at(0.2, Rank.START, 0, lambda: post.network.close_round(1))
    post.network.when_drained(1, lambda: drained.append(post.clock.now))
    post.clock.run()
    assert drained == [0.5]


def test_a_restart_of_the_sender_cancels_its_retransmissions(message_rows: Rows) -> None:
    """Lost at 0.5 s, due again at 2.5 s; the sender is down from 1 to 1.5 s, and what it sends then has tries."""
    post = SmallNetwork(loss=1.0, tries=2)
    post.send(0, [1])
    post.clock.call_at(1.0, Rank.FAULT, 0, lambda: post.network.take_down(0))
    post.clock.call_at(1.5, Rank.FAULT, 0, lambda: post.network.bring_up(0))
    post.clock.call_at(2.0, Rank.START, 0, lambda: post.send(0, [2]))
    post.clock.run()
    assert [(row["receiver"], row["attempt"]) for row in message_rows(post.log)] == [(1, 1), (2, 1), (2, 2)]


@pytest.mark.parametrize("first", ["burst", "partition"])
def test_a_message_into_a_burst_and_a_partition_is_lost_to_the_partition(message_rows: Rows, first: str) -> None:
    """Whichever impairment began first: that loss is certain, and a report must not blame the link."""
    post = SmallNetwork(tries=1)
    both: list[Impairment] = [Bursts("burst", 1, 0.0, 1.0, 1.0, 1.0, 1.0, EVERYONE), Partition(nodes(0), nodes(1))]
    for impairment in both if first == "burst" else reversed(both):
        post.network.impair(impairment)
    post.send(0, [1, 2])
    post.clock.run()
    assert [row["reason"] for row in message_rows(post.log)] == ["partition", "burst"]


def test_a_round_that_is_opened_again_sends_lost_messages_again(message_rows: Rows) -> None:
    """Closed at 0.2 s, opened again at 0.4 s: the loss at 0.5 s is noticed as ever."""
    post = SmallNetwork(loss=1.0, tries=2)
    post.send(0, [1])
    post.clock.call_at(0.2, Rank.START, 0, lambda: post.network.close_round(1))
    post.clock.call_at(0.4, Rank.START, 0, lambda: post.network.reopen_round(1))
    post.clock.run()
    assert [row["attempt"] for row in message_rows(post.log)] == [1, 2]


@EACH_SHARING
def test_loss_depends_on_the_message_alone(sharing: str, message_rows: Rows) -> None:
    """Whether a message is lost does not depend on the order of events or on how links are shared."""
    post = SmallNetwork(loss=0.4, sharing=sharing, tries=1)
    for sender in range(4):
        post.send(sender, [node for node in range(4) if node != sender])
    post.clock.run()
    lost = {(row["sender"], row["receiver"]) for row in message_rows(post.log, outcome="lost")}
    reference = SmallNetwork(loss=0.4, sharing="ideal", tries=1)
    for sender in reversed(range(4)):
        reference.send(sender, [node for node in range(4) if node != sender], size_bytes=77)
    reference.clock.run()
    assert lost == {(row["sender"], row["receiver"]) for row in message_rows(reference.log, outcome="lost")}
    assert 0 < len(lost) < 12


@pytest.mark.slow
def test_the_share_of_losses_is_the_one_asked_for() -> None:
    """4000 messages at 10%: within four standard deviations."""
    post = SmallNetwork(loss=0.1, tries=1)
    for _ in range(1000):
        post.send(0, [0, 1, 2, 3])
    post.clock.run()
    assert abs(np.mean(post.log.messages["outcome"] == 2) - 0.1) < 4 * np.sqrt(0.09 / 4000)


def test_damage_does_not_outlive_its_transmission(message_rows: Rows) -> None:
    """A damaged message that is also lost is sent again as it was: later attempts are damaged no more often."""
    post = SmallNetwork(loss=0.5, tries=20)
    post.network.impair(Chance("corrupt", "damage", 0.3, EVERYONE))
    for _ in range(200):
        post.send(0, [1, 2, 3])
    post.clock.run()
    attempts = {index: row["attempt"] for index, row in enumerate(message_rows(post.log))}
    again = [message.content for _, _, message in post.got if attempts[message.row] > 1]
    assert abs(np.mean([text.endswith("damaged") for text in again]) - 0.3) < 0.11
    assert max(text.count("damaged") for text in again) == 1


def test_a_copy_has_a_fate_of_its_own_and_is_not_copied_again(message_rows: Rows) -> None:
    """It may arrive although the original was lost, and it is never sent again."""
    post = SmallNetwork(loss=0.5, tries=2)
    post.network.impair(Chance("duplicate", "double", 1.0, EVERYONE))
    for _ in range(100):
        post.send(0, [1])
    post.clock.run()
    rows = message_rows(post.log)
    attempts = [row["outcome"] for row in rows if row["attempt"] == 1]
    # A copy starts at the same instant, after all originals have their rows.
    original, copy = attempts[:100], attempts[100:]
    assert {*zip(original, copy, strict=True)} == {
        (one, other) for one in ("lost", "delivered") for other in ("lost", "delivered")
    }
    # Each original that was lost is sent once more, and that attempt is copied too.
    assert len([row for row in rows if row["attempt"] == 2]) == 2 * original.count("lost")


def test_reordering_delays_some_messages(message_rows: Rows) -> None:
    """By at most two seconds; without it all of a batch arrive together."""
    post = SmallNetwork()
    post.network.impair(Chance("reorder", "shuffle", 0.5, EVERYONE, delay_s=2.0))
    for _ in range(50):
        post.send(0, [1])
    post.clock.run()
    extra_s = np.array([row["arrived_s"] - 0.6 for row in message_rows(post.log)])
    assert 10 < np.count_nonzero(extra_s > 1e-9) < 40
    assert extra_s.max() <= 2.0
