"""Messages over relays: ways, times, books, and what happens when something is lost or down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.clock import Clock, Rank
from p2p.conditions import Conditions
from p2p.distributions import Constant, Exponential
from p2p.links import Links, NetworkSettings, Retransmit
from p2p.log import Log
from p2p.network import Network, Parcel
from p2p.records import NOBODY
from p2p.relays import Relays
from p2p.sharing import SHARINGS

Rows = Callable[..., list[dict[str, Any]]]
PEERS, LAYER = 4, 100


class Post:
    """Four peers at 1 kB/s, relays at 2 kB/s, everybody 0.1 s from everybody; peers welcome everything."""

    def __init__(
        self,
        relays: int = 3,
        hops: int = 2,
        loss: float = 0.0,
        tries: int = 3,
        sharing: str = "ideal",
        jitter: bool = False,
    ) -> None:
        rate = Constant(value=1000.0)
        settings_ = NetworkSettings(uplink=rate, downlink=rate, latency=Constant(value=0.1))
        self.clock, self.log, links = Clock(), Log(), Links(settings_, 1, PEERS, PEERS + relays)
        self.relays = Relays(1, tuple(range(PEERS, PEERS + relays)), hops, LAYER)
        for node in self.relays.nodes:
            links.limit(node, 2000.0, 2000.0)
        engine = SHARINGS[sharing]().engine(links.up, links.down)
        conditions = Conditions(loss=loss, jitter=Exponential(mean=0.05) if jitter else None)
        retransmit = Retransmit(tries=tries, timeout=2.0)
        self.network = Network(self.clock, links, engine, self.log, 1, retransmit, conditions, self.relays)
        self.relays.attach(self.network)
        self.got: list[tuple[float, int, Any]] = []
        for node in range(PEERS):
            self.network.attach(node, self._keep)

    def _keep(self, parcel: Parcel) -> str | None:
        self.got.append((round(float(self.clock.now), 9), parcel.receiver, parcel.content))
        self.log.mark_used([parcel.row])
        return ""

    def send(self, sender: int, receivers: list[int], kind: str = "update", size_bytes: int = 500) -> None:
        """Sends messages of round 1; the content says to whom."""
        contents = [f"for {receiver}" for receiver in receivers]
        self.network.send(sender, receivers, kind, 1, size_bytes, 82, contents)


def balance(log: Log) -> None:
    """Every row has one outcome, and nothing is under way any more."""
    outcome = log.messages["outcome"]
    assert np.isin(outcome, (1, 2, 3)).all()


def test_three_hops_by_hand(book_rows: Rows) -> None:
    """700 bytes at 1 kB/s, then 600 at 2 kB/s between relays, then 500 at the peer's 1 kB/s; 0.1 s of latency each."""
    post = Post()
    post.send(0, [1])
    post.clock.run()
    assert post.got == [(1.8, 1, "for 1")]
    rows = book_rows(post.log)
    assert [row["size_bytes"] for row in rows] == [700, 600, 500]
    assert [row["overhead_bytes"] for row in rows] == [282, 182, 82]
    assert [round(row["arrived_s"], 9) for row in rows] == [0.8, 1.2, 1.8]
    assert [row["previous"] for row in rows] == [NOBODY, 0, 1]
    assert [(row["origin"], row["destination"], row["outcome"], row["used"]) for row in rows] == [
        (0, 1, "delivered", True)
    ] * 3
    way = [rows[0]["sender"], *(row["receiver"] for row in rows)]
    assert (way[0], way[-1]) == (0, 1)
    assert [row["sender"] for row in rows] == way[:-1]
    assert len(set(way[1:-1]) & set(post.relays.nodes)) == 2


def test_control_messages_go_straight(book_rows: Rows) -> None:
    """The proxy knows everybody anyway."""
    post = Post()
    post.send(0, [1, 2], kind="control")
    post.clock.run()
    assert [(row["sender"], row["receiver"], row["previous"]) for row in book_rows(post.log)] == [
        (0, 1, -1),
        (0, 2, -1),
    ]


@settings(max_examples=40, deadline=None)
@given(relays=st.integers(1, 12), data=st.data(), sequence=st.integers(1, 1000))
def test_ways_are_of_different_relays_and_belong_to_the_message(
    relays: int, data: st.DataObject, sequence: int
) -> None:
    """No relay twice; the way of a message does not depend on which others are sent with it."""
    hops = data.draw(st.integers(1, relays))
    table = Relays(3, tuple(range(100, 100 + relays)), hops, LAYER)
    parcels = [Parcel(0, "update", 1, 0, receiver, 500, 82, None, sequence) for receiver in range(1, 30)]
    ways = table.ways(parcels)
    assert ways.shape == (29, hops)
    assert all(len(set(way)) == hops for way in ways.tolist())
    assert set(ways.ravel().tolist()) <= set(table.nodes)
    np.testing.assert_array_equal(table.ways(parcels[7:8])[0], ways[7])


def test_relays_are_chosen_alike() -> None:
    """Every relay is as likely as any other in every place of the way."""
    table = Relays(3, tuple(range(5)), 3, LAYER)
    parcels = [Parcel(0, "update", 1, 0, receiver, 500, 82, None, 1) for receiver in range(10_000)]
    for place in table.ways(parcels).T:
        assert np.bincount(place, minlength=5) == pytest.approx(np.full(5, 2000), abs=200)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    loss=st.sampled_from([0.1, 0.3, 0.6]),
    hops=st.integers(1, 3),
    tries=st.integers(1, 4),
    sharing=st.sampled_from(["ideal", "fifo"]),
    jitter=st.booleans(),
)
def test_books_balance_under_loss(
    book_rows: Rows, loss: float, hops: int, tries: int, sharing: str, jitter: bool
) -> None:
    """A hop that is lost is sent again by its own sender; a message arrives once or stops with a loss."""
    post = Post(hops=hops, loss=loss, tries=tries, sharing=sharing, jitter=jitter)
    for sender in range(PEERS):
        post.send(sender, [peer for peer in range(PEERS) if peer != sender])
    post.clock.run()
    balance(post.log)
    rows = book_rows(post.log)
    for row in rows:
        if row["previous"] != NOBODY:
            before = rows[row["previous"]]
            assert (before["receiver"], before["outcome"]) == (row["sender"], "delivered")
            assert before["size_bytes"] == row["size_bytes"] + LAYER
            assert row["sent_s"] >= before["arrived_s"]
        assert 1 <= row["attempt"] <= tries
    arrived = [row for row in rows if row["outcome"] == "delivered" and row["receiver"] == row["destination"]]
    assert len(arrived) == len(post.got) == len({(row["origin"], row["destination"]) for row in arrived})
    assert all(row["used"] for row in arrived)
    # What went some of the way in vain is not used on any hop, and so counts as wasted.
    carried = {row["previous"] for row in rows if row["used"]}
    assert all(row["used"] == (index in carried) for index, row in enumerate(rows) if row["receiver"] >= PEERS)


def test_a_relay_that_is_down_loses_what_comes_and_the_way_stays(book_rows: Rows) -> None:
    """The first hop is lost at once, tried again over the same relay, and gets through when that is up."""
    post = Post(relays=1, hops=1)
    relay = post.relays.nodes[0]
    post.network.take_down(relay)
    post.clock.call_at(1.0, Rank.FAULT, 0, lambda: post.network.bring_up(relay))
    post.send(0, [1])
    post.clock.run()
    told = [
        (row["sender"], row["receiver"], row["attempt"], row["outcome"], row["reason"]) for row in book_rows(post.log)
    ]
    assert told == [
        (0, relay, 1, "lost", "receiver_down"),
        (0, relay, 2, "delivered", ""),
        (relay, 1, 1, "delivered", ""),
    ]


def test_a_relay_that_goes_down_takes_its_messages_along(book_rows: Rows) -> None:
    """What it was sending is lost and nobody sends it again; the round is quiet all the same."""
    post, quiet = Post(relays=1, hops=1), []
    post.send(0, [1])
    post.network.when_quiet(1, lambda: quiet.append(float(post.clock.now)))
    post.clock.call_at(0.9, Rank.FAULT, 0, lambda: post.network.take_down(post.relays.nodes[0]))
    post.clock.run()
    assert [(row["outcome"], row["reason"]) for row in book_rows(post.log)] == [
        ("delivered", ""),
        ("lost", "sender_down"),
    ]
    assert post.got == []
    assert quiet == [0.9]


def test_an_address_of_nobody_is_refused_at_the_end_of_the_way(book_rows: Rows) -> None:
    """Relays cannot know; whoever keeps the last hop's address book does."""
    post = Post()
    post.send(0, [NOBODY])
    post.clock.run()
    assert [(row["outcome"], row["reason"]) for row in book_rows(post.log)] == [
        ("delivered", ""),
        ("delivered", ""),
        ("rejected", "unknown_address"),
    ]


def test_a_round_is_not_quiet_while_a_relay_holds_something() -> None:
    """Between two hops a message is still under way."""
    post, quiet = Post(), []
    post.send(0, [1])
    post.network.when_quiet(1, lambda: quiet.append(round(float(post.clock.now), 9)))
    post.clock.run()
    assert quiet == [1.8]
