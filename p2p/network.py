"""Carries messages over links: delays them, loses some, sends lost ones again, and keeps the books.

One row per transmission, counted at full size when handed over, with one outcome in the end. What is in flight is
what has no outcome yet, so `sent = delivered + lost + rejected + in_flight` holds at every instant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.clock import Clock, Rank
from p2p.links import Links, Retransmit
from p2p.log import Log
from p2p.records import BOTTLENECK, KIND, NOBODY, OUTCOME, REASON
from p2p.sharing import Ended, Engine, Transfer
from p2p.streams import draws


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message on its way, as the network knows it: true ends, sizes, and contents it does not look into."""

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


Receive = Callable[[Parcel], str | None]
"""Takes an arrived parcel; returns the reason for which it is refused, "" if it is welcome, or None if that is not
known yet: the receiver then calls `settle` later."""


class Network:
    """The network of one run. Nodes attach a function that receives; whoever has something to send calls `send`."""

    def __init__(
        self, clock: Clock, links: Links, engine: Engine, log: Log, seed: int, loss: float, retransmit: Retransmit
    ) -> None:
        self._clock, self._links, self._engine, self._log, self._seed = clock, links, engine, log, seed
        self._loss, self._retransmit = loss, retransmit
        self._receivers: dict[int, Receive] = {}
        self._parcels: dict[int, Parcel] = {}
        self._fates: dict[int, str] = {}
        self._sequences: defaultdict[int, int] = defaultdict(int)
        self._open: defaultdict[int, int] = defaultdict(int)
        self._quiet: dict[int, Callable[[], None]] = {}
        self._wake_s = np.inf

    def attach(self, node: int, receive: Receive) -> None:
        """From now on parcels for `node` are handed to `receive`."""
        self._receivers[node] = receive

    def send(
        self,
        sender: int,
        receivers: Sequence[int],
        kind: str,
        round_number: int,
        size_bytes: int,
        overhead_bytes: int,
        contents: Sequence[Any],
        give_up_s: float = np.inf,
    ) -> None:
        """Hands over one message for each receiver, all of one size, in this order.

        Args:
            receivers: true identities; NOBODY for an address that belongs to no one, whose message the router refuses.
            give_up_s: when to stop sending lost ones again.
        """
        self._sequences[sender] += 1
        sequence = self._sequences[sender]
        self._open[round_number] += len(receivers)
        parcels = [
            Parcel(0, kind, round_number, sender, receiver, size_bytes, overhead_bytes, content, sequence, 1, give_up_s)
            for receiver, content in zip(receivers, contents, strict=True)
        ]
        self._hand_over(sender, parcels)

    def when_quiet(self, round_number: int, then: Callable[[], None]) -> None:
        """Calls `then` once no message of the round is under way, maybe at once."""
        self._quiet[round_number] = then
        self._check_quiet(round_number)

    def _hand_over(self, sender: int, parcels: list[Parcel]) -> None:
        now_s = self._clock.now
        receivers = np.array([parcel.receiver for parcel in parcels], dtype=np.int64)
        rows = self._record(sender, parcels, receivers)
        cut = self._draw_fates(rows, parcels, receivers)
        latencies = self._links.latencies(sender, receivers)
        transfers = []
        for row, parcel, lost, latency_s in zip(rows.tolist(), parcels, cut.tolist(), latencies.tolist(), strict=True):
            self._parcels[row] = replace(parcel, row=row)
            transfers.append(Transfer(row, sender, parcel.receiver, parcel.size_bytes, latency_s, lost, now_s))
        self._engine.start(now_s, transfers)
        self._schedule()

    def _record(self, sender: int, parcels: list[Parcel], receivers: NDArray[np.int64]) -> NDArray[np.int64]:
        first = parcels[0]
        return self._log.messages.extend(
            len(parcels),
            kind=KIND[first.kind],
            round=first.round_number,
            sender=sender,
            receiver=receivers,
            size_bytes=first.size_bytes,
            overhead_bytes=first.overhead_bytes,
            attempt=first.attempt,
            sent_s=self._clock.now,
            left_s=np.nan,
            arrived_s=np.nan,
            outcome=OUTCOME["in_flight"],
            reason=0,
            bottleneck=0,
            left_bytes=0,
            used=first.kind == "control",
        )

    def _draw_fates(
        self, rows: NDArray[np.int64], parcels: list[Parcel], receivers: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Decides which transmissions will not reach their receivers, and remembers why."""
        first = parcels[0]
        cut: NDArray[np.bool_] = receivers == NOBODY
        if self._loss:
            name = (KIND[first.kind], first.round_number, first.sender, first.sequence, first.attempt)
            ids = [np.array(part, dtype=np.int64) for part in name]
            lost = draws(self._seed, "loss", *ids, receivers) < self._loss
            for row in rows[lost & ~cut].tolist():
                self._fates[row] = "random"
            cut = cut | lost
        return cut

    def _schedule(self) -> None:
        next_s = self._engine.next_s()
        if next_s < self._wake_s:
            self._wake_s = next_s
            self._clock.call_at(next_s, Rank.ARRIVAL, 0, self._on_wake)

    def _on_wake(self) -> None:
        if self._clock.now < self._wake_s:
            return
        self._wake_s = np.inf
        for ended in self._engine.advance(self._clock.now):
            self._on_ended(ended)
        self._schedule()

    def _on_ended(self, ended: Ended) -> None:
        transfer = ended.transfer
        parcel = self._parcels.pop(transfer.row)
        columns = self._log.messages
        columns["left_s"][transfer.row] = transfer.left_s
        columns["left_bytes"][transfer.row] = parcel.size_bytes
        columns["bottleneck"][transfer.row] = BOTTLENECK[ended.bottleneck]
        fate = self._fates.pop(transfer.row, "")
        if fate:
            self._on_lost(parcel, fate)
            return
        columns["arrived_s"][transfer.row] = ended.time_s
        receive = self._receivers.get(parcel.receiver)
        self.settle(parcel, "unknown_address" if receive is None else receive(parcel))

    def settle(self, parcel: Parcel, reason: str | None) -> None:
        """Writes down whether an arrived parcel is refused; None leaves it open."""
        if reason is not None:
            self._end(parcel, "rejected" if reason else "delivered", reason)

    def _on_lost(self, parcel: Parcel, reason: str) -> None:
        again_s = self._clock.now + self._retransmit.timeout
        if parcel.attempt < self._retransmit.tries and again_s <= parcel.give_up_s:
            self._open[parcel.round_number] += 1
            again = replace(parcel, attempt=parcel.attempt + 1)
            self._clock.call_at(again_s, Rank.START, parcel.sender, lambda: self._hand_over(parcel.sender, [again]))
        self._end(parcel, "lost", reason)

    def _end(self, parcel: Parcel, outcome: str, reason: str) -> None:
        self._log.messages["outcome"][parcel.row] = OUTCOME[outcome]
        self._log.messages["reason"][parcel.row] = REASON[reason]
        self._open[parcel.round_number] -= 1
        self._check_quiet(parcel.round_number)

    def _check_quiet(self, round_number: int) -> None:
        if not self._open.get(round_number) and round_number in self._quiet:
            self._open.pop(round_number, None)
            self._quiet.pop(round_number)()
