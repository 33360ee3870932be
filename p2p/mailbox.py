"""A node's mailbox: what has come, and the one wait for what is expected.

A process says how many items of one key it expects and until when, and is woken once: when the last of them has come,
or at the deadline with those that have. An item that comes exactly at the deadline counts.

Letters may be dropped in unread. They are opened together: when there are so many that a wait may be over, or when
somebody looks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import simpy

from p2p.clock import Clock, Rank

Open = Callable[[Sequence[Any]], None]


class Wait(NamedTuple):
    """How many items somebody waits for, what tells it, and until when; `number` is the deadline's, 0 without one."""

    needed: int
    event: simpy.Event
    deadline_s: float | None
    number: int


_NEVER = sys.maxsize


class Mailbox:
    """Items by key. One process reads it; the network fills it.

    Args:
        open_letters: puts in what letters hold, in their order, leaving out what is refused.
    """

    __slots__ = ("_clock", "_enough", "_items", "_node", "_open", "_unread", "_waits")

    def __init__(self, clock: Clock, node: int, open_letters: Open | None = None) -> None:
        self._clock = clock
        self._node = node
        self._items: dict[Hashable, list[Any]] = {}
        self._waits: dict[Hashable, Wait] = {}
        self._open = open_letters
        self._unread: list[Any] = []
        self._enough = _NEVER

    def drop(self, letter: Any) -> bool:
        """Adds a letter, to be opened later; whether it is the first that lies unread."""
        unread = self._unread
        unread.append(letter)
        if len(unread) >= self._enough:
            self.read()
        return len(self._unread) == 1

    def read(self) -> None:
        """Opens what lies unread."""
        if self._unread and self._open is not None:
            unread, self._unread = self._unread, []
            self._open(unread)
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Finds out how many more letters could end a wait."""
        waits, items = self._waits, self._items
        self._enough = min([count - len(items.get(key, ())) for key, (count, *_) in waits.items()], default=_NEVER)

    def put(self, key: Hashable, item: Any) -> None:
        """Adds an item and wakes the reader if it is the last one expected."""
        items = self._items.setdefault(key, [])
        items.append(item)
        wait = self._waits.get(key)
        if wait is None:
            return
        missing = wait.needed - len(items)
        if missing <= 0:
            self._wake(key)
        elif missing < self._enough:
            self._enough = missing

    def put_all(self, key: Hashable, items: Sequence[Any]) -> None:
        """Adds items that came one after the other, none but the last of which may end a wait."""
        if items:
            self._items.setdefault(key, []).extend(items[:-1])
            self.put(key, items[-1])

    def expect(self, key: Hashable, count: int, deadline_s: float | None = None) -> simpy.Event:
        """An event that yields the list of items under `key`: `count` of them, or fewer at the deadline."""
        self.read()
        event, number = self._clock.signal(), 0
        missing = count - len(self._items.get(key, ()))
        self._enough = min(self._enough, missing)
        if missing > 0 and deadline_s is not None:
            number = self._clock.call_by(deadline_s, self._node, self._pass)
        self._waits[key] = Wait(count, event, deadline_s, number)
        if missing <= 0:
            self._wake(key)
        return event

    def take(self, key: Hashable) -> list[Any]:
        """What has come under a key; it is gone from the mailbox then."""
        self.read()
        return self._items.pop(key, [])

    def wake(self, *keys: Hashable) -> None:
        """Wakes whoever waits for something under these keys, with what has come."""
        self.read()
        for key in keys:
            if key in self._waits:
                self._wake(key)

    def peek(self, key: Hashable) -> list[Any]:
        """What has come under a key, without taking it."""
        self.read()
        return self._items.get(key, [])

    def forget(self, key: Hashable) -> None:
        """Drops what came under a key, and a wait for it."""
        self.read()
        self._items.pop(key, None)
        self._waits.pop(key, None)

    def _wake(self, key: Hashable) -> None:
        _, event, deadline_s, number = self._waits.pop(key)
        if number and deadline_s is not None:
            self._clock.call_off(deadline_s, number)
        self._enough = _NEVER if not self._waits else self._enough
        self._clock.trigger(event, self._items.pop(key, []), Rank.START, self._node)

    def _pass(self, number: int) -> None:
        """The deadline of a wait has come."""
        self.read()
        for key in [key for key, wait in self._waits.items() if wait.number == number]:
            self._wake(key)
