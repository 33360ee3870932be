"""Simulated time keeps a fixed order at one instant."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from typing import Any

import numpy as np
import simpy
from hypothesis import given
from hypothesis import strategies as st

from p2p.clock import Clock, Rank, once_more


@given(st.permutations(list(itertools.product(Rank, range(3)))))
def test_one_instant_is_worked_off_by_rank_then_node(entries: list[tuple[Rank, int]]) -> None:
    """Faults, arrivals, deadlines, starts; within each by node, whatever the order of scheduling."""
    clock, seen = Clock(), []
    for rank, node in entries:
        clock.call_at(2.0, rank, node, lambda entry=(rank, node): seen.append(entry))  # type: ignore[misc]
    clock.run()
    assert seen == sorted(entries)


def test_equal_rank_and_node_keep_the_order_of_scheduling() -> None:
    """The first to be scheduled is the first to happen."""
    clock, seen = Clock(), []
    for number in range(5):
        clock.call_at(1.0, Rank.START, 0, lambda number=number: seen.append(number))  # type: ignore[misc]
    clock.run()
    assert seen == [0, 1, 2, 3, 4]


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_absolute_times_are_kept_to_the_bit(first_s: float, second_s: float) -> None:
    """`now + (t - now)` may differ from t; `at` never does."""
    clock, seen = Clock(), []
    first_s, second_s = sorted((first_s, second_s))

    def go_on() -> None:
        clock.call_at(second_s, Rank.START, 0, lambda: seen.append(clock.now))

    clock.call_at(first_s, Rank.START, 0, go_on)
    clock.run()
    assert seen == [second_s]


def test_the_past_is_now() -> None:
    """An event for a time that has passed happens at once, in its place of the order."""
    clock = Clock(5.0)
    event = clock.at(1.0, Rank.START, value="late")
    clock.run()
    assert (clock.now, event.value) == (5.0, "late")


def test_processes_sleep_and_are_woken_in_order() -> None:
    """A sleep ends as a start of its node; a triggered event takes its place in the instant."""
    clock, seen = Clock(), []
    gate = simpy.Event(clock)

    def sleeper(node: int, delay_s: float) -> Generator[simpy.Event, Any, None]:
        yield clock.sleep(delay_s, node)
        seen.append((clock.now, node))

    def waiter() -> Generator[simpy.Event, Any, None]:
        value = yield gate
        seen.append((clock.now, value))

    for node in (2, 0, 1):
        clock.process(sleeper(node, 1.0))
    clock.process(waiter())
    clock.call_at(1.0, Rank.DEADLINE, 9, lambda: clock.trigger(gate, "gate", Rank.START, 1))
    clock.run()
    # Node 1's sleep was scheduled at 0, the gate's start only at 1: first come, first served.
    assert seen == [(1.0, 0), (1.0, 1), (1.0, "gate"), (1.0, 2)]


def test_the_alarm_comes_before_other_arrivals() -> None:
    """After faults of its instant, before arrivals, deadlines and starts; it may set itself again."""
    clock, told = Clock(), list[tuple[float, str]]()

    def on_alarm() -> None:
        told.append((clock.now, "alarm"))
        clock.alarm_s = 3.0 if clock.now < 3 else float("inf")

    clock.on_alarm, clock.alarm_s = on_alarm, 2.0
    for rank in Rank:
        clock.call_at(2.0, rank, 1, lambda rank=rank: told.append((clock.now, rank.name)))  # type: ignore[misc]
    clock.run()
    assert told == [
        (2.0, "FAULT"),
        (2.0, "alarm"),
        (2.0, "ARRIVAL"),
        (2.0, "DEADLINE"),
        (2.0, "START"),
        (3.0, "alarm"),
    ]


def test_many_events_take_their_places_among_the_others() -> None:
    """By time, then rank and node, whether they were scheduled one by one or together."""
    clock, seen = Clock(), []
    nodes = np.array([4, 2, 3, 1])
    events = [clock.signal() for _ in nodes]
    for node, event in zip(nodes.tolist(), events, strict=True):
        callbacks = event.callbacks
        assert callbacks is not None
        callbacks.append(lambda _, node=node: seen.append((clock.now, node)))  # type: ignore[misc]
    clock.at_each(np.array([2.0, 1.0, 1.0, 2.0]), nodes, events)
    for node in (0, 2, 5):
        clock.call_at(1.0, Rank.START, node, lambda node=node: seen.append((clock.now, node)))  # type: ignore[misc]
    clock.call_at(2.0, Rank.DEADLINE, 9, lambda: seen.append((clock.now, 9)))
    assert not clock.nothing_ahead
    clock.run()
    assert seen == [(1.0, 0), (1.0, 2), (1.0, 2), (1.0, 3), (1.0, 5), (2.0, 9), (2.0, 1), (2.0, 4)]
    assert clock.nothing_ahead


def test_a_process_that_begins_at_once_may_wait_for_one_event_twice() -> None:
    """Its first step is done before anything else; an event that comes once more wakes it once more."""
    clock, seen = Clock(), []
    cue = clock.signal()

    def life() -> Generator[simpy.Event, Any, None]:
        seen.append(("begins", clock.now))
        yield cue
        seen.append(("goes on", clock.now))
        yield once_more(cue)
        seen.append(("ends", clock.now))

    process = clock.begin(life())
    assert seen == [("begins", 0.0)]
    clock.at_each(np.array([3.0, 5.0]), np.array([1, 1]), [cue, cue])
    clock.run()
    assert seen == [("begins", 0.0), ("goes on", 3.0), ("ends", 5.0)]
    assert not process.is_alive


def test_a_deadline_that_is_called_off_lies_not_ahead() -> None:
    """And one that is not does."""
    clock = Clock()
    number = clock.call_by(3.0, 1, lambda _: None)
    assert not clock.nothing_ahead
    clock.call_off(number)
    assert clock.nothing_ahead
