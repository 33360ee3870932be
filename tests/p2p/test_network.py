"""The network carries, loses, sends again, and keeps books that balance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from p2p.clock import Clock, Rank
from p2p.conditions import Chance, Conditions
from p2p.distributions import Constant
from p2p.links import Links, NetworkSettings, Retransmit
from p2p.log import Log
from p2p.mailbox import Mailbox
from p2p.network import Network, Parcel
from p2p.parcels import Letter
from p2p.records import NOBODY
from p2p.sharing import SHARINGS

Rows = Callable[..., list[dict[str, Any]]]


class Post:
    """Four nodes at 1 kB/s and 0.1 s from each other; every node welcomes everything and keeps it."""

    def __init__(self, loss: float = 0.0, sharing: str = "ideal", tries: int = 3) -> None:
        rate = Constant(value=1000.0)
        settings = NetworkSettings(uplink=rate, downlink=rate, latency=Constant(value=0.1))
        self.clock, self.log, links = Clock(), Log(), Links(settings, 1, 4, 4)
        engine = SHARINGS[sharing]().engine(links.up, links.down)
        retransmit = Retransmit(tries=tries, timeout=2.0)
        self.network = Network(self.clock, links, engine, self.log, 1, retransmit, Conditions(loss=loss))
        self.got: list[tuple[float, int, Parcel]] = []
        for node in range(4):
            self.network.attach(node, self._keep)

    def _keep(self, parcel: Parcel) -> str | None:
        self.got.append((round(self.clock.now, 9), parcel.receiver, parcel))
        return ""

    def send(self, sender: int, receivers: list[int], size_bytes: int = 500, **more: Any) -> None:
        """Sends an update of round 1; its content says to whom."""
        contents = [f"for {receiver}" for receiver in receivers]
        self.network.send(sender, receivers, "update", 1, size_bytes, 82, contents, **more)


def test_a_message_takes_size_over_rate_plus_latency(book_rows: Rows) -> None:
    """500 bytes at 1 kB/s and 0.1 s: there after 0.6 s, and the books say so."""
    post = Post()
    post.send(0, [1, 2])
    post.clock.run()
    assert [(time_s, node, parcel.content) for time_s, node, parcel in post.got] == [
        (0.6, 1, "for 1"),
        (0.6, 2, "for 2"),
    ]
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


def test_a_lost_message_is_sent_again_with_the_identical_bytes(book_rows: Rows) -> None:
    """Everything is lost: two seconds after it had left, each is sent again, three times in all, and no more."""
    post = Post(loss=1.0)
    post.send(0, [1])
    post.clock.run()
    rows = book_rows(post.log)
    assert [(row["attempt"], row["sent_s"], row["left_s"]) for row in rows] == [(1, 0, 0.5), (2, 2.5, 3), (3, 5, 5.5)]
    assert {(row["size_bytes"], row["outcome"], row["reason"], row["left_bytes"]) for row in rows} == {
        (500, "lost", "random", 500)
    }
    assert post.got == []


def test_what_arrives_in_the_end_is_what_was_sent_first() -> None:
    """A retransmission carries the very same content."""
    post = Post(loss=0.5, tries=20)
    for sender in [0] * 10:
        post.send(sender, [1, 2, 3])
    post.clock.run()
    assert len(post.got) == 30
    assert {parcel.attempt for _, _, parcel in post.got} > {1, 2}
    assert all(parcel.content == f"for {node}" for _, node, parcel in post.got)


def test_nobody_sends_again_after_giving_up(book_rows: Rows) -> None:
    """Exactly at the time to give up it still tries."""
    for give_up_s, attempts in ((2.4, 1), (2.5, 2), (5.0, 3), (4.9, 2)):
        post = Post(loss=1.0)
        post.send(0, [1], give_up_s=give_up_s)
        post.clock.run()
        assert len(book_rows(post.log)) == attempts


def test_a_message_that_will_be_lost_does_not_use_the_downlink() -> None:
    """It occupies the sender's uplink only: the receiver takes another's message meanwhile."""
    alone, beside = Post(sharing="fifo"), Post(sharing="fifo")
    alone.send(1, [2])
    alone.clock.run()
    beside.network.conditions.loss = 1.0
    beside.send(0, [2])
    beside.network.conditions.loss = 0.0
    beside.send(1, [2])
    beside.clock.run(until=1.0)
    assert [(time_s, node) for time_s, node, _ in beside.got] == [(time_s, node) for time_s, node, _ in alone.got]


def test_an_address_of_nobody_is_refused(book_rows: Rows) -> None:
    """The router knows no such address: it leaves the sender and is rejected, not sent again."""
    post = Post()
    post.send(0, [NOBODY, 1])
    post.clock.run()
    assert [(row["receiver"], row["outcome"], row["reason"]) for row in book_rows(post.log)] == [
        (NOBODY, "rejected", "unknown_address"),
        (1, "delivered", ""),
    ]


def test_a_receiver_refuses_with_its_reason_or_decides_later(book_rows: Rows) -> None:
    """None leaves a parcel in flight until it is settled."""
    post, kept = Post(), []
    post.network.attach(1, lambda parcel: "replay")
    post.network.attach(2, lambda parcel: kept.append(parcel))
    post.send(0, [1, 2])
    post.clock.run()
    assert [row["outcome"] for row in book_rows(post.log)] == ["rejected", "in_flight"]
    post.network.settle(kept[0], "stale_round")
    assert [(row["outcome"], row["reason"]) for row in book_rows(post.log)] == [
        ("rejected", "replay"),
        ("rejected", "stale_round"),
    ]


def test_a_round_is_quiet_when_its_last_message_has_ended() -> None:
    """Waiting retransmissions count as under way; a round with none is quiet at once."""
    post, quiet = Post(loss=1.0), []
    post.network.when_quiet(7, lambda: quiet.append(("empty", post.clock.now)))
    post.send(0, [1])
    post.network.when_quiet(1, lambda: quiet.append(("round 1", post.clock.now)))
    post.clock.run()
    assert quiet == [("empty", 0), ("round 1", 5.5)]


@pytest.mark.parametrize("sharing", sorted(SHARINGS))
def test_loss_depends_on_the_message_alone(sharing: str, book_rows: Rows) -> None:
    """Whether a message is lost does not depend on the order of events or on how links are shared."""
    post = Post(loss=0.4, sharing=sharing, tries=1)
    for sender in range(4):
        post.send(sender, [node for node in range(4) if node != sender])
    post.clock.run()
    lost = {(row["sender"], row["receiver"]) for row in book_rows(post.log, outcome="lost")}
    reference = Post(loss=0.4, sharing="ideal", tries=1)
    for sender in reversed(range(4)):
        reference.send(sender, [node for node in range(4) if node != sender], size_bytes=77)
    reference.clock.run()
    assert lost == {(row["sender"], row["receiver"]) for row in book_rows(reference.log, outcome="lost")}
    assert 0 < len(lost) < 12


@pytest.mark.slow
def test_the_share_of_losses_is_the_one_asked_for() -> None:
    """4000 messages at 10%: within four standard deviations."""
    post = Post(loss=0.1, tries=1)
    for _ in range(1000):
        post.send(0, [0, 1, 2, 3])
    post.clock.run()
    assert abs(np.mean(post.log.messages["outcome"] == 2) - 0.1) < 4 * np.sqrt(0.09 / 4000)


EVERYONE = np.ones(4, dtype=np.bool_)


def test_damage_does_not_outlive_its_transmission() -> None:
    """A damaged message that is also lost is sent again as it was: later attempts are damaged no more often."""
    post = Post(loss=0.5, tries=20)
    post.network.conditions.corruptions.append(Chance("damage", 0.3, EVERYONE))
    post.network.conditions.alter = lambda content, rng: f"{content}, damaged"
    for _ in range(200):
        post.send(0, [1, 2, 3])
    post.clock.run()
    again = [str(parcel.content) for _, _, parcel in post.got if parcel.attempt > 1]
    assert abs(np.mean([text.endswith("damaged") for text in again]) - 0.3) < 0.11
    assert max(text.count("damaged") for text in again) == 1


def test_a_double_has_a_fate_of_its_own_and_breeds_no_more(book_rows: Rows) -> None:
    """It may arrive although the first was lost, and it is never sent again."""
    post = Post(loss=0.5, tries=2)
    post.network.conditions.duplications.append(Chance("double", 1.0, EVERYONE))
    for _ in range(100):
        post.send(0, [1])
    post.clock.run()
    rows = book_rows(post.log)
    first, double = ([row["outcome"] for row in rows if row["attempt"] == 1][place::2] for place in (0, 1))
    assert {*zip(first, double, strict=True)} == {
        (one, other) for one in ("lost", "delivered") for other in ("lost", "delivered")
    }
    # Each first that was lost is sent once more, and that one is doubled too.
    assert len([row for row in rows if row["attempt"] == 2]) == 2 * first.count("lost")


@pytest.mark.parametrize("loss", [0.0, 0.5])
@pytest.mark.parametrize("sharing", list(SHARINGS))
def test_sending_each_is_sending_one_after_the_other(book_rows: Rows, sharing: str, loss: float) -> None:
    """Messages of different sizes in one call, or each in a call of its own: the same books, in some order."""
    together, one_by_one = Post(loss, sharing), Post(loss, sharing)
    receivers, sizes = [1, 2, 3, 1], [(500, 82), (300, 82), (700, 90), (500, 82)]
    together.network.send_each(0, receivers, "update", 1, sizes, receivers)
    for receiver, size in zip(receivers, sizes, strict=True):
        one_by_one.network.send(0, [receiver], "update", 1, *size, [receiver])
    for post in (together, one_by_one):
        post.clock.run()
    books = [sorted(map(str, book_rows(post.log))) for post in (together, one_by_one)]
    assert books[0] == books[1]


def test_the_books_are_up_to_date_for_whoever_reads() -> None:
    """Rows appear when handed over, and outcomes when they are known."""
    post = Post()
    post.send(0, [1, 2])
    assert len(post.log.messages) == 2
    assert np.isnan(post.log.messages["arrived_s"]).all()
    post.clock.run()
    post.log.mark_used([1])
    assert post.log.messages["used"].tolist() == [False, True]
    assert post.log.messages["arrived_s"].tolist() == [0.6, 0.6]


@pytest.mark.parametrize("sharing", sorted(SHARINGS))
def test_whatever_is_on_its_way_to_a_node_that_goes_down_is_lost(sharing: str, book_rows: Rows) -> None:
    """On the uplink, in the air, or in the queue of the downlink: three to node 3, of which none has come by 0.55 s."""
    post = Post(sharing=sharing, tries=1)
    for sender in range(3):
        post.send(sender, [3, (sender + 1) % 3], size_bytes=500)
    post.clock.call_at(0.55, Rank.FAULT, 3, lambda: post.network.take_down(3))
    post.clock.run()
    rows = [row for row in book_rows(post.log) if row["receiver"] == 3]
    assert [(row["outcome"], row["reason"]) for row in rows] == [("lost", "receiver_down")] * 3


def test_whoever_begins_to_listen_hears_what_is_on_its_way() -> None:
    """Also what was handed over together before, and what would have lain unread."""
    post, heard = Post(), list[str]()
    post.network.open_box(1, 1, Mailbox(post.clock, 1))
    post.send(0, [1, 2], unread=True)
    post.clock.call_at(0.3, Rank.FAULT, 0, lambda: post.network.listen(lambda parcel: heard.append(parcel.content)))
    post.clock.run()
    assert heard == ["for 1", "for 2"]


def test_a_message_in_a_box_lies_unread_until_somebody_looks_at_the_books(book_rows: Rows) -> None:
    """It is not under way any more; what it was is found out before anybody reads."""
    post, opened = Post(), list[tuple[float, int]]()

    def open_letters(letters: Sequence[Letter]) -> None:
        for arrived_s, _, row, _ in letters:
            opened.append((round(arrived_s, 9), row))
            post.network.refuse(row, "replay") if row else post.network.deliver([row])

    box = Mailbox(post.clock, 1, open_letters)
    post.network.open_box(1, 1, box)
    post.network.open_box(2, 1, box)
    quiet = list[float]()
    post.send(0, [1, 2, 3], unread=True)
    post.network.when_quiet(1, lambda: quiet.append(round(post.clock.now, 9)))
    post.clock.run()
    assert (opened, quiet, [node for _, node, _ in post.got]) == ([], [0.6], [3])
    outcomes = [row["outcome"] for row in book_rows(post.log)]
    assert (opened, outcomes) == ([(0.6, 0), (0.6, 1)], ["delivered", "rejected", "delivered"])
