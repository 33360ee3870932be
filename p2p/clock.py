"""Simulated time: SimPy's clock with a fixed order for things that happen at one instant.

At one instant faults come first, then arrivals, deadlines and starts; within each, nodes by their number. SimPy
breaks ties by an integer priority and then by order of scheduling, so the rank and the node make up the priority.
Arrivals and deadlines, of which there are most, are kept beside SimPy's queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import simpy
from numpy.typing import NDArray

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
_AFTER_DEADLINES = Rank.START << _RANK_SHIFT
_WITHIN_A_STEP = 1  # SimPy's own priorities, up to this one
_MANY_MET = 10_000
_TURNS_AT_ONCE = 4096
_NOTHING = (np.inf, 0, 0, None)


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


def once_more(event: simpy.Event) -> simpy.Event:
    """An event of `signal` that has happened, and is going to once more."""
    event.callbacks = []
    return event


class Clock(simpy.Environment):
    """A SimPy environment that also schedules at absolute times, so that equal instants are equal to the bit.

    One function may have an alarm: it is called at `alarm_s`, as the first of the arrivals, and no event is made for
    it. The network has it, for it would need one event for every message; once called, it may move on by itself.

    Attributes:
        rings: what happens as an arrival without being an event: whoever waits for messages is rung when they are there
        deadlines: what happens as a deadline without being an event; those that were met are dropped in bulk
        settled_s: what arrives up to this instant has arrived; or does so just now, if things are `arriving`
        arriving: whether the alarm or a ring is being worked off
    """

    if not TYPE_CHECKING:
        # The same as SimPy's, without a call of Python: everyone asks all the time.
        now = property(attrgetter("_now"), doc="Simulated time.")

    def __init__(self, initial_time: float = 0.0) -> None:
        super().__init__(initial_time)
        self.alarm_s = np.inf
        self.on_alarm: Callable[[], None] = lambda: None
        self.rings = Agenda()
        self.settled_s, self.arriving = -np.inf, False
        self.deadlines = Agenda()
        self._functions: dict[int, Callable[[int], Any]] = {}
        self._last_deadline = self._met = 0
        self._on_deadline = self._pass_deadline
        self._turns: list[tuple[float, int, int, Any]] = []
        self._later: Iterator[list[tuple[float, int, int, Any]]] = iter(())

    def step(self) -> None:
        """Does what comes next: the alarm or a ring, a deadline, or the next event."""
        queue, alarm_s, ring_s, deadline_s = self._queue, self.alarm_s, self.rings.next_s, self.deadlines.next_s
        arrives_s = alarm_s if alarm_s <= ring_s else ring_s
        turns, head = self._turns, queue[0] if queue else _NOTHING
        in_turn = bool(turns) and turns[-1] < head
        time_s, priority, _, event = turns[-1] if in_turn else head
        first = arrives_s < time_s or (arrives_s == time_s < np.inf and priority > _ALARM)
        if first and arrives_s <= deadline_s:
            self._let_arrive(arrives_s, alarm_s <= ring_s)
            return
        if deadline_s < time_s or (deadline_s == time_s < np.inf and priority >= _AFTER_DEADLINES):
            self._now = self.settled_s = deadline_s
            self.deadlines.fire()
            return
        if event is None:
            raise simpy.core.EmptySchedule
        if priority >= _AFTER_DEADLINES:
            self.settled_s = time_s
        elif priority > _WITHIN_A_STEP or time_s > self._now:
            self.settled_s = max(self.settled_s, math.nextafter(time_s, -math.inf))
        if not isinstance(event, Signal):
            super().step()
            return
        # What SimPy does, for an event that cannot fail and ends no run.
        if not in_turn:
            heappop(queue)
        elif turns.pop() and not turns:
            self._turns = next(self._later, [])
        self._now = time_s
        callbacks, event.callbacks = event.callbacks, None
        for callback in callbacks or ():
            callback(event)

    def _let_arrive(self, time_s: float, by_alarm: bool) -> None:
        self._now = self.settled_s = time_s if time_s > self._now else self._now
        self.arriving = True
        if by_alarm:
            self.alarm_s = np.inf
            self.on_alarm()
        else:
            self.rings.fire()
        self.arriving = False

    @property
    def nothing_ahead(self) -> bool:
        """Whether nothing is going to happen, except what whoever asks does now."""
        ahead = self._queue or self._turns or self._functions
        return not ahead and self.alarm_s == self.rings.next_s == np.inf

    def free_until_s(self) -> float:
        """Up to and including this instant, arrivals come before everything else that is going to happen."""
        deadline_s = self.deadlines.next_s
        if not self._queue and not self._turns:
            return deadline_s
        first_s, priority = min([*self._queue[:1], *self._turns[-1:]])[:2]
        free_s = first_s if priority > _ALARM else math.nextafter(first_s, -math.inf)
        return free_s if free_s < deadline_s else deadline_s

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

    def at_each(self, times_s: NDArray[np.float64], nodes: NDArray[np.int64], events: Sequence[simpy.Event]) -> None:
        """Lets many events of `signal` happen, each as a start of its node; they are sorted once, not one by one."""
        before = [*self._turns, *(turn for some in self._later for turn in some)]
        self._later = self._in_turn(times_s, nodes, events)
        if before:
            self._turns = sorted([*before, *(turn for some in self._later for turn in some)], reverse=True)
        else:
            self._turns = next(self._later, [])

    def _in_turn(
        self, times_s: NDArray[np.float64], nodes: NDArray[np.int64], events: Sequence[simpy.Event]
    ) -> Iterator[list[tuple[float, int, int, Any]]]:
        """The events as entries of the queue, in portions: what comes first is in the first one, at its end."""
        order = np.lexsort([nodes, times_s])
        for start in range(0, len(order), _TURNS_AT_ONCE):
            portion = order[start : start + _TURNS_AT_ONCE][::-1]
            priorities = (Rank.START << _RANK_SHIFT) + nodes[portion]
            chosen = [events[index] for index in portion.tolist()]
            yield list(zip(times_s[portion].tolist(), priorities.tolist(), self._eid, chosen, strict=False))

    def begin(self, generator: Generator[simpy.Event, Any, None]) -> simpy.Process:
        """A process whose first step is done at once, and not as an event of this instant."""
        process = simpy.Process.__new__(simpy.Process)
        process.env, process.callbacks, process._generator = self, [], generator
        process._resume(cast(simpy.Event, Signal()))
        return process

    def call_at(self, time_s: float, rank: Rank, node: int, function: Callable[[], Any]) -> simpy.Event:
        """Calls `function` at `time_s`; no process is needed for it."""
        event = self.at(time_s, rank, node)
        callbacks = event.callbacks
        if callbacks is not None:
            callbacks.append(lambda _: function())
        return event

    def call_by(self, deadline_s: float, node: int, function: Callable[[int], Any]) -> int:
        """Calls a function with the number returned here, as a deadline of a node; unless it is called off."""
        self._last_deadline += 1
        self._functions[self._last_deadline] = function
        self.deadlines.add(max(deadline_s, self._now), node, self._on_deadline, self._last_deadline)
        return self._last_deadline

    def call_off(self, number: int) -> None:
        """A deadline is met: nothing will be called."""
        if self._functions.pop(number, None) is not None:
            self._met += 1
            if self._met > _MANY_MET and self._met > len(self._functions):
                self._met = 0
                self.deadlines.keep(self._functions.__contains__)

    def _pass_deadline(self, number: int) -> None:
        function = self._functions.pop(number, None)
        if function is not None:
            function(number)

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
