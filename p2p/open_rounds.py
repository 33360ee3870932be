"""How many messages of each round are under way, and who wants to know when none is any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from p2p.clock import LAST, Clock
from p2p.flights import Flights


class OpenRounds:
    """Counts up when a message is handed over and down when it has ended; flights are looked at when somebody asks.

    A round is found quiet only after all arrivals of an instant.
    """

    def __init__(self, clock: Clock, flights: Flights) -> None:
        self._clock, self._flights = clock, flights
        self._singly: defaultdict[int, int] = defaultdict(int)
        self._flying: defaultdict[int, int] = defaultdict(int)
        self._quiet: dict[int, Callable[[], None]] = {}
        self._rings: dict[int, float] = {}

    def open(self, round_number: int, count: int = 1) -> None:
        """So many more are under way."""
        self._singly[round_number] += count

    def fly(self, round_number: int, count: int) -> None:
        """So many of them are a flight."""
        self._singly[round_number] -= count
        self._flying[round_number] += count

    def close(self, round_number: int, count: int = 1) -> None:
        """So many have ended that were not, or are not any more, in flight."""
        self._singly[round_number] -= count
        if self._singly[round_number] > 0 or round_number not in self._quiet:
            return
        if self._clock.arriving:
            self._ring(round_number, self._clock.now)
        else:
            self._look(round_number)

    def when_quiet(self, round_number: int, then: Callable[[], None]) -> None:
        """Calls `then` once no message of the round is under way, maybe at once."""
        self._quiet[round_number] = then
        self._look(round_number)

    def keep_open(self, round_number: int) -> None:
        """The round goes on: nobody is told that it is quiet, until `when_quiet` is called again."""
        self._quiet.pop(round_number, None)

    def _ring(self, round_number: int, time_s: float) -> None:
        """Looks again at some instant, or before."""
        if time_s < self._rings.get(round_number, np.inf):
            self._rings[round_number] = time_s
            self._clock.rings.add(time_s, LAST, self._look_then, (round_number, time_s))

    def _look_then(self, ring: tuple[int, float]) -> None:
        round_number, time_s = ring
        if self._rings.get(round_number) == time_s:
            del self._rings[round_number]
            self._look(round_number)

    def _look(self, round_number: int) -> None:
        if round_number not in self._quiet:
            return
        for number, come, grounded in self._flights.ended():
            self._flying[number] -= come + grounded
            self._singly[number] += grounded
        if self._singly[round_number] > 0:
            return  # the end of the last of them will tell
        if self._flying[round_number]:
            self._ring(round_number, self._flights.last_s(round_number))
            return
        del self._singly[round_number], self._flying[round_number]
        self._quiet.pop(round_number)()
