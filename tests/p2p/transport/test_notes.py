"""Control messages whose content is a number: the reader makes the content, wherever and however it reads it."""

from __future__ import annotations

import numpy as np
import simpy

from p2p.transport.core.layout import FIRST_TOPIC
from p2p.transport.impairments import Chance
from p2p.transport.messages import Delivery, Note
from tests.p2p.small_network import SmallNetwork

NOTE = Note(FIRST_TOPIC, 187, 82)


def reader_of(post: SmallNetwork, node: int, count: int, until_s: float) -> list[str]:
    """What a process on a node reads, once it has run."""
    found: list[str] = []

    def read() -> simpy.events.ProcessGenerator:
        found.extend((yield post.inboxes[node].expect(("control", 1), count, until_s)))

    post.clock.process(read())
    return found


def make(delivery: Delivery) -> str:
    """A content that shows what it is made from."""
    return f"{-delivery.batch} of {delivery.sender}"


def test_a_note_costs_what_it_says_and_is_made_when_read() -> None:
    """187 bytes at 1 kB/s and 0.1 s; nothing is made before the process reads."""
    post = SmallNetwork()
    made: list[Delivery] = []

    def make_once(delivery: Delivery) -> str:
        made.append(delivery)
        return make(delivery)

    post.network.contents.make_with(FIRST_TOPIC, make_once)
    found = reader_of(post, 1, 2, 4.0)
    post.network.tell(0, 1, 1, NOTE, 41)
    post.network.tell(2, 1, 1, NOTE, 0)
    post.clock.run(until=0.2)
    assert made == []
    post.clock.run(until=5.0)
    assert found == ["41 of 0", "0 of 2"]
    assert post.log.messages["size_bytes"].tolist() == [187, 187]
    assert post.log.messages["overhead_bytes"].tolist() == [82, 82]
    assert post.log.messages["arrived_s"].round(9).tolist() == [0.287, 0.287]


def test_a_node_that_is_down_tells_nothing_and_a_stand_in_hears() -> None:
    """Notes meet crashes and redirects like every message."""
    post = SmallNetwork()
    post.network.contents.make_with(FIRST_TOPIC, make)
    post.network.redirect(1, 3)
    found = reader_of(post, 3, 1, 4.0)
    post.network.take_down(2)
    post.network.tell(2, 1, 1, NOTE, 7)
    post.network.tell(0, 1, 1, NOTE, 8)
    post.clock.run(until=5.0)
    assert found == ["8 of 0"]
    assert post.log.messages["receiver"].tolist() == [3]


def test_a_note_is_damaged_like_any_content() -> None:
    """What is altered is what the reader would have made."""
    post = SmallNetwork()
    post.network.contents.make_with(FIRST_TOPIC, make)
    post.network.impair(Chance("corrupt", "test", 1.0, np.ones(4, dtype=np.bool_)))
    found = reader_of(post, 1, 1, 4.0)
    post.network.tell(0, 1, 1, NOTE, 5)
    post.clock.run(until=10.0)
    assert found == ["5 of 0, damaged"]
