"""Waves that are carried whole: from the hand-over to the landing of each message, or until each goes by itself."""

from __future__ import annotations

from collections.abc import Callable

from p2p.books import Books
from p2p.clock import Clock
from p2p.doors import Doors
from p2p.flights import Flights
from p2p.open_rounds import OpenRounds
from p2p.parcels import Letter, Parcel, Wave, as_it_stands
from p2p.records import NOBODY
from p2p.sharing import Engine
from p2p.sorting import Sorting, order_of


class Carriage:
    """Takes waves whose arrivals the engine can foretell; nothing happens for a message before its receiver needs it.

    Args:
        settle: told what a receiver says to a message that it was shown as it came
        on_lost: told of a message that has left its sender and will not arrive
    """

    def __init__(
        self,
        clock: Clock,
        engine: Engine,
        doors: Doors,
        books: Books,
        rounds: OpenRounds,
        flights: Flights,
        settle: Callable[[Parcel, str | None], None],
        on_lost: Callable[[Parcel], None],
    ) -> None:
        self._clock, self._engine, self._doors, self._books = clock, engine, doors, books
        self._rounds, self._flights, self._settle, self._on_lost = rounds, flights, settle, on_lost
        self._sorting = Sorting(clock, doors, books, self._on_landed)

    def take(self, wave: Wave) -> bool:
        """Carries a wave from now on; False if its messages have to go one by one."""
        if NOBODY in wave.receivers or not self._engine.carry(self._clock.now, wave):
            return False
        self._rounds.fly(wave.round_number, len(wave.receivers))
        self._flights.add(wave)
        self._sorting.take(wave)
        return True

    def ground(self) -> None:
        """Something happens to messages under way: from now on each goes by itself."""
        self._engine.ground(self._clock.now, self._flights.ground())

    def _on_landed(self, letter: Letter) -> None:
        """A message that is looked at as it comes has come, unless it was put off or goes another way."""
        wave = letter[3]
        node = wave.receivers[letter[2] - wave.row]
        if wave.moved:
            now = as_it_stands(letter)
            if now is None:
                return
            if now[0] > self._clock.now:
                self._clock.rings.add(now[0], node, self._on_landed, now, order_of(now))
                return
            letter = now
        if letter[2] - wave.row in wave.cut:
            self._rounds.open(wave.round_number)
            self._on_lost(wave.parcel(letter[2]))
        else:
            self._hand_in(letter, node)

    def _hand_in(self, letter: Letter, node: int) -> None:
        arrived_s, sender, row, wave = letter
        # What is sent again may have come before, as a double.
        once = wave.kind == "control" and wave.attempt == 1
        take = self._doors.controls.get(node) if once else None
        if take is not None:
            reason = take(sender, wave.contents[row - wave.row])
            if reason:
                self._books.end(row, "rejected", reason)
            else:
                self._books.delivered.append(row)
            return
        box = self._doors.box_for(wave, node)
        if box is not None:
            if box.drop(letter):
                self._books.unread[box] = None
            return
        # It counts as landed; what its receiver has not made up its mind about is under way until it has.
        self._rounds.open(wave.round_number)
        parcel = wave.parcel(row, arrived_s)
        self._settle(parcel, self._doors.hand_in(parcel, node))
