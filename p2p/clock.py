"""Simulated time: SimPy's clock with a fixed order for things that happen at one instant.

At one instant faults come first, then arrivals, deadlines and starts; within each, nodes by their number. SimPy
breaks ties by an integer priority and then by order of scheduling, so the rank and the node make up the priority.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any, cast

import numpy as np
import simpy

from p2p.agenda import Agenda


class Rank(IntEnum):
    """What comes first at one instant. SimPy's own priorities (0 and 1) stay below: they mean "within this step"."""

    FAULT = 1
    ARRIVAL = 2
    DEADLINE = 3
    START = 4


_RANK_SHIFT = 40
LAST = (1 << _RANK_SHIFT) - 1
"""Comes after all nodes of its rank."""


_ALARM = Rank.ARRIVAL << _RANK_SHIFT
_AFTER_ARRIVALS = Rank.DEADLINE << _RANK_SHIFT
_WITHIN_A_STEP = 1  # SimPy's own priorities, up to this one


class Signal:
    """What a process waits for: the part of a SimPy event that this needs, without a dictionary of its own."""

    __slots__ = ("_ok", "_value", "callbacks")

    def __init__(self, value: Any = None) -> None:
        self._ok, self._value = True, value
        self.callbacks: list[Callable[[Any], None]] | None = []

    @property
    def value(self) -> Any:
        """What whoever waits is given."""
        return self._value


class Clock(simpy.Environment):
    """A SimPy environment that also schedules at absolute times, so that equal instants are equal to the bit.

    One function may have an alarm: it is called at `alarm_s`, as the first of the arrivals, and no event is made for
    it. The network has it, for it would need one event for every message; once called, it may move on by itself.

    Attributes:
        rings: what happens as an arrival without being an event: whoever waits for messages is rung when they are there
        settled_s: what arrives up to this instant has arrived
    """

    # The same as SimPy's, without a call of Python: everyone asks all the time.
    now = property(attrgetter("_now"), doc="Simulated time.")

    def __init__(self, initial_time: float = 0.0) -> None:
        super().__init__(initial_time)
        self.alarm_s = np.inf
        self.on_alarm: Callable[[], None] = lambda: None
        self.rings = Agenda()
        self.settled_s = -np.inf
        self._deadlines: dict[float, dict[int, tuple[int, Callable[[int], Any]]]] = {}
        self._last_deadline = 0

    def step(self) -> None:
        """Does what comes next: the alarm, a ring, or the next event."""
        queue, rings = self._queue, self.rings
        alarm_s, ring_s = self.alarm_s, rings.next_s
        arrives_s = alarm_s if alarm_s <= ring_s else ring_s
        if not queue:
            if arrives_s == np.inf:
                raise simpy.core.EmptySchedule
            self._let_arrive(arrives_s, alarm_s <= ring_s)
            return
        time_s, priority, _, event = queue[0]
        if arrives_s < time_s or (arrives_s == time_s and priority > _ALARM):
            self._let_arrive(arrives_s, alarm_s <= ring_s)
            return
        if priority >= _AFTER_ARRIVALS:
            self.settled_s = time_s
        elif priority > _WITHIN_A_STEP or time_s > self._now:
            self.settled_s = math.nextafter(time_s, -math.inf)
        if type(event) is not Signal:
            super().step()
            return
        # What SimPy does, for an event that cannot fail and ends no run.
        heappop(queue)
        self._now = time_s
        callbacks, event.callbacks = event.callbacks, None
        for callback in callbacks or ():
            callback(event)

    def _let_arrive(self, time_s: float, by_alarm: bool) -> None:
        self._now = self.settled_s = time_s if time_s > self._now else self._now
        if by_alarm:
            self.alarm_s = np.inf
            self.on_alarm()
        else:
            self.rings.fire()

    def free_until_s(self) -> float:
        """Up to and including this instant, arrivals come before everything else that is going to happen."""
        queue = self._queue
        if not queue:
            return np.inf
        first_s, priority = queue[0][:2]
        return first_s if priority > _ALARM else math.nextafter(first_s, -math.inf)

    def move_to(self, time_s: float) -> None:
        """Lets time pass for whoever has the alarm, who may go on as far as `free_until_s`."""
        self._now = self.settled_s = time_s

    def at(self, time_s: float, rank: Rank, node: int = 0, value: Any = None) -> simpy.Event:
        """An event that happens at `time_s` (now, if that has passed) in its place of the instant's order."""
        event = Signal(value)
        self._push(event, time_s, rank, node)
        return cast(simpy.Event, event)

    def signal(self) -> simpy.Event:
        """An event for `trigger`. SimPy asks of it what `Signal` has."""
        return cast(simpy.Event, Signal())

    def call_at(self, time_s: float, rank: Rank, node: int, function: Callable[[], Any]) -> simpy.Event:
        """Calls `function` at `time_s`; no process is needed for it."""
        event = self.at(time_s, rank, node)
        callbacks = event.callbacks
        if callbacks is not None:
            callbacks.append(lambda _: function())
        return event

    def call_by(self, deadline_s: float, node: int, function: Callable[[int], Any]) -> int:
        """Calls a function with the number returned here, as a deadline of a node.

        Many nodes wait for the same instant: one event does for all.
        """
        waiting = self._deadlines.get(deadline_s)
        if waiting is None:
            waiting = self._deadlines[deadline_s] = {}
            self.call_at(deadline_s, Rank.DEADLINE, 0, partial(self._pass_deadline, deadline_s))
        self._last_deadline += 1
        waiting[self._last_deadline] = (node, function)
        return self._last_deadline

    def call_off(self, deadline_s: float, number: int) -> None:
        """A deadline is met: nothing will be called."""
        waiting = self._deadlines.get(deadline_s)
        if waiting is not None:
            waiting.pop(number, None)

    def _pass_deadline(self, deadline_s: float) -> None:
        waiting = self._deadlines[deadline_s]
        for number, (_, function) in sorted(waiting.items(), key=lambda item: item[1][0]):
            if number in waiting:  # not called off by one before
                function(number)
        del self._deadlines[deadline_s]

    def sleep(self, delay_s: float, node: int) -> simpy.Event:
        """A node's pause: it goes on as a start of its own."""
        return self.at(self.now + delay_s, Rank.START, node)

    def trigger(self, event: simpy.Event, value: Any, rank: Rank, node: int) -> None:
        """Fires a waiting event at this instant, in its place of the order rather than at once."""
        event._ok, event._value = True, value
        heappush(self._queue, (self._now, (rank << _RANK_SHIFT) + node, next(self._eid), event))  # type: ignore[misc]

    def _push(self, event: Signal, time_s: float, rank: Rank, node: int) -> None:
        # `Environment.schedule` takes a delay, and now + (time - now) is not always time: hence the queue itself.
        now_s = self._now
        priority = (rank << _RANK_SHIFT) + node
        when_s = time_s if time_s > now_s else now_s
        heappush(self._queue, (when_s, priority, next(self._eid), event))  # type: ignore[misc]
