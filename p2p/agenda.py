"""What is going to happen, by time. Many things that come in together are sorted once, not one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

import numpy as np

ORDER_OF_ENTRY = 1 << 100
"""What is given an order below this happens, at one instant and node, before what has none."""
_FEW = 64
_MOST_RUNS = 8

Entry = tuple[float, int, int, Callable[[Any], Any], Any]


class Agenda:
    """Entries by time, then node, then order: each a function to call, and what to call it with.

    Few new entries go to a heap. Many are sorted into a run, whose next entry is at its end: a heap of a million is
    far slower than a million entries in a row.

    Attributes:
        next_s: when the next entry is due; infinity if there is none
    """

    __slots__ = ("_fresh", "_heap", "_order", "_runs", "next_s")

    def __init__(self) -> None:
        self.next_s = np.inf
        self._fresh: list[Entry] = []
        self._heap: list[Entry] = []
        self._runs: list[list[Entry]] = []
        self._order = count(ORDER_OF_ENTRY)

    def add(self, time_s: float, node: int, action: Callable[[Any], Any], what: Any, order: int | None = None) -> None:
        """Lets `action(what)` happen, at its place in the order of entry or in an order below it."""
        self._fresh.append((time_s, node, next(self._order) if order is None else order, action, what))
        if time_s < self.next_s:
            self.next_s = time_s

    def add_all(
        self,
        times_s: Sequence[float],
        nodes: Sequence[int],
        orders: Sequence[int],
        action: Callable[[Any], Any],
        whats: Sequence[Any],
    ) -> None:
        """The same for many, each with an order of its own."""
        if len(times_s):
            self._fresh += zip(times_s, nodes, orders, [action] * len(times_s), whats, strict=True)
            self.next_s = min(self.next_s, min(times_s))

    def keep(self, wanted: Callable[[Any], bool]) -> None:
        """Drops what need not happen any more: whatever is to be called with something that is not wanted."""
        self._fresh = [entry for entry in self._fresh if wanted(entry[4])]
        self._heap = [entry for entry in self._heap if wanted(entry[4])]
        heapify(self._heap)
        runs = [[entry for entry in run if wanted(entry[4])] for run in self._runs]
        self._runs = [run for run in runs if run]
        self.next_s = min([entry[0] for entry in self._fresh], default=np.inf)
        self._look_ahead(self.next_s)

    def fire(self) -> None:
        """Does what comes next."""
        if self._fresh:
            self._take_in()
        best: list[Entry] | None = None
        for run in self._runs:
            if best is None or run[-1] < best[-1]:
                best = run
        heap = self._heap
        if best is None or (heap and heap[0] < best[-1]):
            entry = heappop(heap)
        else:
            entry = best.pop()
            if not best:
                self._runs.remove(best)
        self._look_ahead(np.inf)
        entry[3](entry[4])

    def _look_ahead(self, soonest_s: float) -> None:
        """Finds what is due next in heap and runs, unless something is due sooner."""
        heap = self._heap
        if heap and heap[0][0] < soonest_s:
            soonest_s = heap[0][0]
        for run in self._runs:
            if run[-1][0] < soonest_s:
                soonest_s = run[-1][0]
        self.next_s = soonest_s

    def _take_in(self) -> None:
        fresh, self._fresh = self._fresh, []
        if len(fresh) < _FEW:
            for entry in fresh:
                heappush(self._heap, entry)
            return
        if len(self._runs) >= _MOST_RUNS:
            fresh += [entry for run in self._runs for entry in run]
            self._runs = []
        fresh.sort(reverse=True)
        self._runs.append(fresh)
