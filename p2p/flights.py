"""Waves on their way whose arrivals are known: nothing need happen for each message, only for whoever waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.clock import Clock
from p2p.parcels import Wave
from p2p.records import BOTTLENECK

Floats = NDArray[np.float64]

_FEW = 4096


class Landed(NamedTuple):
    """Rows of messages that have come: when they had left, what held them back, and when they came."""

    rows: NDArray[np.int64]
    left_s: NDArray[np.float64]
    bottleneck: NDArray[np.int8]
    arrived_s: NDArray[np.float64]


class Ended(NamedTuple):
    """How many messages of a round have come, and how many go on as transfers."""

    round_number: int
    come: int
    grounded: int


class Flights:
    """The waves under way. What has come is found when somebody asks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waves: list[Wave] = []
        self._many = _FEW
        self._landed: list[Landed] = []
        self._ended: list[Ended] = []

    def add(self, wave: Wave) -> None:
        """A wave is on its way."""
        self._waves.append(wave)

    def land(self, *, all_of_them: bool) -> list[Landed]:
        """What has come since the last time, some of it maybe once more; if not all of it, then only if it is much."""
        if all_of_them or len(self._waves) > self._many:
            self._look()
        landed, self._landed = self._landed, []
        return landed

    def ended(self) -> list[Ended]:
        """What has come, or gone another way, since the last time; one or more entries for a round."""
        self._look()
        ended, self._ended = self._ended, []
        return ended

    @property
    def empty(self) -> bool:
        """Whether none is under way."""
        self._look()
        return not self._waves

    def last_s(self, round_number: int) -> float:
        """When the last message of a round will have come, as things stand; minus infinity if none is on its way."""
        waves = [wave for wave in self._waves if wave.round_number == round_number]
        return max([max(wave.arrivals_s()) for wave in waves], default=-np.inf)

    def ground(self) -> list[tuple[Wave, list[int]]]:
        """Ends all flights: what has not come yet goes on by itself, and is named here."""
        self._look()
        settled_s, waves = self._clock.settled_s, self._waves
        self._waves = []
        grounded = []
        for wave in waves:
            before_s = wave.grounded_s
            wave.ground(settled_s)
            self._ended.append(Ended(wave.round_number, 0, len(wave.receivers) - wave.landed))
            grounded.append((wave, wave.flying(settled_s, before_s)))
        return grounded

    def _look(self) -> None:
        waves, self._waves = self._waves, []
        settled_s = self._clock.settled_s
        single: list[Wave] = []
        for wave in waves:
            if wave.lefts is not None:
                self._look_at([wave], np.array(wave.lefts))
            elif wave.left_s > settled_s and wave.grounded_s == np.inf:
                self._waves.append(wave)
            else:
                single.append(wave)
        if single:
            counts = [len(wave.latencies) for wave in single]
            self._look_at(single, np.repeat([wave.left_s for wave in single], counts))
        self._many = max(_FEW, 2 * len(self._waves))

    def _look_at(self, waves: Sequence[Wave], left_s: Floats) -> None:
        """Some waves, given when each of their messages has left."""
        counts = np.array([len(wave.latencies) for wave in waves])
        firsts = np.cumsum(counts) - counts
        rows = np.arange(len(left_s)) + np.repeat([wave.row for wave in waves] - firsts, counts)
        arrived_s = left_s + np.fromiter(chain.from_iterable(wave.latencies for wave in waves), np.float64)
        until_s = np.minimum([wave.grounded_s for wave in waves], self._clock.settled_s)
        here = arrived_s <= np.repeat(until_s, counts)
        come = np.add.reduceat(here, firsts, dtype=np.int64)
        # What was told already need not be told again, unless more of the same wave has come.
        here &= np.repeat(come > np.array([wave.landed for wave in waves]), counts)
        for wave, number, count in zip(waves, come.tolist(), counts.tolist(), strict=True):
            goes_on = number < count and wave.grounded_s > self._clock.settled_s
            self._ended.append(Ended(wave.round_number, number - wave.landed, 0 if goes_on else count - number))
            wave.landed = number
            if goes_on:
                self._waves.append(wave)
        for wave, first in zip(waves, firsts.tolist(), strict=True):
            arrived_s[[first + place for place in wave.cut]] = np.nan
        held = np.full(len(rows), BOTTLENECK["uplink"], dtype=np.int8)
        if waves[0].lefts is not None:
            held[:] = np.where(left_s == waves[0].sent_s, BOTTLENECK["latency"], BOTTLENECK["downlink"])
        self._landed.append(Landed(rows[here], left_s[here], held[here], arrived_s[here]))
