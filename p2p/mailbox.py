"""A node's mailbox: what has come, and the one wait for what is expected.

A process says how many items of one key it expects and until when, and is woken once: when the last of them has come,
or at the deadline with those that have. An item that comes exactly at the deadline counts.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import simpy

from p2p.clock import Clock, Rank


class Mailbox:
    """Items by key. One process reads it; the network fills it."""

    __slots__ = ("_clock", "_items", "_node", "_waits")

    def __init__(self, clock: Clock, node: int) -> None:
        self._clock = clock
        self._node = node
        self._items: dict[Hashable, list[Any]] = {}
        self._waits: dict[Hashable, tuple[int, simpy.Event]] = {}

    def put(self, key: Hashable, item: Any) -> None:
        """Adds an item and wakes the reader if it is the last one expected."""
        items = self._items.setdefault(key, [])
        items.append(item)
        wait = self._waits.get(key)
        if wait is not None and len(items) >= wait[0]:
            self._wake(key)

    def expect(self, key: Hashable, count: int, deadline_s: float | None = None) -> simpy.Event:
        """An event that yields the list of items under `key`: `count` of them, or fewer at the deadline."""
        event = simpy.Event(self._clock)
        self._waits[key] = (count, event)
        if len(self._items.get(key, ())) >= count:
            self._wake(key)
        elif deadline_s is not None:
            self._clock.call_at(deadline_s, Rank.DEADLINE, self._node, lambda: self._pass(key, event))
        return event

    def take(self, key: Hashable) -> list[Any]:
        """What has come under a key; it is gone from the mailbox then."""
        return self._items.pop(key, [])

    def wake(self, *keys: Hashable) -> None:
        """Wakes whoever waits for something under these keys, with what has come."""
        for key in keys:
            if key in self._waits:
                self._wake(key)

    def peek(self, key: Hashable) -> list[Any]:
        """What has come under a key, without taking it."""
        return self._items.get(key, [])

    def forget(self, key: Hashable) -> None:
        """Drops what came under a key, and a wait for it."""
        self._items.pop(key, None)
        self._waits.pop(key, None)

    def _wake(self, key: Hashable) -> None:
        _, event = self._waits.pop(key)
        self._clock.trigger(event, self._items.pop(key, []), Rank.START, self._node)

    def _pass(self, key: Hashable, event: simpy.Event) -> None:
        wait = self._waits.get(key)
        if wait is not None and wait[1] is event:
            self._wake(key)
