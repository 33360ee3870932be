"""Messages on their way, as the network knows them, and the books in which each transmission has a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p.log import Log
from p2p.records import BOTTLENECK, KIND, NOBODY, OUTCOME, REASON

_ROWS_AT_ONCE = 1 << 16


@dataclass(slots=True, eq=False)
class Parcel:
    """A message on its way, as the network knows it: true ends, sizes, and contents it does not look into.

    `as_sent` is the content before it was damaged on this hop, which is what its sender will send again.
    """

    row: int
    kind: str
    round_number: int
    sender: int
    receiver: int
    size_bytes: int
    overhead_bytes: int
    content: Any
    sequence: int
    attempt: int = 1
    give_up_s: float = np.inf
    origin: int = NOBODY
    onward: tuple[int, ...] = ()
    hop: int = 0
    previous: int = NOBODY
    as_sent: Any = None
    sent_s: float = np.nan
    arrived_s: float = np.nan

    @property
    def destination(self) -> int:
        """Whom it is for: behind relays, the last node of the way."""
        return self.onward[-1] if self.onward else self.receiver


class Books:
    """The rows of all transmissions. What happens is gathered, and written as arrays before anybody reads."""

    def __init__(self, log: Log) -> None:
        self._log, self._table = log, log.messages
        self._rows = len(log.messages)
        self._opened: list[Parcel] = []
        self._left: list[tuple[int, float, int, int, float]] = []
        self._ended: list[tuple[int, int, int]] = []
        log.messages.before_read = self.write

    def open(self, parcels: Sequence[Parcel], now_s: float) -> None:
        """Gives each parcel a row."""
        for row, parcel in enumerate(parcels, self._rows):
            parcel.row, parcel.sent_s = row, now_s
        self._rows += len(parcels)
        self._opened += parcels
        if len(self._opened) >= _ROWS_AT_ONCE:
            self.write()

    def leave(self, row: int, left_s: float, left_bytes: int, bottleneck: str, arrived_s: float) -> None:
        """A message has left its sender, and arrived unless `arrived_s` is not a number."""
        self._left.append((row, left_s, left_bytes, BOTTLENECK[bottleneck], arrived_s))

    def end(self, row: int, outcome: str, reason: str) -> None:
        """A message has its outcome."""
        self._ended.append((row, OUTCOME[outcome], REASON[reason]))

    def write(self) -> None:
        """Brings the table up to date."""
        if self._opened:
            opened, self._opened = self._opened, []
            self._write_opened(opened)
        if self._left:
            left, self._left = self._left, []
            rows, *columns = zip(*left, strict=True)
            self._put(rows, ("left_s", "left_bytes", "bottleneck", "arrived_s"), columns)
        if self._ended:
            ended, self._ended = self._ended, []
            rows, *columns = zip(*ended, strict=True)
            self._put(rows, ("outcome", "reason"), columns)
        self._log.write_used()

    def _put(self, rows: Sequence[int], names: Sequence[str], columns: Sequence[Sequence[float]]) -> None:
        where = np.array(rows, dtype=np.int64)
        for name, values in zip(names, columns, strict=True):
            self._table[name][where] = values

    def _write_opened(self, parcels: Sequence[Parcel]) -> None:
        self._table.extend(
            len(parcels),
            kind=[KIND[parcel.kind] for parcel in parcels],
            round=[parcel.round_number for parcel in parcels],
            sender=[parcel.sender for parcel in parcels],
            receiver=[parcel.receiver for parcel in parcels],
            size_bytes=[parcel.size_bytes for parcel in parcels],
            overhead_bytes=[parcel.overhead_bytes for parcel in parcels],
            attempt=[parcel.attempt for parcel in parcels],
            sent_s=[parcel.sent_s for parcel in parcels],
            left_s=np.nan,
            arrived_s=np.nan,
            outcome=OUTCOME["in_flight"],
            reason=0,
            bottleneck=0,
            left_bytes=0,
            used=[parcel.kind == "control" for parcel in parcels],
            origin=[parcel.origin for parcel in parcels],
            destination=[parcel.destination for parcel in parcels],
            previous=[parcel.previous for parcel in parcels],
        )
