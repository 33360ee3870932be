"""Simulated time: SimPy's clock with a fixed order of simultaneous events, and a hook for the network's events.

At one instant faults come first, then arrivals, deadlines and starts; within each, nodes by number. SimPy breaks ties
by an integer priority and then by order of scheduling, so rank and node form the priority. The network keeps its
own events, the vast majority, in its event core; the clock lets it work up to SimPy's next event.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import IntEnum
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import simpy

RANK_SHIFT = 40
LAST = (1 << RANK_SHIFT) - 1
"""Sorts after all nodes of its rank."""


class Rank(IntEnum):
    """The order of events at one instant. SimPy's own priorities (0 and 1) come first: they mean "within this step".

    Ranks 0 to 2 are the network's: bytes that have left by an instant have left before anything else happens in it.
    """

    FAULT = 3
    ARRIVAL = 4
    DEADLINE = 5
    START = 6


_FIRST_KEY = Rank.FAULT << RANK_SHIFT


class EventCore(Protocol):
    """A source of events outside SimPy's queue."""

    next_s: float
    """A lower bound on the time of the next event; minus infinity if unknown."""

    def work(self, until_s: float, until_key: int) -> bool:
        """Handles events up to an instant and key; returns True if it stopped early because a process resumed."""


class Signal:
    """A minimal event for a process to wait for: SimPy's interface, without a dictionary per object."""

    __slots__ = ("_ok", "_value", "callbacks")

    def __init__(self, value: Any = None) -> None:
        self._ok, self._value = True, value
        self.callbacks: list[Callable[[Any], None]] | None = []

    @property
    def value(self) -> Any:
        """The value that the waiting process receives."""
        return self._value


class _NoEvents:
    """The event source of a clock without a network."""

    next_s = np.inf

    def work(self, until_s: float, until_key: int) -> bool:
        """Does nothing."""
        return False


class NodeProcess(simpy.Process):
    """A process that begins at once, in the middle of an event, instead of by an event of its own."""

    def __init__(self, env: simpy.Environment, generator: Generator[simpy.Event, Any, Any]) -> None:
        # As SimPy's, but for the event: a large run has as many of them as processes.
        self.env, self.callbacks, self._generator = env, [], generator
        self._resume(cast(simpy.Event, Signal()))


class Clock(simpy.Environment):
    """A SimPy environment that also schedules at absolute times, so that equal instants are equal to the bit.

    Attributes:
        core: the network's events
        stopping: set from outside to stop the run before its next event, with KeyboardInterrupt
    """

    if not TYPE_CHECKING:
        # The same as SimPy's, without a Python call: processes read it very often.
        now = property(attrgetter("_now"), doc="Simulated time.")

    def __init__(self, initial_time: float = 0.0) -> None:
        super().__init__(initial_time)
        self.core: EventCore = _NoEvents()
        self.stopping = False

    def step(self) -> None:
        """Lets the network work up to SimPy's next event, then handles that event."""
        queue, core = self._queue, self.core
        while True:
            if self.stopping:
                raise KeyboardInterrupt
            until_s, key = (queue[0][0], queue[0][1]) if queue else (np.inf, 0)
            # SimPy's own priorities mean "within this step": they precede everything else of the instant.
            if until_s == self._now and (core.next_s > until_s or key < _FIRST_KEY):
                break
            # A resumed process may have queued an earlier event, so the head is read again.
            if not core.work(until_s, key):
                break
        if not queue:
            raise simpy.core.EmptySchedule
        event = queue[0][3]
        if not isinstance(event, Signal):
            super().step()
            return
        # SimPy's own step, reduced to an event that cannot fail and ends no run.
        self._now = heappop(queue)[0]
        callbacks, event.callbacks = event.callbacks, None
        for callback in callbacks or ():
            callback(event)

    def start(self, generator: Generator[simpy.Event, Any, Any]) -> simpy.Process:
        """Starts a process and runs it up to its first wait."""
        return NodeProcess(self, generator)

    def first_event(self) -> object:
        """Returns the entry of SimPy's next event; None without one."""
        return self._queue[0] if self._queue else None

    def move_to(self, time_s: float) -> None:
        """Sets the time to that of a network event between two SimPy events."""
        self._now = time_s

    def at(self, time_s: float, rank: Rank, node: int = 0, value: Any = None) -> simpy.Event:
        """Returns an event at `time_s` (now, if that has passed), ordered by rank and node within the instant."""
        event = Signal(value)
        # `Environment.schedule` takes a delay, and now + (time - now) may differ from time by rounding.
        when_s = time_s if time_s > self._now else self._now
        heappush(self._queue, (when_s, (rank << RANK_SHIFT) + node, next(self._eid), event))  # type: ignore[misc]
        return cast(simpy.Event, event)

    def call_at(self, time_s: float, rank: Rank, node: int, function: Callable[[], Any]) -> simpy.Event:
        """Calls `function` at `time_s`, without a process."""
        event = self.at(time_s, rank, node)
        callbacks = event.callbacks
        if callbacks is not None:
            callbacks.append(lambda _: function())
        return event

    def sleep(self, delay_s: float, node: int) -> simpy.Event:
        """Returns an event `delay_s` from now, with the rank of a start of this node."""
        return self.at(self._now + delay_s, Rank.START, node)
