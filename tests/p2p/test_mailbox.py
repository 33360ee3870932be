"""A mailbox wakes its reader once: when all have come, or at the deadline."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import simpy

from p2p.clock import Clock, Rank
from p2p.mailbox import Mailbox


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


def opening(mailboxes: list[Mailbox], opened: list[Any]) -> Callable[[Sequence[Any]], None]:
    """Opens letters: those that begin with "bad" are refused."""

    def open_letters(letters: Sequence[str]) -> None:
        opened.append(list(letters))
        mailboxes[0].put_all("k", [letter for letter in letters if not letter.startswith("bad")])

    return open_letters


def test_letters_are_opened_when_they_could_end_a_wait() -> None:
    """Two are expected: the first lies unread; the second opens both, and as one is refused, one more is needed."""
    clock, mailboxes, opened = Clock(), list[Mailbox](), list[Any]()
    mailboxes.append(Mailbox(clock, 1, opening(mailboxes, opened)))
    noted = read(clock, mailboxes[0], 2, 9.0)
    for time_s, letter in ((1.0, "a"), (2.0, "bad"), (3.0, "b"), (4.0, "c")):
        clock.call_at(time_s, Rank.ARRIVAL, 0, partial(mailboxes[0].drop, letter))
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
    clock.call_at(1.0, Rank.ARRIVAL, 0, partial(mailboxes[0].drop, "letter"))
    clock.run(1.5)
    assert (noted, opened) == ([], [])
    clock.run()
    assert noted == [(2.0, ["item", "letter"])]
