"""The books in which each transmission has a row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from p2p.flights import Flights, Landed
from p2p.foretelling import Sendings, by_time
from p2p.log import Log
from p2p.parcels import Box, Parcel, Wave
from p2p.records import BOTTLENECK, KIND, NOBODY, OUTCOME, REASON

_ROWS_AT_ONCE = 1 << 16


class Books:
    """The rows of all transmissions. What happens is gathered, and written as arrays before anybody reads.

    Attributes:
        unread: boxes that are read before that: whoever put off looking at what came says now what it is
        delivered: rows of messages that were welcome
    """

    def __init__(self, log: Log, flights: Flights) -> None:
        self._log, self._table, self._flights = log, log.messages, flights
        self._rows = len(log.messages)
        self._opened: list[Parcel | Wave] = []
        self._opened_from = self._rows
        self._left: list[tuple[int, float, int, int, float]] = []
        self._ended: list[tuple[int, int, int]] = []
        self.delivered: list[int] = []
        self.unread: dict[Box, None] = {}
        log.messages.before_read = self.write

    def open(self, parcels: Sequence[Parcel], now_s: float) -> None:
        """Gives each parcel a row."""
        for row, parcel in enumerate(parcels, self._rows):
            parcel.row, parcel.sent_s = row, now_s
        self._opened += parcels
        self._count(len(parcels))

    def open_wave(self, wave: Wave, now_s: float) -> None:
        """Gives each message of a wave a row."""
        wave.row, wave.sent_s = self._rows, now_s
        self._opened.append(wave)
        self._count(len(wave.receivers))

    def enter(self, sendings: Sequence[Sendings]) -> None:
        """Gives rows to messages that have all arrived, as was foretold; those sent first come first."""
        self.write()
        count = sum(len(some.sent_s) for some in sendings)
        if count > _ROWS_AT_ONCE:
            self._table.reserve(count)
        for some in map(by_time, sendings):
            self._table.extend(
                len(some.sent_s),
                kind=KIND[some.kind],
                round=some.round_number,
                sender=some.senders,
                receiver=some.receivers,
                size_bytes=some.size_bytes,
                overhead_bytes=some.overhead_bytes,
                attempt=1,
                sent_s=some.sent_s,
                left_s=some.left_s,
                arrived_s=some.arrived_s,
                outcome=OUTCOME["delivered"],
                reason=0,
                bottleneck=some.bottleneck,
                left_bytes=some.size_bytes,
                used=True,
                origin=some.senders,
                destination=some.receivers,
                previous=NOBODY,
            )
        self._table.sort_from(self._rows, "sent_s")
        self._rows = self._opened_from = self._rows + count

    def _count(self, opened: int) -> None:
        self._rows += opened
        if self._rows - self._opened_from >= _ROWS_AT_ONCE:
            self._flush()

    def leave(self, row: int, left_s: float, left_bytes: int, bottleneck: str, arrived_s: float) -> None:
        """A message has left its sender, and arrived unless `arrived_s` is not a number."""
        self._left.append((row, left_s, left_bytes, BOTTLENECK[bottleneck], arrived_s))

    def end(self, row: int, outcome: str, reason: str) -> None:
        """A message has its outcome."""
        self._ended.append((row, OUTCOME[outcome], REASON[reason]))

    def write(self) -> None:
        """Brings the table up to date."""
        boxes, self.unread = self.unread, {}
        for box in boxes:
            if box.read():
                self.unread[box] = None
        self._flush(all_of_them=True)

    def _flush(self, *, all_of_them: bool = False) -> None:
        """Writes what was gathered; what lies unread stays so."""
        if self._opened:
            opened, self._opened = self._opened, []
            self._opened_from = self._rows
            self._write_opened(opened)
        for landed in self._flights.land(all_of_them=all_of_them):
            self._write_landed(landed)
        if self._left:
            left, self._left = self._left, []
            rows, *columns = zip(*left, strict=True)
            self._put(rows, ("left_s", "left_bytes", "bottleneck", "arrived_s"), columns)
        if self._ended:
            ended, self._ended = self._ended, []
            rows, *columns = zip(*ended, strict=True)
            self._put(rows, ("outcome", "reason"), columns)
        if self.delivered:
            delivered, self.delivered = self.delivered, []
            self._table.written("outcome")[np.array(delivered, dtype=np.int64)] = OUTCOME["delivered"]
        self._log.write_used()

    def _write_landed(self, landed: Landed) -> None:
        column, rows = self._table.written, landed.rows
        column("left_s")[rows], column("arrived_s")[rows] = landed.left_s, landed.arrived_s
        column("left_bytes")[rows], column("bottleneck")[rows] = column("size_bytes")[rows], landed.bottleneck

    def _put(self, rows: Sequence[int], names: Sequence[str], columns: Sequence[Sequence[float]]) -> None:
        where = np.array(rows, dtype=np.int64)
        for name, values in zip(names, columns, strict=True):
            self._table.written(name)[where] = values

    def _write_opened(self, opened: Sequence[Parcel | Wave]) -> None:
        facts = [_facts_of(one) if isinstance(one, Parcel) else _facts_of_wave(one) for one in opened]
        receivers, ends, *columns = zip(*facts, strict=True)
        counts = np.array([len(some) for some in receivers])
        names = ("kind", "round", "sender", "size_bytes", "overhead_bytes", "attempt", "sent_s", "origin", "previous")
        repeated = {name: np.repeat(np.array(column), counts) for name, column in zip(names, columns, strict=True)}
        self._table.extend(
            int(counts.sum()),
            **repeated,
            receiver=np.fromiter(chain.from_iterable(receivers), np.int64),
            destination=np.fromiter(chain.from_iterable(ends), np.int64),
            left_s=np.nan,
            arrived_s=np.nan,
            outcome=OUTCOME["in_flight"],
            reason=0,
            bottleneck=0,
            left_bytes=0,
            used=repeated["kind"] == KIND["control"],
        )


def _facts_of(parcel: Parcel) -> tuple[Any, ...]:
    """Receivers, true ends, and what is the same for all rows."""
    kind, sizes = KIND[parcel.kind], (parcel.size_bytes, parcel.overhead_bytes)
    ends = (parcel.receiver,), (parcel.destination,)
    when = (parcel.attempt, parcel.sent_s, parcel.origin, parcel.previous)
    return *ends, kind, parcel.round_number, parcel.sender, *sizes, *when


def _facts_of_wave(wave: Wave) -> tuple[Any, ...]:
    """The same of a wave, which goes over no relay."""
    kind, sender, sizes = KIND[wave.kind], wave.sender, (wave.size_bytes, wave.overhead_bytes)
    when = (wave.attempt, wave.sent_s, sender, NOBODY)
    return wave.receivers, wave.receivers, kind, wave.round_number, sender, *sizes, *when
