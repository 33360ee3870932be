"""Simulated time keeps a fixed order at one instant."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from typing import Any

import simpy
from hypothesis import given
from hypothesis import strategies as st

from p2p.clock import Clock, Rank


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


def test_processes_sleep_and_go_on_in_the_order_of_nodes() -> None:
    """A sleep ends as a start of its node, whatever the order of scheduling."""
    clock, seen = Clock(), list[tuple[float, int]]()

    def sleeper(node: int, delay_s: float) -> Generator[simpy.Event, Any, None]:
        yield clock.sleep(delay_s, node)
        seen.append((clock.now, node))

    for node in (2, 0, 1):
        clock.process(sleeper(node, 1.0))
    clock.call_at(1.0, Rank.DEADLINE, 9, lambda: seen.append((clock.now, 9)))
    clock.run()
    assert seen == [(1.0, 9), (1.0, 0), (1.0, 1), (1.0, 2)]


def test_the_network_works_between_the_events_of_the_clock() -> None:
    """It is asked to go up to each event's instant and key; what it schedules meanwhile comes in its place."""
    clock, told = Clock(), list[tuple[float, str]]()

    class Core:
        """Has one event of its own, at 2 s after faults."""

        next_s = 2.0

        def work(self, until_s: float, until_key: int) -> bool:
            """Handles it once it is its turn."""
            if (self.next_s, Rank.ARRIVAL << 40) > (until_s, until_key):
                return False
            clock.move_to(self.next_s)
            told.append((clock.now, "network"))
            clock.call_at(clock.now, Rank.DEADLINE, 0, lambda: told.append((clock.now, "after")))
            self.next_s = float("inf")
            return True

    clock.core = Core()
    for time_s, rank in ((1.0, Rank.START), (2.0, Rank.FAULT), (2.0, Rank.START)):
        clock.call_at(time_s, rank, 1, lambda rank=rank: told.append((clock.now, rank.name)))  # type: ignore[misc]
    clock.run()
    assert told == [(1.0, "START"), (2.0, "FAULT"), (2.0, "network"), (2.0, "after"), (2.0, "START")]
