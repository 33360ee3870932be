"""Messages over relays: ways, times, totals, and what happens when something is lost or down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.clock import Rank
from p2p.log.log import Log
from p2p.log.records import NO_NODE
from p2p.transport.impairments import Chance
from p2p.transport.relays import Relays
from p2p.transport.sharing import SHARINGS
from tests.p2p.small_network import LAYER_BYTES, SmallNetwork

Rows = Callable[..., list[dict[str, Any]]]
PEERS = 4


class Post(SmallNetwork):
    """Four peers at 1 kB/s, relays at 2 kB/s, everyone 0.1 s from everyone; what is taken is marked as used."""

    def __init__(self, relays: int = 3, **more: Any) -> None:
        super().__init__(PEERS, relays=relays, **more)
        self.relay_nodes = tuple(range(PEERS, PEERS + relays))

    def mark_used(self) -> None:
        """Marks all that arrived."""
        self.log.mark_used([message.row for _, _, message in self.got])


def balance(log: Log) -> None:
    """Every row has one outcome, and nothing is under way any more."""
    outcome = log.messages["outcome"]
    assert np.isin(outcome, (1, 2, 3)).all()


def test_three_hops_by_hand(message_rows: Rows) -> None:
    """700 bytes at 1 kB/s, then 600 at 2 kB/s between relays, then 500 at the peer's 1 kB/s; 0.1 s of latency each."""
    post = Post()
    post.send(0, [1])
    post.clock.run()
    post.mark_used()
    assert post.arrivals() == [(1.8, 1, "for 1")]
    rows = message_rows(post.log)
    assert [row["size_bytes"] for row in rows] == [700, 600, 500]
    assert [row["overhead_bytes"] for row in rows] == [282, 182, 82]
    assert [round(row["arrived_s"], 9) for row in rows] == [0.8, 1.2, 1.8]
    assert [row["previous"] for row in rows] == [NO_NODE, 0, 1]
    assert [(row["origin"], row["destination"], row["outcome"], row["used"]) for row in rows] == [
        (0, 1, "delivered", True)
    ] * 3
    way = [rows[0]["sender"], *(row["receiver"] for row in rows)]
    assert (way[0], way[-1]) == (0, 1)
    assert [row["sender"] for row in rows] == way[:-1]
    assert len(set(way[1:-1]) & set(post.relay_nodes)) == 2


def test_control_messages_go_straight(message_rows: Rows) -> None:
    """The proxy knows all nodes anyway."""
    post = Post()
    post.send(0, [1, 2], kind="control")
    post.clock.run()
    assert [(row["sender"], row["receiver"], row["previous"]) for row in message_rows(post.log)] == [
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
    table = Relays(3, tuple(range(100, 100 + relays)), hops, LAYER_BYTES)
    ways = table.ways("update", 1, 0, sequence, range(1, 30))
    assert ways.shape == (29, hops)
    assert all(len(set(way)) == hops for way in ways.tolist())
    assert set(ways.ravel().tolist()) <= set(table.nodes)
    np.testing.assert_array_equal(table.ways("update", 1, 0, sequence, [8])[0], ways[7])


def test_relays_are_chosen_alike() -> None:
    """Every relay is as likely as any other in every place of the way."""
    table = Relays(3, tuple(range(5)), 3, LAYER_BYTES)
    for place in table.ways("update", 1, 0, 1, range(10_000)).T:
        assert np.bincount(place, minlength=5) == pytest.approx(np.full(5, 2000), abs=200)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    loss=st.sampled_from([0.1, 0.3, 0.6]),
    hops=st.integers(1, 3),
    tries=st.integers(1, 4),
    sharing=st.sampled_from(sorted(SHARINGS)),
    jitter=st.booleans(),
)
def test_totals_add_up_under_loss(
    message_rows: Rows, loss: float, hops: int, tries: int, sharing: str, jitter: bool
) -> None:
    """A hop that is lost is sent again by its own sender; a message arrives once or stops with a loss."""
    post = Post(hops=hops, loss=loss, tries=tries, sharing=sharing, jitter_s=0.05 if jitter else 0.0)
    for sender in range(PEERS):
        post.send(sender, [peer for peer in range(PEERS) if peer != sender])
    post.clock.run()
    post.mark_used()
    balance(post.log)
    rows = message_rows(post.log)
    for row in rows:
        if row["previous"] != NO_NODE:
            before = rows[row["previous"]]
            assert (before["receiver"], before["outcome"]) == (row["sender"], "delivered")
            assert before["size_bytes"] == row["size_bytes"] + LAYER_BYTES
            assert row["sent_s"] >= before["arrived_s"]
        assert 1 <= row["attempt"] <= tries
    arrived = [row for row in rows if row["outcome"] == "delivered" and row["receiver"] == row["destination"]]
    assert len(arrived) == len(post.got) == len({(row["origin"], row["destination"]) for row in arrived})
    assert all(row["used"] for row in arrived)
    # What went some of the way in vain is not used on any hop, and so counts as wasted.
    carried = {row["previous"] for row in rows if row["used"]}
    assert all(row["used"] == (index in carried) for index, row in enumerate(rows) if row["receiver"] >= PEERS)


def test_a_relay_that_is_down_loses_what_comes_and_the_way_stays(message_rows: Rows) -> None:
    """The first hop is lost at once, tried again over the same relay, and gets through when that is up."""
    post = Post(relays=1, hops=1)
    relay = post.relay_nodes[0]
    post.network.take_down(relay)
    post.clock.call_at(1.0, Rank.FAULT, 0, lambda: post.network.bring_up(relay))
    post.send(0, [1])
    post.clock.run()
    told = [
        (row["sender"], row["receiver"], row["attempt"], row["outcome"], row["reason"])
        for row in message_rows(post.log)
    ]
    assert told == [
        (0, relay, 1, "lost", "receiver_down"),
        (0, relay, 2, "delivered", ""),
        (relay, 1, 1, "delivered", ""),
    ]


def test_a_relay_that_goes_down_takes_its_messages_along(message_rows: Rows) -> None:
    """What it was sending is lost and no node sends it again; the round is drained all the same."""
    post, drained = Post(relays=1, hops=1), []
    post.send(0, [1])
    post.network.when_drained(1, lambda: drained.append(float(post.clock.now)))
    post.clock.call_at(0.9, Rank.FAULT, 0, lambda: post.network.take_down(post.relay_nodes[0]))
    post.clock.run()
    assert [(row["outcome"], row["reason"]) for row in message_rows(post.log)] == [
        ("delivered", ""),
        ("lost", "sender_down"),
    ]
    assert post.got == []
    assert drained == [0.9]


def test_an_address_of_no_node_is_refused_at_the_end_of_the_way(message_rows: Rows) -> None:
    """Relays cannot know; the node that keeps the last hop's addresses does."""
    post = Post()
    post.send(0, [NO_NODE])
    post.clock.run()
    assert [(row["outcome"], row["reason"]) for row in message_rows(post.log)] == [
        ("delivered", ""),
        ("delivered", ""),
        ("rejected", "unknown_address"),
    ]


def test_relays_pass_on_what_is_under_way_when_the_round_closes() -> None:
    """Closing stops retransmissions only: the message that left at 0.7 s arrives as ever."""
    post = Post()
    post.send(0, [1])
    post.clock.call_at(0.3, Rank.START, 0, lambda: post.network.close_round(1))
    post.clock.run()
    assert post.arrivals() == [(1.8, 1, "for 1")]


def test_damage_on_the_first_hop_arrives() -> None:
    """Relays cannot see it; the receiver does, and each relay's own transmission is intact."""
    post = Post()
    post.network.impair(Chance("corrupt", "damage", 1.0, np.arange(PEERS + 3) == 0))
    post.send(0, [1])
    post.clock.run()
    assert post.arrivals() == [(1.8, 1, "for 1, damaged")]


def test_a_round_is_not_drained_while_a_relay_holds_something() -> None:
    """Between two hops a message is still under way."""
    post, drained = Post(), []
    post.send(0, [1])
    post.network.when_drained(1, lambda: drained.append(round(float(post.clock.now), 9)))
    post.clock.run()
    assert drained == [1.8]


@pytest.mark.parametrize("sharing", sorted(SHARINGS))
def test_copies_go_over_the_same_relays(sharing: str, message_rows: Rows) -> None:
    """Each hop may be doubled, copies of copies included, since every hop is a new transmission."""
    post = Post(sharing=sharing)
    post.network.impair(Chance("duplicate", "double", 1.0, np.ones(PEERS + 3, dtype=np.bool_)))
    post.send(0, [1, 2])
    post.clock.run()
    balance(post.log)
    rows = message_rows(post.log)
    ways = {(row["origin"], row["destination"], row["size_bytes"]): row["receiver"] for row in rows}
    assert all(ways[row["origin"], row["destination"], row["size_bytes"]] == row["receiver"] for row in rows)
    assert len(post.got) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("sharing", sorted(SHARINGS))
def test_relays_and_duplicates_under_heavy_load_end(sharing: str) -> None:
    """Time never runs backwards: 300 messages over five slow relays, a third of them doubled at each hop."""
    post = Post(relays=5, sharing=sharing, loss=0.05, jitter_s=0.01)
    post.network.impair(Chance("duplicate", "double", 0.3, np.ones(PEERS + 5, dtype=np.bool_)))
    for number in range(100):
        sender = number % PEERS
        others = [peer for peer in range(PEERS) if peer != sender]
        post.clock.call_at(number / 7, Rank.START, sender, lambda a=sender, b=others: post.send(a, b, 333))  # type: ignore[misc]
    post.clock.run()
    balance(post.log)
    table = post.log.messages
    arrived = table["arrived_s"][~np.isnan(table["arrived_s"])]
    assert (arrived >= table["sent_s"][~np.isnan(table["arrived_s"])]).all()
    assert len({(message.sender, message.receiver) for _, _, message in post.got}) > 10


def test_a_message_to_a_relay_itself_is_refused(message_rows: Rows) -> None:
    """A stranger that writes to a relay without a route gets nowhere, and nothing breaks."""
    post = Post(relays=2)
    post.send(0, [4], kind="control")
    post.clock.run()
    assert [(row["outcome"], row["reason"]) for row in message_rows(post.log)] == [("rejected", "unknown_address")]
