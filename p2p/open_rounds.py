"""How many messages of each round are under way, and who wants to know when none is any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable


class OpenRounds:
    """Counts up when a message is handed over and down when it has ended."""

    def __init__(self) -> None:
        self._under_way: defaultdict[int, int] = defaultdict(int)
        self._quiet: dict[int, Callable[[], None]] = {}

    def open(self, round_number: int, count: int = 1) -> None:
        """So many more are under way."""
        self._under_way[round_number] += count

    def close(self, round_number: int, count: int = 1) -> None:
        """So many have ended; with the last one the round is quiet."""
        left = self._under_way[round_number] - count
        self._under_way[round_number] = left
        if not left:
            self._tell(round_number)

    def when_quiet(self, round_number: int, then: Callable[[], None]) -> None:
        """Calls `then` once no message of the round is under way, maybe at once."""
        self._quiet[round_number] = then
        self._tell(round_number)

    def _tell(self, round_number: int) -> None:
        if not self._under_way.get(round_number) and round_number in self._quiet:
            self._under_way.pop(round_number, None)
            self._quiet.pop(round_number)()
