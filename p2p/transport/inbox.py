"""A node's inbox: opened messages by key, and the one thing its process waits for.

A process states how many items of a key it expects and until when, and goes on once: when the last of them has
arrived, or at the deadline with those that have. An item that arrives exactly at the deadline counts. Messages lie
unopened in the core until then, or until the inbox is read for another reason; a refused one does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from p2p.clock import Signal
from p2p.transport.messages import Delivery, topic_code

if TYPE_CHECKING:
    from p2p.transport.network import Network

Open = Callable[[Sequence[Delivery]], None]
_NO_ITEMS: Mapping[Hashable, list[Any]] = MappingProxyType({})  # shared by the many inboxes that hold nothing
_NOT_WAITING = object()


class Inbox:
    """Items by key. One process reads it; the network fills it.

    Args:
        open_deliveries: opens messages in their order and puts the accepted ones in.
    """

    __slots__ = ("_event", "_items", "_key", "_needed", "_network", "_node", "_open", "_reading")

    def __init__(self, network: Network, node: int, open_deliveries: Open) -> None:
        self._network, self._node, self._open = network, node, open_deliveries
        self._items = _NO_ITEMS
        self._key: Hashable = _NOT_WAITING
        self._needed = 0
        self._event: Any = None
        self._reading = False

    def expect(self, key: Hashable, count: int, deadline_s: float | None = None) -> simpy.Event:
        """An event that yields the list of items under `key`: `count` of them, or fewer at the deadline."""
        self.read()
        self._key, self._needed, self._event = key, count, Signal()
        missing = count - len(self._items.get(key, ()))
        self._network.expect(self._node, *topic_code(key), missing, np.inf if deadline_s is None else deadline_s)
        return self._event

    @property
    def holds_items(self) -> bool:
        """Whether opened messages lie here."""
        return bool(self._items)

    def sleep(self, until_s: float) -> simpy.Event:
        """An event that happens at an instant, as a start of the node."""
        self._key, self._event = _NOT_WAITING, Signal()
        self._network.sleep(self._node, until_s)
        return self._event

    def read(self) -> None:
        """Opens what has arrived; a wait goes on with what is still missing."""
        if self._network.inbox_counts[self._node]:
            self._drain()
            self._go_on_waiting()

    def wake(self, due: bool) -> None:
        """The core says that enough has arrived, or that the time has come (`due`)."""
        if self._event is None:
            return
        if self._key is _NOT_WAITING:
            self._fire(None)
            return
        if self._network.inbox_counts[self._node]:
            self._drain()
        items = self._items.get(self._key, [])
        if len(items) >= self._needed or due:
            self._hand_over(items, due)
        else:
            self._go_on_waiting()

    def _drain(self) -> None:
        self._reading = True
        self._open(self._network.take(self._node))
        self._reading = False

    def _go_on_waiting(self) -> None:
        if self._key is _NOT_WAITING:
            return
        missing = self._needed - len(self._items.get(self._key, ()))
        if missing > 0:
            self._network.wait_on(self._node, *topic_code(self._key), missing)
        else:
            self._network.ask_wake(self._node)

    def _hand_over(self, items: list[Any], due: bool) -> None:
        key, self._key = self._key, _NOT_WAITING
        # Items beyond those expected stay for the next time, except at a deadline.
        if due or len(items) <= self._needed:
            if items:
                del self._items[key]  # type: ignore[attr-defined]
        else:
            items, self._items[key] = items[: self._needed], items[self._needed :]  # type: ignore[index]
        self._fire(items)

    def _fire(self, value: Any) -> None:
        event, self._event = self._event, None
        event._value = value
        callbacks, event.callbacks = event.callbacks, None
        for callback in callbacks:
            callback(event)

    def put(self, key: Hashable, item: Any) -> None:
        """Adds an item; it counts for a wait as if it had arrived."""
        self._filed(key).append(item)
        if key == self._key and not self._reading:
            self._go_on_waiting()

    def put_all(self, key: Hashable, items: Sequence[Any]) -> None:
        """Adds items that came one after the other."""
        if items:
            self._filed(key).extend(items[:-1])
            self.put(key, items[-1])

    def _filed(self, key: Hashable) -> list[Any]:
        if not isinstance(self._items, dict):
            self._items = {}
        return self._items.setdefault(key, [])

    def take(self, key: Hashable) -> list[Any]:
        """Removes and returns the items under a key."""
        self.read()
        return self._items.pop(key, []) if isinstance(self._items, dict) else []

    def peek(self, key: Hashable) -> list[Any]:
        """The items under a key."""
        self.read()
        return self._items.get(key, [])

    def wake_if_waiting(self, *keys: Hashable) -> None:
        """Wakes the process, with what has arrived, if it waits for one of these keys."""
        if self._key in keys:
            self._network.ask_wake(self._node, due=True)

    def forget(self, key: Hashable) -> None:
        """Drops the items under a key, and a wait for it."""
        self.take(key)
        if self._key == key:
            self.close()

    def clear(self, round_number: int, kinds: Sequence[str]) -> None:
        """Drops the items under the keys (kind, round)."""
        self.read()
        if isinstance(self._items, dict):
            for kind in kinds:
                self._items.pop((kind, round_number), None)

    def close(self) -> None:
        """Calls off the wait; its event never happens."""
        self._key, self._event = _NOT_WAITING, None
        self._network.call_off(self._node)
