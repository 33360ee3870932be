"""A node's inbox: opened messages by key, and the single wait of its process.

A process states how many items of a key it expects and until when. It is woken once: when the last of them has
arrived, or at the deadline with those that have. An item that arrives exactly at the deadline counts. Delivery is
deferred: messages stay unopened in the core until then, or until the inbox is read for another reason; a rejected
message does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import simpy

from p2p.transport.messages import Delivery, topic_code

if TYPE_CHECKING:
    from p2p.transport.network import Network

Open = Callable[[Sequence[Delivery]], None]
_NO_ITEMS: Mapping[Hashable, list[Any]] = MappingProxyType({})  # shared by all empty inboxes
_NOT_WAITING = object()
_NEVER_S = float("inf")


class Inbox:
    """Items by key; filled by the network and read by one process.

    It is itself the event that its process waits for, again and again: an event of its own for every wait would be
    most of what a wait costs.

    Args:
        open_deliveries: opens messages in order and puts the accepted ones into this inbox.

    Attributes:
        callbacks: as of a SimPy event: what resumes the process, while it waits
    """

    __slots__ = (
        *("_awaited", "_items", "_key", "_needed", "_network", "_node", "_ok", "_open", "_reading", "_value"),
        "callbacks",
    )

    def __init__(self, network: Network, node: int, open_deliveries: Open) -> None:
        self._network, self._node, self._open = network, node, open_deliveries
        self._items = _NO_ITEMS
        self._key: Hashable = _NOT_WAITING
        self._awaited: list[Any] = []  # the items under the key that the process waits for
        self._needed = 0
        self._reading = False
        self._ok = True
        self._value: list[Any] | None = None
        self.callbacks: list[Callable[[Any], None]] = []

    def expect(self, key: Hashable, count: int, deadline_s: float | None = None) -> simpy.Event:
        """Returns an event that yields the items under `key`: `count` of them, or fewer at the deadline."""
        if self._awaited:
            self._file_awaited()
        network, node = self._network, self._node
        # Reading first: items that have arrived count towards the wait, and the core counts only new ones.
        self._awaited = awaited = self.take(key) if self._items or network.inbox_counts[node] else []
        self._key, self._needed = key, count
        network.expect(node, *topic_code(key), count - len(awaited), _NEVER_S if deadline_s is None else deadline_s)
        return self  # type: ignore[return-value]  # a cast would be a call

    def sleep(self, until_s: float) -> simpy.Event:
        """Returns an event at an instant, with the rank of a start of the node."""
        self._key = _NOT_WAITING
        self._network.sleep(self._node, until_s)
        return self  # type: ignore[return-value]

    def read(self) -> None:
        """Opens arrived messages; a wait continues with the number still missing."""
        if self._network.inbox_counts[self._node]:
            self._read(self._network.take(self._node))
            self._continue_wait()

    def wake(self, due: bool, deliveries: Sequence[Delivery]) -> None:
        """Handles the core's wake-up: enough messages have arrived, or the deadline has come (`due`).

        Args:
            deliveries: what the core has taken from the inbox.
        """
        items: list[Any] | None = None  # what a sleep yields
        if self._key is not _NOT_WAITING:
            if not deliveries and self._network.inbox_counts[self._node]:
                deliveries = self._network.take(self._node)
            if deliveries:
                self._read(deliveries)
            # The core counts messages before they are opened; rejected ones leave the wait incomplete.
            if not due and len(self._awaited) < self._needed:
                self._continue_wait()
                return
            items, self._awaited = self._awaited, []
            key, self._key = self._key, _NOT_WAITING
            # Surplus items stay for the next wait, except at a deadline, which takes all.
            if not due and len(items) > self._needed:
                self._filed(key).extend(items[self._needed :])
                items = items[: self._needed]
        # Without a callback the wait was closed.
        if self.callbacks:
            resume = self.callbacks.pop()
            self._value = items
            resume(self)
            self._value = None

    def _read(self, deliveries: Sequence[Delivery]) -> None:
        # While reading, `put` must not update the wait: that happens once, after the last message.
        self._reading = True
        self._open(deliveries)
        self._reading = False

    def _continue_wait(self) -> None:
        if self._key is _NOT_WAITING:
            return
        missing = self._needed - len(self._awaited)
        if missing > 0:
            self._network.wait_on(self._node, *topic_code(self._key), missing)
        else:
            self._network.ask_wake(self._node)

    def put(self, key: Hashable, item: Any) -> None:
        """Adds an item, which counts towards a wait like an arrival."""
        self.put_all(key, (item,))

    def put_all(self, key: Hashable, items: Sequence[Any]) -> None:
        """Adds consecutive items."""
        if key != self._key:
            self._filed(key).extend(items)
            return
        self._awaited += items
        if not self._reading:
            self._continue_wait()

    def _filed(self, key: Hashable) -> list[Any]:
        if not isinstance(self._items, dict):
            self._items = {}
        return self._items.setdefault(key, [])

    def _file_awaited(self) -> None:
        """Keeps the items of a wait that was abandoned: its process was stopped, and another one continues."""
        items, self._awaited = self._awaited, []
        self._filed(self._key).extend(items)

    def take(self, key: Hashable) -> list[Any]:
        """Removes and returns the items under a key."""
        self.read()
        if self._awaited and key == self._key:
            items, self._awaited = self._awaited, []
            return items
        return self._items.pop(key, []) if self._items else []  # type: ignore[attr-defined]

    @property
    def is_empty(self) -> bool:
        """Whether it holds no opened items."""
        return not self._items and not self._awaited

    def has(self, key: Hashable) -> bool:
        """Returns whether there are items under a key."""
        self.read()
        return key in self._items or (key == self._key and bool(self._awaited))

    def awaits(self, key: Hashable) -> bool:
        """Returns whether the process waits for items under a key."""
        return key == self._key

    def wake_if_waiting(self, *keys: Hashable) -> None:
        """Wakes the process with what has arrived, if it waits for one of these keys."""
        if self._key in keys:
            self._network.ask_wake(self._node, due=True)

    def forget(self, *keys: Hashable) -> None:
        """Drops the items under these keys, and a wait for one of them."""
        self.read()
        if self._items or self._awaited:
            for key in keys:
                self.take(key)
        if self._key in keys:
            self.close()

    def clear(self, round_number: int, kinds: Sequence[str]) -> None:
        """Drops the items under the keys (kind, round)."""
        self.read()
        if self._items or self._awaited:
            for kind in kinds:
                self.take((kind, round_number))

    def close(self) -> None:
        """Cancels the wait; a process that waits is not resumed."""
        if self._awaited:
            self._file_awaited()
        self._key = _NOT_WAITING
        self.callbacks.clear()
        self._network.call_off(self._node)
