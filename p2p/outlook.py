"""What will become of messages that are handed over now: how long each is on its way, which are lost, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from p2p.clock import Clock
from p2p.conditions import Batch, Conditions
from p2p.links import Links
from p2p.parcels import Parcel, Wave
from p2p.records import KIND, REASON, REASONS
from p2p.streams import draw, stream


class Prospect(NamedTuple):
    """Each message's latency, and the reason for which it will be lost; no reasons at all if none will."""

    latencies: list[float]
    fates: Sequence[str] = ()


@dataclass(slots=True)
class Outlook:
    """The present state of the network, as far as it decides what happens to messages.

    Attributes:
        down: nodes that neither send nor receive now
        stand_ins: nodes to which goes what is sent to others
    """

    clock: Clock
    links: Links
    conditions: Conditions
    seed: int
    down: set[int] = field(default_factory=set)
    stand_ins: dict[int, int] = field(default_factory=dict)

    @property
    def calm(self) -> bool:
        """Whether nothing happens to messages, except that they may be lost at random."""
        return not (self.down or self.stand_ins) and self.conditions.calm

    @property
    def keeps_whole(self) -> bool:
        """Whether messages handed over together are not changed, one or the other, on their way."""
        return not (self.conditions.corruptions or self.conditions.duplications or self.stand_ins)

    def of_wave(self, wave: Wave) -> Prospect:
        """What a wave has before it."""
        calm, loss = self.calm, self.conditions.loss
        if calm and not loss:
            return Prospect(self.links.latency_list(wave.sender, wave.receivers))
        name = (KIND[wave.kind], wave.round_number, wave.sender, wave.sequence, wave.attempt)
        if calm and len(wave.receivers) == 1:
            latencies = self.links.latency_list(wave.sender, wave.receivers)
            return Prospect(latencies, _lost([draw(self.seed, "loss", *name, wave.receivers[0])], loss))
        receivers = np.array(wave.receivers, dtype=np.int64)
        return self.of_batch(Batch(self.seed, *name, receivers, self.clock.now, wave.sender, receivers))

    def of_calm(self, sender: int, parcels: list[Parcel]) -> Prospect:
        """What parcels have before them to which nothing but random loss may happen."""
        latencies = self.links.latency_list(sender, [parcel.receiver for parcel in parcels])
        loss = self.conditions.loss
        if not loss:
            return Prospect(latencies)
        if len(parcels) > 1:
            return Prospect(latencies, _lost(self.batch(parcels).uniform("loss").tolist(), loss))
        one = parcels[0]
        name = (KIND[one.kind], one.round_number, one.origin, one.sequence, one.attempt, one.destination)
        return Prospect(latencies, _lost([draw(self.seed, "loss", *name, *((one.hop,) if one.hop else ()))], loss))

    def of_batch(self, batch: Batch) -> Prospect:
        """What messages have before them to which anything may happen."""
        reasons = self.conditions.reasons(batch)
        if self.down:
            reasons[np.isin(batch.receivers, list(self.down))] = REASON["receiver_down"]
        latencies = self.links.latency_list(batch.sender, batch.receivers.tolist())
        delays = self.conditions.delays(batch)
        if not isinstance(delays, float):
            latencies = (np.array(latencies) + delays).tolist()
        return Prospect(latencies, [REASONS[code] for code in reasons.tolist()] if reasons.any() else ())

    def batch(self, parcels: list[Parcel]) -> Batch:
        """Parcels of one sender by the name under which draws are made for them."""
        first = parcels[0]
        receivers = np.array([parcel.receiver for parcel in parcels], dtype=np.int64)
        ends = np.array([parcel.destination for parcel in parcels], dtype=np.int64)
        name = (self.seed, KIND[first.kind], first.round_number, first.sender, first.sequence, first.attempt)
        return Batch(*name, receivers, self.clock.now, first.origin, ends, first.hop)

    def damaged(self, batch: Batch, parcels: list[Parcel]) -> list[Parcel]:
        """The parcels as they will arrive: some with other bytes."""
        parcels = list(parcels)
        for index in self.conditions.damaged(batch).tolist():
            name = (batch.kind, batch.round_number, batch.sender, batch.sequence, batch.attempt, index)
            content = parcels[index].content
            altered = self.conditions.alter(content, stream(self.seed, "damage", *name))
            parcels[index] = replace(parcels[index], content=altered, as_sent=content)
        return parcels

    def doubles(self, batch: Batch, parcels: list[Parcel]) -> tuple[Batch, list[Parcel]]:
        """Copies of some parcels. A copy has a fate of its own, and nobody sends it again: its sender knows of one."""
        chosen = self.conditions.doubled(batch)
        ends, receivers = batch.destinations[chosen], batch.receivers[chosen]
        copies = [replace(parcels[index], give_up_s=-np.inf) for index in chosen]
        return replace(batch, sequence=-batch.sequence, receivers=receivers, destinations=ends), copies


def _lost(draws: list[float], loss: float) -> Sequence[str]:
    fates = ["random" if u < loss else "" for u in draws]
    return fates if any(fates) else ()
