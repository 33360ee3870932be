"""Simulated time: SimPy's clock with a fixed order for things that happen at one instant.

At one instant faults come first, then arrivals, deadlines and starts; within each, nodes by their number. SimPy
breaks ties by an integer priority and then by order of scheduling, so the rank and the node make up the priority.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from heapq import heappush
from typing import Any

import simpy


class Rank(IntEnum):
    """What comes first at one instant. SimPy's own priorities (0 and 1) stay below: they mean "within this step"."""

    FAULT = 1
    ARRIVAL = 2
    DEADLINE = 3
    START = 4


_RANK_SHIFT = 40
LAST = (1 << _RANK_SHIFT) - 1
"""Comes after all nodes of its rank."""


class Clock(simpy.Environment):
    """A SimPy environment that also schedules at absolute times, so that equal instants are equal to the bit."""

    def at(self, time_s: float, rank: Rank, node: int = 0, value: Any = None) -> simpy.Event:
        """An event that happens at `time_s` (now, if that has passed) in its place of the instant's order."""
        event = simpy.Event(self)
        event._ok = True
        event._value = value
        self._push(event, time_s, rank, node)
        return event

    def call_at(self, time_s: float, rank: Rank, node: int, function: Callable[[], Any]) -> simpy.Event:
        """Calls `function` at `time_s`; no process is needed for it."""
        event = self.at(time_s, rank, node)
        callbacks = event.callbacks
        if callbacks is not None:
            callbacks.append(lambda _: function())
        return event

    def sleep(self, delay_s: float, node: int) -> simpy.Event:
        """A node's pause: it goes on as a start of its own."""
        return self.at(self.now + delay_s, Rank.START, node)

    def trigger(self, event: simpy.Event, value: Any, rank: Rank, node: int) -> None:
        """Fires a waiting event at this instant, in its place of the order rather than at once."""
        event._ok = True
        event._value = value
        self._push(event, self.now, rank, node)

    def _push(self, event: simpy.Event, time_s: float, rank: Rank, node: int) -> None:
        # `Environment.schedule` takes a delay, and now + (time - now) is not always time: hence the queue itself.
        priority = (rank << _RANK_SHIFT) + node
        heappush(self._queue, (max(time_s, self.now), priority, next(self._eid), event))  # type: ignore[misc]
