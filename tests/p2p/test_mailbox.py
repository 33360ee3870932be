"""A mailbox wakes its reader once: when all have come, or at the deadline."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import numpy as np
import simpy

from p2p.clock import Clock, Rank
from p2p.mailbox import Mailbox
from p2p.parcels import Letter, Wave


def read(clock: Clock, mailbox: Mailbox, count: int, deadline_s: float | None) -> list[tuple[float, list[Any]]]:
    """Starts a reader of key "k" and returns the list in which it notes when it was woken, and with what."""
    noted: list[tuple[float, list[Any]]] = []

    def reader() -> Generator[simpy.Event, Any, None]:
        items = yield mailbox.expect("k", count, deadline_s)
        noted.append((clock.now, items))

    clock.process(reader())
    return noted


def put_at(clock: Clock, mailbox: Mailbox, time_s: float, item: str, key: str = "k") -> None:
    """Puts an item as an arrival."""
    clock.call_at(time_s, Rank.ARRIVAL, 0, lambda: mailbox.put(key, item))


def test_the_last_one_expected_wakes_the_reader() -> None:
    """Not the ones before, and not those of another key."""
    clock = Clock()
    mailbox = Mailbox(clock, 1)
    noted = read(clock, mailbox, 2, 9.0)
    put_at(clock, mailbox, 1.0, "first")
    put_at(clock, mailbox, 2.0, "other", key="another")
    put_at(clock, mailbox, 3.0, "second")
    clock.run()
    assert noted == [(3.0, ["first", "second"])]
    assert mailbox.peek("another") == ["other"]


def test_the_deadline_gives_what_has_come_and_exactly_then_still_counts() -> None:
    """An arrival at the deadline's instant is in, the next moment's is not."""
    clock = Clock()
    mailbox = Mailbox(clock, 1)
    noted = read(clock, mailbox, 3, 2.0)
    put_at(clock, mailbox, 2.0, "just in time")
    put_at(clock, mailbox, 2.000001, "late")
    clock.run()
    assert noted == [(2.0, ["just in time"])]
    assert mailbox.peek("k") == ["late"]


def test_what_came_before_anyone_asked_is_there() -> None:
    """A reader that comes late is woken at once if it needs not wait."""
    clock = Clock()
    mailbox = Mailbox(clock, 1)
    mailbox.put("k", "early")
    noted = read(clock, mailbox, 1, None)
    clock.run()
    assert noted == [(0.0, ["early"])]
    assert mailbox.peek("k") == []


def test_a_passed_deadline_does_not_disturb_the_next_wait() -> None:
    """The first wait ended early; its deadline must not end the second."""
    clock = Clock()
    mailbox = Mailbox(clock, 1)
    noted: list[tuple[float, list[Any]]] = []

    def reader() -> Generator[simpy.Event, Any, None]:
        for deadline_s in (5.0, 9.0):
            items = yield mailbox.expect("k", 1, deadline_s)
            noted.append((clock.now, items))

    clock.process(reader())
    put_at(clock, mailbox, 1.0, "a")
    put_at(clock, mailbox, 8.0, "b")
    clock.run()
    assert noted == [(1.0, ["a"]), (8.0, ["b"])]


def test_forgetting_drops_items_and_waits() -> None:
    """A forgotten wait never wakes anybody."""
    clock = Clock()
    mailbox = Mailbox(clock, 1)
    noted = read(clock, mailbox, 2, 4.0)
    put_at(clock, mailbox, 1.0, "a")
    clock.call_at(2.0, Rank.START, 0, lambda: mailbox.forget("k"))
    put_at(clock, mailbox, 3.0, "b")
    clock.run()
    assert noted == []
    assert mailbox.peek("k") == ["b"]


def opening(mailboxes: list[Mailbox], opened: list[Any]) -> Callable[[Sequence[Letter]], None]:
    """Opens letters: those that begin with "bad" are refused."""

    def open_letters(letters: Sequence[Letter]) -> None:
        texts = [letter[3].contents[0] for letter in letters]
        opened.append(texts)
        mailboxes[0].put_all("k", [text for text in texts if not text.startswith("bad")])

    return open_letters


def letter(arrives_s: float, text: str, row: int = 0) -> Letter:
    """The only message of a wave that leaves at once."""
    wave = Wave("update", 1, 0, [1], 10, 0, [text], 1, np.inf, unread=True, row=row)
    wave.latencies, wave.left_s = [arrives_s], 0.0
    return arrives_s, 0, row, wave


def test_letters_are_opened_when_they_could_end_a_wait() -> None:
    """Two are expected: the first lies unread; the second opens both, and as one is refused, one more is needed."""
    clock, mailboxes, opened = Clock(), list[Mailbox](), list[Any]()
    mailboxes.append(Mailbox(clock, 1, opening(mailboxes, opened)))
    noted = read(clock, mailboxes[0], 2, 9.0)
    for time_s, text in ((1.0, "a"), (2.0, "bad"), (3.0, "b"), (4.0, "c")):
        clock.call_at(time_s, Rank.ARRIVAL, 0, partial(mailboxes[0].drop, letter(time_s, text)))
    clock.run()
    assert noted == [(3.0, ["a", "b"])]
    assert opened == [["a", "bad"], ["b"]]
    assert mailboxes[0].peek("k") == ["c"]


def test_an_item_and_letters_count_together_and_a_deadline_opens_them() -> None:
    """Three are expected, one of them comes as an item; at the deadline a letter lies unread and counts."""
    clock, mailboxes, opened = Clock(), list[Mailbox](), list[Any]()
    mailboxes.append(Mailbox(clock, 1, opening(mailboxes, opened)))
    noted = read(clock, mailboxes[0], 3, 2.0)
    put_at(clock, mailboxes[0], 0.5, "item")
    clock.call_at(1.0, Rank.ARRIVAL, 0, partial(mailboxes[0].drop, letter(1.0, "letter")))
    clock.run(1.5)
    assert (noted, opened) == ([], [])
    clock.run()
    assert noted == [(2.0, ["item", "letter"])]


def test_letters_on_their_way_ring_when_enough_have_come() -> None:
    """Three are announced at once and two are needed: one ring, at the second; the third waits for the next time."""
    clock, mailboxes, opened = Clock(), list[Mailbox](), list[Any]()
    mailboxes.append(Mailbox(clock, 1, opening(mailboxes, opened)))
    noted = read(clock, mailboxes[0], 2, 9.0)
    coming = [letter(3.0, "c", 2), letter(1.0, "a", 0), letter(2.0, "b", 1)]
    clock.call_at(0.5, Rank.START, 0, lambda: mailboxes[0].announce(coming, 0.5))
    clock.run(2.5)
    assert (noted, opened) == ([(2.0, ["a", "b"])], [["a", "b"]])
    assert mailboxes[0].peek("k") == []
    clock.run(3.5)
    assert mailboxes[0].peek("k") == ["c"]


def test_a_letter_that_was_put_off_rings_again_and_one_that_is_grounded_never_comes() -> None:
    """Said to come at 1 and 2, they come at 4 and another way: the deadline finds one."""
    clock, mailboxes, opened = Clock(), list[Mailbox](), list[Any]()
    mailboxes.append(Mailbox(clock, 1, opening(mailboxes, opened)))
    noted = read(clock, mailboxes[0], 2, 9.0)
    late, lost = letter(1.0, "late", 0), letter(2.0, "grounded", 1)
    clock.call_at(0.5, Rank.START, 0, lambda: mailboxes[0].announce([late, lost], 0.5))
    clock.call_at(0.6, Rank.START, 0, lambda: late[3].put_off(3.0))
    clock.call_at(0.7, Rank.START, 0, lambda: lost[3].ground(0.7))
    clock.run()
    assert noted == [(9.0, ["late"])]
    assert opened == [["late"]]


def test_a_deadline_that_was_met_does_nothing() -> None:
    """Of two waits with one deadline the first is over before it."""
    clock = Clock()
    mailbox, other = Mailbox(clock, 1), Mailbox(clock, 2)
    noted, waited = read(clock, mailbox, 1, 2.0), read(clock, other, 1, 2.0)
    put_at(clock, mailbox, 1.0, "a")
    clock.run()
    assert (noted, waited) == ([(1.0, ["a"])], [(2.0, [])])


def test_what_is_promised_comes_when_the_caller_says() -> None:
    """Its deadline is called off, and the mailbox can be waited at again."""
    clock = Clock()
    mailbox = Mailbox(clock, 1)
    noted = read(clock, mailbox, 1, 2.0)
    clock.run(until=1.0)
    clock.at_each(np.array([4.0]), np.array([1]), [mailbox.promise("k", "item")])
    clock.run()
    assert noted == [(4.0, ["item"])]
    assert clock.nothing_ahead
