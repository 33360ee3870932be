"""How many messages of each round are under way, and who wants to know when none is any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from p2p.clock import LAST, Clock
from p2p.flights import Flights


class OpenRounds:
    """Counts up when a message is handed over and down when it has ended; flights are looked at when somebody asks."""

    def __init__(self, clock: Clock, flights: Flights) -> None:
        self._clock, self._flights = clock, flights
        self._under_way: defaultdict[int, int] = defaultdict(int)
        self._quiet: dict[int, Callable[[], None]] = {}

    def open(self, round_number: int, count: int = 1) -> None:
        """So many more are under way."""
        self._under_way[round_number] += count

    def close(self, round_number: int, count: int = 1) -> None:
        """So many have ended; with the last one the round is quiet."""
        self._under_way[round_number] -= count
        if round_number in self._quiet:
            self._look(round_number)

    def when_quiet(self, round_number: int, then: Callable[[], None]) -> None:
        """Calls `then` once no message of the round is under way, maybe at once."""
        self._quiet[round_number] = then
        self._look(round_number)

    def _look(self, round_number: int) -> None:
        if round_number not in self._quiet:
            return
        for number, count in self._flights.ended().items():
            self._under_way[number] -= count
        if not self._under_way[round_number]:
            del self._under_way[round_number]
            self._quiet.pop(round_number)()
            return
        last_s = self._flights.last_s(round_number)
        if last_s > -np.inf:
            self._clock.rings.add(last_s, LAST, self._look, round_number)
