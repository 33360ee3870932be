"""Messages that have ended since observers looked last, with what decides who saw what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.messaging.sent_payloads import Sent, SentPayloads
from p2p.log.log import Log
from p2p.log.records import KIND, OUTCOME, REASON

Ids = NDArray[np.int64]
_COLUMNS = (
    *("kind", "round", "sender", "receiver", "origin", "destination", "size_bytes"),
    *("sent_s", "left_s", "left_bytes", "arrived_s", "outcome", "reason"),
)


@dataclass(frozen=True, slots=True)
class Members:
    """The cohort of a round with its addresses, as the proxy knows it."""

    round_number: int
    start_s: float
    addresses: Mapping[int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Rows of the message log and payloads, for observers to select from.

    Attributes:
        columns: columns of the rows that have ended
        new: payloads handed over since the last look
        aggregator: the node whose aggregate became the model of the round that has just closed; empty in gossip
        cohorts: rounds that have closed since the last look
    """

    columns: Mapping[str, NDArray[Any]]
    payloads: SentPayloads
    new: Sequence[Sent]
    leaders: frozenset[tuple[int, int]]
    aggregator: tuple[int, ...]
    cohorts: Sequence[Members]
    proxy: int
    standby: int
    server: int
    in_the_clear: bool
    relayed: bool

    def of_kind(self, kind: str) -> NDArray[np.bool_]:
        """Returns which rows are of a kind."""
        found: NDArray[np.bool_] = self.columns["kind"] == KIND[kind]
        return found

    def leads(self, rounds: Ids, nodes: Ids) -> NDArray[np.bool_]:
        """Returns which nodes led in these rounds."""
        pairs = zip(rounds.tolist(), nodes.tolist(), strict=True)
        return np.fromiter((pair in self.leaders for pair in pairs), np.bool_, len(rounds))

    def arrived(self) -> NDArray[np.bool_]:
        """Returns which rows are the last hop of a message that reached its destination, accepted or not."""
        columns = self.columns
        came = (columns["outcome"] == OUTCOME["delivered"]) | (columns["outcome"] == OUTCOME["rejected"])
        last: NDArray[np.bool_] = came & (columns["receiver"] == columns["destination"])
        return last

    def payload_of(self, row: int) -> Sent | None:
        """Returns what a message carried; None for control messages, damaged ones and those of intruders."""
        columns = self.columns
        if columns["reason"][row] == REASON["corrupt"] or columns["kind"][row] == KIND["control"]:
            return None
        ends = int(columns["origin"][row]), int(columns["destination"][row])
        return self.payloads.find(int(columns["round"][row]), int(columns["kind"][row]), *ends, columns["sent_s"][row])


@dataclass(slots=True)
class TrafficReader:
    """Reads the message log once for all observers; every row is returned once, when it has ended."""

    payloads: SentPayloads
    proxy: int
    standby: int
    server: int
    in_the_clear: bool
    relayed: bool
    _rows: int = 0
    _in_flight: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _leaders: set[tuple[int, int]] = field(default_factory=set)

    def read(self, log: Log, leader: int, aggregator: tuple[int, ...], cohorts: Sequence[Members]) -> Traffic:
        """Returns what has ended since the last call."""
        rows = self._take(log)
        # `_take` has brought the table up to date; each plain read would do so again.
        columns = {name: log.messages.written(name)[rows] for name in _COLUMNS}
        updates = columns["kind"] == KIND["update"]
        pairs = zip(columns["round"][updates].tolist(), columns["destination"][updates].tolist(), strict=True)
        # Updates go to leaders only, also to those that were replaced later.
        self._leaders.update(pairs)
        self._leaders.update((cohort.round_number, leader) for cohort in cohorts)
        return Traffic(
            columns=columns,
            payloads=self.payloads,
            new=self.payloads.take_new(),
            leaders=frozenset(self._leaders),
            aggregator=aggregator,
            cohorts=cohorts,
            proxy=self.proxy,
            standby=self.standby,
            server=self.server,
            in_the_clear=self.in_the_clear,
            relayed=self.relayed,
        )

    def _take(self, log: Log) -> Ids:
        outcome, before = log.messages["outcome"], self._rows
        self._rows = len(outcome)
        rows = np.concatenate([self._in_flight, np.arange(before, self._rows)])
        waiting = outcome[rows] == OUTCOME["in_flight"]
        self._in_flight = rows[waiting]
        ended: Ids = rows[~waiting]
        return ended
