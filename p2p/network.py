"""Carries messages over links: delays them, loses some, sends lost ones again, and keeps the books.

One row per transmission, counted at full size when handed over, with one outcome in the end. What is in flight is
what has no outcome yet, so `sent = delivered + lost + rejected + in_flight` holds at every instant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from p2p.books import Books
from p2p.carriage import Carriage
from p2p.clock import Clock, Rank
from p2p.conditions import Conditions, Partition
from p2p.doors import Doors, Receive, TakeControl
from p2p.flights import Flights
from p2p.foretelling import Foretelling, Sendings
from p2p.foretellings import foretelling_of
from p2p.links import Links, Retransmit
from p2p.log import Log
from p2p.open_rounds import OpenRounds
from p2p.outlook import Outlook, Prospect
from p2p.parcels import Box, Contents
from p2p.parcels import Parcel as Parcel
from p2p.parcels import Wave as Wave
from p2p.records import NOBODY
from p2p.sharing import Engine, Transfer


class Routing(Protocol):
    """Chooses the way of messages: a parcel that goes over others comes back as its first hop."""

    def first_hops(self, parcels: list[Parcel]) -> list[Parcel]:
        """The parcels as they leave their origin, all of one size."""


class Direct:
    """Every message goes straight to its receiver."""

    def first_hops(self, parcels: list[Parcel]) -> list[Parcel]:
        """The parcels as they are."""
        return parcels


class Network:
    """The network of one run. Nodes attach a function that receives; whoever has something to send calls `send`."""

    def __init__(
        self,
        clock: Clock,
        links: Links,
        engine: Engine,
        log: Log,
        seed: int,
        retransmit: Retransmit,
        conditions: Conditions,
        routing: Routing | None = None,
    ) -> None:
        self._clock, self._links, self._engine, self._log = clock, links, engine, log
        self._retransmit, self.conditions = retransmit, conditions
        self._outlook = Outlook(clock, links, conditions, seed)
        self._routing: Routing = routing or Direct()
        self._direct = isinstance(self._routing, Direct)
        self._doors, flights = Doors(), Flights(clock)
        self._flights = flights
        self._rounds, self._books = OpenRounds(clock, flights), Books(log, flights)
        self._fates: dict[int, str] = {}
        self._carriage = Carriage(
            *(clock, engine, self._doors, self._books, self._rounds, flights),
            settle=self.settle,
            on_lost=lambda parcel: self._on_lost(parcel, self._fates[parcel.row]),
        )
        self._sequences: defaultdict[int, int] = defaultdict(int)
        clock.on_alarm = self._on_wake

    def attach(self, node: int, receive: Receive, take_control: TakeControl | None = None) -> None:
        """From now on parcels for `node` are handed to `receive`.

        Control messages to which nothing can have happened go to `take_control`, if there is one.
        """
        self._doors.attach(node, receive, take_control)

    def open_box(self, node: int, round_number: int, box: Box) -> None:
        """From now on a round's messages for `node` that may lie unread are dropped into its box."""
        self._doors.open_box(node, round_number, box)

    def close_box(self, node: int, round_number: int) -> None:
        """No longer."""
        self._doors.close_box(node, round_number)

    def open_desk(self, node: int, box: Box) -> None:
        """From now on control messages for `node` that may lie unread are dropped into its box."""
        self._doors.open_desk(node, box)

    def deliver(self, rows: Sequence[int]) -> None:
        """Messages that lay unread were welcome."""
        self._books.delivered += rows

    def refuse(self, row: int, reason: str) -> None:
        """A message that lay unread is refused."""
        self._books.end(row, "rejected", reason)

    def send(
        self,
        sender: int,
        receivers: Sequence[int],
        kind: str,
        round_number: int,
        size_bytes: int,
        overhead_bytes: int,
        contents: Contents,
        give_up_s: float = np.inf,
        *,
        unread: bool = False,
    ) -> None:
        """Hands over one message for each receiver, all of one size, in this order.

        Args:
            receivers: true identities; NOBODY for an address that belongs to no one, whose message the router refuses.
            give_up_s: when to stop sending lost ones again.
            unread: whether they may lie unread in a box that their receiver has open for the round.
        """
        if not receivers:
            return
        sequence = self._sequences[sender] = self._sequences[sender] + 1
        self._rounds.open(round_number, len(receivers))
        sizes = size_bytes, overhead_bytes
        if self._passes_whole:
            wave = Wave(kind, round_number, sender, receivers, *sizes, contents, sequence, give_up_s, unread)
            self._send_wave(wave)
            return
        parcels = [
            Parcel(0, kind, round_number, sender, to, *sizes, what, sequence, 1, give_up_s, sender)
            for to, what in zip(receivers, contents, strict=True)
        ]
        self._hand_over(sender, self._routing.first_hops(parcels))

    def send_each(
        self,
        sender: int,
        receivers: Sequence[int],
        kind: str,
        round_number: int,
        sizes: Sequence[tuple[int, int]],
        contents: Sequence[Any],
        give_up_s: float = np.inf,
    ) -> None:
        """The same as `send` for one receiver after the other, each with its own size and overhead in bytes."""
        # Where messages leave one after the other, the order counts in which they are handed over.
        ordered = self._engine.in_turn and self._links.up[sender] < np.inf
        if ordered or not self._outlook.calm or self.conditions.loss or not self._passes_whole:
            for receiver, size, content in zip(receivers, sizes, contents, strict=True):
                self.send(sender, [receiver], kind, round_number, *size, [content], give_up_s)
            return
        sequence = self._sequences[sender] + 1
        self._sequences[sender] += len(receivers)
        self._rounds.open(round_number, len(receivers))
        alike: dict[tuple[int, int], list[int]] = {}
        for index, size in enumerate(sizes):
            alike.setdefault(size, []).append(index)
        for size, indices in alike.items():
            chosen, what = [receivers[index] for index in indices], [contents[index] for index in indices]
            numbers = [sequence + index for index in indices]
            self._send_wave(Wave(kind, round_number, sender, chosen, *size, what, sequence, give_up_s, numbers=numbers))

    def send_on(self, parcel: Parcel) -> None:
        """Hands over the next hop of a parcel that has just come to a relay."""
        self._rounds.open(parcel.round_number)
        start = partial(self._hand_over, parcel.sender, [parcel])
        self._clock.call_at(self._clock.now, Rank.START, parcel.sender, start)

    def when_quiet(self, round_number: int, then: Callable[[], None]) -> None:
        """Calls `then` once no message of the round is under way, maybe at once."""
        self._rounds.when_quiet(round_number, then)

    def keep_open(self, round_number: int) -> None:
        """The round goes on: nobody is told when no message of it is under way, until `when_quiet` is called again."""
        self._rounds.keep_open(round_number)

    def settle(self, parcel: Parcel, reason: str | None) -> None:
        """Writes down whether an arrived parcel is refused; None leaves it open."""
        if reason is not None:
            self._end(parcel, "rejected" if reason else "delivered", reason)

    def is_down(self, node: int) -> bool:
        """Whether a node neither sends nor receives now."""
        return node in self._outlook.down

    def take_down(self, node: int) -> None:
        """A node stops: its transfers end where they are, and what they held is free at once."""
        self._ground()
        self._outlook.down.add(node)
        now_s = self._clock.now
        self._abort([t for t in self._under_way() if t.src == node and t.left_s > now_s], "sender_down")
        self._abort([t for t in self._under_way() if t.dst == node and not t.cut], "receiver_down")

    def bring_up(self, node: int) -> None:
        """A node sends and receives again."""
        self._outlook.down.discard(node)

    def listen(self, overhear: Callable[[Parcel], None]) -> None:
        """From now on every parcel is shown to `overhear` (an eavesdropper on the wire) once all of it has passed."""
        self._ground()
        self._doors.listeners.append(overhear)

    def redirect(self, node: int, stand_in: int) -> None:
        """From now on what is sent to a node goes to another in its place."""
        self._ground()
        self._outlook.stand_ins[node] = stand_in

    def cut(self, partition: Partition) -> None:
        """Starts a partition: messages across it are lost, also those under way."""
        self._ground()
        self.conditions.partitions.append(partition)
        crossing = [t for t in self._under_way() if partition.cuts(t.src, np.array([t.dst]))[0]]
        self._abort([t for t in crossing if not t.cut], "partition")

    def heal(self, partition: Partition) -> None:
        """Ends a partition."""
        self.conditions.partitions.remove(partition)

    def scale_links(self, nodes: Iterable[int], up: float, down: float) -> None:
        """Multiplies nodes' rates from now on (a slow link, or back to normal)."""
        self._ground()
        for node in nodes:
            self._links.up[node] *= up
            self._links.down[node] *= down
            self._engine.set_capacity(self._clock.now, node, float(self._links.up[node]), float(self._links.down[node]))
        self._schedule()

    def lose(self, parcel: Parcel, reason: str) -> None:
        """A parcel that had arrived is lost after all: its receiver went down before reading it."""
        self._log.messages["arrived_s"][parcel.row] = np.nan
        self._on_lost(parcel, reason)

    def foresee(self, edges: NDArray[np.int64]) -> None:
        """Says which pairs (sender, receiver) will soon talk; a matter of speed only."""
        self._links.foresee(edges)

    def foretell(self) -> Foretelling | None:
        """What foretells messages that are sent from now on; None if anything is under way, or is going to happen."""
        undisturbed = self._passes_whole and self._outlook.calm and not self.conditions.loss
        quiet = undisturbed and self._clock.nothing_ahead and self._flights.empty
        return foretelling_of(self._engine, self._links) if quiet else None

    def enter(self, sendings: Sequence[Sendings]) -> None:
        """Messages were sent and have arrived as was foretold."""
        self._books.enter(sendings)

    @property
    def _passes_whole(self) -> bool:
        """Whether messages handed over together stay together, and nobody needs to see each of them."""
        return self._direct and not self._doors.listeners and self._outlook.keeps_whole

    def _send_wave(self, wave: Wave) -> None:
        now_s, outlook = self._clock.now, self._outlook
        if wave.sender in outlook.down:
            self._rounds.close(wave.round_number, len(wave.receivers))
            return
        latencies, fates = outlook.of_wave(wave)
        self._books.open_wave(wave, now_s)
        wave.latencies = latencies
        if fates:
            lost = {place: fate for place, fate in enumerate(fates) if fate}
            self._fates.update((wave.row + place, fate) for place, fate in lost.items())
            wave.lose(lost)
        if self._carriage.take(wave):
            return
        sender, size_bytes, ends = wave.sender, wave.size_bytes, zip(wave.receivers, latencies, strict=True)
        transfers = [
            Transfer(row, sender, receiver, size_bytes, latency_s, receiver == NOBODY, now_s, content=wave)
            for row, (receiver, latency_s) in enumerate(ends, wave.row)
        ]
        self._begin(transfers, fates)

    def _ground(self) -> None:
        """Something happens to messages under way: from now on each goes by itself."""
        self._carriage.ground()
        self._schedule()

    def _send_again(self, parcel: Parcel) -> None:
        """The same bytes once more; alone, but otherwise as the first time."""
        one = parcel
        if not self._passes_whole or one.hop or one.onward or one.give_up_s == -np.inf:
            self._hand_over(one.sender, [one])
            return
        sizes = one.size_bytes, one.overhead_bytes
        wave = Wave(one.kind, one.round_number, one.sender, [one.receiver], *sizes, [one.content], one.sequence)
        wave.give_up_s, wave.attempt = one.give_up_s, one.attempt
        self._send_wave(wave)

    def _hand_over(self, sender: int, parcels: list[Parcel]) -> None:
        outlook = self._outlook
        if outlook.calm:
            self._start(sender, parcels, outlook.of_calm(sender, parcels))
            return
        if sender in outlook.down:
            self._rounds.close(parcels[0].round_number, len(parcels))
            return
        if outlook.stand_ins:
            parcels = [replace(one, receiver=outlook.stand_ins.get(one.receiver, one.receiver)) for one in parcels]
        batch = outlook.batch(parcels)
        copied, copies = outlook.doubles(batch, parcels)
        self._start(sender, outlook.damaged(batch, parcels), outlook.of_batch(batch))
        if copies:
            self._rounds.open(batch.round_number, len(copies))
            self._start(sender, copies, outlook.of_batch(copied))

    def _start(self, sender: int, parcels: list[Parcel], prospect: Prospect) -> None:
        now_s = self._clock.now
        self._books.open(parcels, now_s)
        transfers = []
        for one, latency_s in zip(parcels, prospect.latencies, strict=True):
            cut = one.receiver == NOBODY
            transfers.append(
                Transfer(one.row, sender, one.receiver, one.size_bytes, latency_s, cut, now_s, content=one)
            )
        self._begin(transfers, prospect.fates)

    def _begin(self, transfers: list[Transfer], fates: Sequence[str]) -> None:
        """Begins transmissions; each that has a fate will be lost for that reason."""
        for transfer, fate in zip(transfers, fates, strict=False):
            if fate:
                transfer.cut = True
                self._fates[transfer.row] = fate
        self._engine.start(self._clock.now, transfers)
        self._schedule()

    def _schedule(self) -> None:
        self._clock.alarm_s = self._engine.next_s()

    def _on_wake(self) -> None:
        """Works off arrivals for as long as nothing else happens to anybody; links go on meanwhile."""
        clock = self._clock
        self._engine.work(lambda: min(clock.free_until_s(), clock.rings.next_s), self._on_ended)
        self._schedule()

    def _on_ended(self, time_s: float, transfer: Transfer, bottleneck: str) -> None:
        self._clock.move_to(time_s)
        row, carrier = transfer.row, transfer.content
        fate = self._fates.get(row, "") if self._fates else ""
        arrived_s = np.nan if fate else time_s
        self._books.leave(row, transfer.left_s, carrier.size_bytes, bottleneck, arrived_s)
        box = None if fate else self._doors.box_for(carrier, transfer.dst)
        if box is not None:
            if box.drop((time_s, carrier.sender, row, carrier)):
                self._books.unread[box] = None
            self._rounds.close(carrier.round_number)
            return
        parcel = carrier.parcel(row, arrived_s)
        for overhear in self._doors.listeners:
            overhear(parcel)
        if fate:
            self._on_lost(parcel, fate)
        else:
            self.settle(parcel, self._doors.hand_in(parcel, transfer.dst))

    def _under_way(self) -> list[Transfer]:
        """Transmissions that have not ended, in the order in which they were handed over."""
        return sorted(self._engine.under_way(), key=attrgetter("row"))

    def _abort(self, transfers: list[Transfer], reason: str) -> None:
        """Ends transfers now; a message the sender may still want to deliver is sent again later."""
        for transfer, left_bytes in zip(transfers, self._engine.abort(self._clock.now, transfers), strict=True):
            self._log.messages["left_bytes"][transfer.row] = round(left_bytes)
            self._log.messages["left_s"][transfer.row] = min(transfer.left_s, self._clock.now)
            self._on_lost(transfer.content.parcel(transfer.row), reason)
        self._schedule()

    def _on_lost(self, parcel: Parcel, reason: str) -> None:
        again_s = self._clock.now + self._retransmit.timeout
        if (
            parcel.attempt < self._retransmit.tries
            and again_s <= parcel.give_up_s
            and parcel.sender not in self._outlook.down
        ):
            self._rounds.open(parcel.round_number)
            content = parcel.content if parcel.as_sent is None else parcel.as_sent
            again = replace(parcel, attempt=parcel.attempt + 1, content=content, as_sent=None)
            self._clock.call_at(again_s, Rank.START, parcel.sender, lambda: self._send_again(again))
        self._end(parcel, "lost", reason)

    def _end(self, parcel: Parcel, outcome: str, reason: str) -> None:
        self._fates.pop(parcel.row, None)
        self._books.end(parcel.row, outcome, reason)
        self._rounds.close(parcel.round_number)
