"""A node's mailbox: what has come, and the one wait for what is expected.

A process says how many items of one key it expects and until when, and is woken once: when the last of them has come,
or at the deadline with those that have. An item that comes exactly at the deadline counts.

Letters may be dropped in unread, or announced while they are still on their way. They are opened together: when so
many have come that a wait may be over, or when somebody looks.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import simpy

from p2p.clock import Clock, Rank
from p2p.parcels import Letter, as_it_stands

Open = Callable[[Sequence[Letter]], None]


class Wait(NamedTuple):
    """How many items somebody waits for, what tells it, and the number of the deadline, 0 without one."""

    needed: int
    event: simpy.Event
    number: int


_NEVER = sys.maxsize
_NO_LETTERS: list[Letter] = []
"""Where none has come yet: most mailboxes never get any. Nobody adds to it."""
_NO_ITEMS: dict[Hashable, list[Any]] = {}
"""The same for items."""


class Mailbox:
    """Items by key. One process reads it; the network fills it.

    Args:
        open_letters: puts in what letters hold, in their order, leaving out what is refused.
    """

    __slots__ = (
        *("_clock", "_coming", "_enough", "_items", "_node", "_open", "_ring_s", "_soonest_s", "_unread"),
        "_waits",
    )

    def __init__(self, clock: Clock, node: int, open_letters: Open | None = None) -> None:
        self._clock = clock
        self._node = node
        self._items = _NO_ITEMS
        self._waits: dict[Hashable, Wait] = {}
        self._open = open_letters
        self._unread = self._coming = _NO_LETTERS
        self._soonest_s = np.inf
        self._enough = _NEVER
        self._ring_s = np.inf

    def drop(self, letter: Letter) -> bool:
        """Adds a letter, to be opened later; whether it is the only one that lies unread or is on its way."""
        if self._unread:
            self._unread.append(letter)
        else:
            self._unread = [letter]
        if len(self._unread) >= self._enough:
            self._let_ring(letter[0])  # not before all that come at this instant are here
        elif len(self._unread) + len(self._coming) >= self._enough:
            self._look_out()
        return len(self._unread) + len(self._coming) == 1

    def announce(self, letters: list[Letter], soonest_s: float) -> None:
        """Letters are on their way, or have just come; none of them before `soonest_s`."""
        self._coming = [*self._coming, *letters] if self._coming else letters
        if soonest_s < self._soonest_s:
            self._soonest_s = soonest_s
        if len(self._unread) + len(self._coming) >= self._enough:
            self._look_out()

    def read(self) -> bool:
        """Opens what lies unread; whether more is on its way."""
        if self._soonest_s <= self._clock.settled_s:
            self._take_in()
        if self._unread and self._open is not None:
            unread, self._unread = self._unread, _NO_LETTERS
            self._open(unread)
            self._look_ahead()
        return bool(self._coming)

    def _take_in(self) -> None:
        """What was announced and has come lies unread now, in the order in which it came."""
        coming = self._coming
        if True in [letter[3].moved for letter in coming]:
            now = [as_it_stands(letter) if letter[3].moved else letter for letter in coming]
            coming = [letter for letter in now if letter is not None]
        coming.sort()
        cut = bisect_right(coming, (self._clock.settled_s, sys.maxsize))
        self._unread = sorted(self._unread + coming[:cut]) if self._unread else coming[:cut]
        self._coming = coming[cut:]
        self._soonest_s = self._coming[0][0] if self._coming else np.inf

    def _look_ahead(self) -> None:
        """Finds out how many more letters could end a wait, and when they will have come."""
        waits, items = self._waits, self._items
        self._await(min([count - len(items.get(key, ())) for key, (count, *_) in waits.items()], default=_NEVER))

    def _await(self, enough: int) -> None:
        """So many letters more could end a wait."""
        self._enough = enough
        if len(self._coming) + len(self._unread) >= enough:
            self._look_out()

    def _look_out(self) -> None:
        """Lets it ring when enough letters will have come, as far as is known: some may still be put off."""
        needed = self._enough - len(self._unread)
        if 0 < needed <= len(self._coming):
            self._coming.sort()
            self._let_ring(self._coming[needed - 1][0])

    def _let_ring(self, time_s: float) -> None:
        time_s = max(time_s, self._clock.settled_s)
        if time_s < self._ring_s:
            self._ring_s = time_s
            self._clock.rings.add(time_s, self._node, self._ring, time_s)

    def _ring(self, time_s: float) -> None:
        """Enough letters should have come; if some were put off, there will be another ring."""
        if time_s == self._ring_s:
            self._ring_s = np.inf
            self.read()
            self._look_out()

    def put(self, key: Hashable, item: Any) -> None:
        """Adds an item, after what lies unread, and wakes the reader if it is the last one expected."""
        if self._unread or self._soonest_s <= self._clock.settled_s:
            self.read()
        items = self._filed(key)
        items.append(item)
        wait = self._waits.get(key)
        if wait is None:
            return
        missing = wait.needed - len(items)
        if missing <= 0:
            self._wake(key)
        elif missing < self._enough:
            self._await(missing)

    def _filed(self, key: Hashable) -> list[Any]:
        """What has come under a key, to add to."""
        if self._items is _NO_ITEMS:
            self._items = {}
        return self._items.setdefault(key, [])

    def put_all(self, key: Hashable, items: Sequence[Any]) -> None:
        """Adds items that came one after the other; what comes after the last one expected waits for the next time."""
        wait = self._waits.get(key)
        if wait is not None:
            missing = wait.needed - len(self._items.get(key, ()))
            if 0 < missing <= len(items):
                self._filed(key).extend(items[: missing - 1])
                self.put(key, items[missing - 1])
                items = items[missing:]
        if items:
            self._filed(key).extend(items[:-1])
            self.put(key, items[-1])

    def expect(self, key: Hashable, count: int, deadline_s: float | None = None) -> simpy.Event:
        """An event that yields the list of items under `key`: `count` of them, or fewer at the deadline."""
        if self._unread or self._soonest_s <= self._clock.settled_s:
            self.read()
        event, number = self._clock.signal(), 0
        missing = count - len(self._items.get(key, ()))
        if missing > 0 and deadline_s is not None:
            number = self._clock.call_by(deadline_s, self._node, self._pass)
        self._waits[key] = Wait(count, event, number)
        if missing <= 0:
            self._wake(key)
        elif missing < self._enough:
            self._await(missing)
        return event

    def promise(self, key: Hashable, item: Any) -> simpy.Event:
        """What tells whoever waits for one item under a key; the caller lets it happen when that item comes."""
        _, event, number = self._waits.pop(key)
        if number:
            self._clock.call_off(number)
        self._enough = _NEVER if not self._waits else self._enough
        event._ok, event._value = True, [item]
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

    def clear(self, round_number: int, kinds: Sequence[str]) -> None:
        """Drops what came under the keys (kind, round)."""
        self.read()
        for key in [(kind, round_number) for kind in kinds]:
            self._items.pop(key, None)

    def forget(self, key: Hashable) -> None:
        """Drops what came under a key, and a wait for it."""
        self.read()
        self._items.pop(key, None)
        wait = self._waits.pop(key, None)
        if wait is not None and wait.number:
            self._clock.call_off(wait.number)

    def close(self) -> None:
        """Nobody reads it any more: no wait has a deadline."""
        for wait in self._waits.values():
            if wait.number:
                self._clock.call_off(wait.number)

    def _wake(self, key: Hashable) -> None:
        _, event, number = self._waits.pop(key)
        if number:
            self._clock.call_off(number)
        self._enough = _NEVER if not self._waits else self._enough
        self._clock.trigger(event, self._items.pop(key, []), Rank.START, self._node)

    def _pass(self, number: int) -> None:
        """The deadline of a wait has come."""
        self.read()
        for key in [key for key, wait in self._waits.items() if wait.number == number]:
            self._wake(key)
