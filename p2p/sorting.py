"""Sorts the messages of waves by receiver: not as they are handed over, but when the first of them will arrive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count, repeat

import numpy as np

from p2p.books import Books
from p2p.clock import Clock
from p2p.doors import Doors
from p2p.parcels import Letter, Wave

_BEFORE_ALL_NODES = -1
_ROW_BITS = 48


class Sorting:
    """Waves whose messages may lie unread go into their receivers' boxes, all that came meanwhile together.

    Args:
        on_landed: told of a message that has come and for which no box was open.
    """

    def __init__(self, clock: Clock, doors: Doors, books: Books, on_landed: Callable[[Letter], None]) -> None:
        self._clock, self._doors, self._books, self._on_landed = clock, doors, books, on_landed
        self._waves: list[Wave] = []
        self._soonest_s = np.inf

    def take(self, wave: Wave) -> None:
        """A wave is on its way, and it is known when its messages arrive, or are lost."""
        if not wave.unread:
            letters = _letters(wave)
            self._show_each(letters, wave.receivers)
            return
        self._waves.append(wave)
        if wave.cut:
            letters, places = _letters(wave), sorted(wave.cut)
            self._show_each([letters[place] for place in places], [wave.receivers[place] for place in places])
        soonest_s = wave.left_s + min(wave.latencies) if wave.lefts is None else min(wave.arrivals_s())
        if soonest_s < self._soonest_s:
            self._soonest_s = soonest_s
            self._clock.rings.add(soonest_s, _BEFORE_ALL_NODES, self._sort, None)

    def _show_each(self, letters: list[Letter], nodes: Sequence[int]) -> None:
        """Lets each message be looked at as it comes."""
        times_s, orders = [letter[0] for letter in letters], [order_of(letter) for letter in letters]
        self._clock.rings.add_all(times_s, nodes, orders, self._on_landed, letters)

    def _sort(self, _: None) -> None:
        waves, self._waves, self._soonest_s = self._waves, [], np.inf
        files: dict[tuple[str, int], list[Wave]] = {}
        for wave in waves:
            files.setdefault((wave.kind, wave.round_number), []).append(wave)
        for of_one_kind in files.values():
            self._sort_alike(of_one_kind)

    def _sort_alike(self, waves: list[Wave]) -> None:
        """Waves of one kind and round."""
        by_node: defaultdict[int, list[Letter]] = defaultdict(list)
        for wave in waves:
            for node, letter in zip(wave.receivers, _letters(wave), strict=True):
                if not wave.cut or letter[2] - wave.row not in wave.cut:
                    by_node[node].append(letter)
        if any(wave.grounded_s < np.inf for wave in waves):
            for node, letters in by_node.items():
                by_node[node] = [letter for letter in letters if letter[0] <= letter[3].grounded_s]
        boxes, now_s = self._doors.boxes_for(waves[0]), self._clock.now
        for node, letters in by_node.items():
            box = boxes.get(node)
            if box is None:
                self._show_each(letters, [node] * len(letters))
            elif letters:
                box.announce(letters, now_s)
                self._books.unread[box] = None


def order_of(letter: Letter) -> int:
    """The place of a message among those that come to one node at one instant: by sender, then as they were sent."""
    return letter[1] << _ROW_BITS | letter[2]


def _letters(wave: Wave) -> list[Letter]:
    """A wave's messages, each with the time of its arrival."""
    return list(zip(wave.arrivals_s(), repeat(wave.sender), count(wave.row), repeat(wave), strict=False))
