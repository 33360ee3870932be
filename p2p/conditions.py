"""What the network does to messages at the moment: losses, bursts, cuts, delays, damage and doubles.

Everything is decided when a message is handed over, by draws that carry the message's own name: whether one message is
lost does not depend on which others were sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from p2p.distributions import Distribution, rounded
from p2p.records import REASON
from p2p.streams import draws, stream

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages handed over together: one sender, one kind, one size, many receivers.

    Over relays `sender` and `receivers` are the ends of this hop, `origin` and `destinations` those of the journey.
    """

    seed: int
    kind: int
    round_number: int
    sender: int
    sequence: int
    attempt: int
    receivers: NDArray[np.int64]
    now_s: float
    origin: int
    destinations: NDArray[np.int64]
    hop: int = 0

    def uniform(self, name: str) -> NDArray[np.float64]:
        """A number in (0, 1) for each message, found by the message's name."""
        parts = (self.kind, self.round_number, self.origin, self.sequence, self.attempt)
        hop = (self.hop,) if self.hop else ()
        if len(self.destinations) == 1:
            return draws(self.seed, name, *parts, self.destinations.item(), *hop).reshape(1)
        return draws(self.seed, name, *parts, self.destinations, *hop)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Messages from a node of `one` to a node of `other` do not pass, and back neither if `both`."""

    one: Mask
    other: Mask
    both: bool = True

    def cuts(self, sender: int, receivers: NDArray[np.int64]) -> Mask:
        """Which of these messages it stops."""
        stopped = self.one[sender] & self.other[receivers]
        if self.both:
            stopped = stopped | (self.other[sender] & self.one[receivers])
        return np.asarray(stopped & (receivers >= 0))


@dataclass(frozen=True, slots=True, eq=False)
class Chance:
    """Something that happens to each message of some senders with a probability."""

    name: str
    probability: float
    senders: Mask

    def strikes(self, batch: Batch) -> Mask:
        """Which of these messages it happens to."""
        if not self.senders[batch.sender]:
            return np.zeros(len(batch.receivers), dtype=np.bool_)
        return batch.uniform(self.name) < self.probability


@dataclass(frozen=True, slots=True, eq=False)
class Reordering:
    """Some messages take a detour of up to `delay_s`, so that later ones overtake them."""

    chance: Chance
    delay_s: float

    def delays(self, batch: Batch) -> NDArray[np.float64]:
        """The detour of each message in seconds."""
        length = rounded(batch.uniform(f"{self.chance.name}-length") * self.delay_s, "s")
        return np.where(self.chance.strikes(batch), length, 0.0)


@dataclass(slots=True, eq=False)
class Bursts:
    """Gilbert-Elliott loss: each sender's link alternates between a good and a bad state of random lengths."""

    name: str
    seed: int
    start_s: float
    mean_good_s: float
    mean_bad_s: float
    loss_good: float
    loss_bad: float
    senders: Mask
    _changes: dict[int, tuple[np.random.Generator, list[float]]] = field(default_factory=dict)

    def strikes(self, batch: Batch) -> Mask:
        """Which of these messages are lost."""
        if not self.senders[batch.sender]:
            return np.zeros(len(batch.receivers), dtype=np.bool_)
        loss = self.loss_bad if self.is_bad(batch.sender, batch.now_s) else self.loss_good
        return batch.uniform(self.name) < loss

    def is_bad(self, sender: int, now_s: float) -> bool:
        """Whether a sender's link is in its bad state."""
        rng, changes = self._changes.setdefault(sender, (stream(self.seed, self.name, sender), [self.start_s]))
        while changes[-1] <= now_s:
            mean_s = self.mean_good_s if len(changes) % 2 else self.mean_bad_s
            changes.append(changes[-1] + float(rounded(np.array(rng.exponential(mean_s)), "s")) + 1e-9)
        passed = sum(change <= now_s for change in changes)
        return passed % 2 == 0


@dataclass(slots=True, eq=False)
class Conditions:
    """All that is active now. Faults add to the lists and take away again."""

    loss: float = 0.0
    jitter: Distribution | None = None
    partitions: list[Partition] = field(default_factory=list)
    bursts: list[Bursts] = field(default_factory=list)
    corruptions: list[Chance] = field(default_factory=list)
    duplications: list[Chance] = field(default_factory=list)
    reorderings: list[Reordering] = field(default_factory=list)
    alter: Callable[[object, np.random.Generator], object] = lambda content, rng: content

    @property
    def calm(self) -> bool:
        """Whether nothing happens to any message, except that it may be lost at random."""
        return not (
            self.jitter is not None
            or self.partitions
            or self.bursts
            or self.corruptions
            or self.duplications
            or self.reorderings
        )

    def reasons(self, batch: Batch) -> NDArray[np.int8]:
        """Why each message will be lost, as a code; 0 if it will not."""
        found = np.zeros(len(batch.receivers), dtype=np.int8)
        if self.loss:
            found[batch.uniform("loss") < self.loss] = REASON["random"]
        for burst in self.bursts:
            found[burst.strikes(batch)] = REASON["burst"]
        for partition in self.partitions:
            found[partition.cuts(batch.sender, batch.receivers)] = REASON["partition"]
        return found

    def delays(self, batch: Batch) -> NDArray[np.float64] | float:
        """What is added to each message's latency, in seconds."""
        total: NDArray[np.float64] | float = 0.0
        if self.jitter is not None:
            total = rounded(self.jitter.quantiles(batch.uniform("jitter")), "s")
        for reordering in self.reorderings:
            total = total + reordering.delays(batch)
        return total

    def damaged(self, batch: Batch) -> NDArray[np.int64]:
        """Positions of messages whose bytes change on the way."""
        return _any(self.corruptions, batch)

    def doubled(self, batch: Batch) -> NDArray[np.int64]:
        """Positions of messages that are sent twice."""
        return _any(self.duplications, batch)


def _any(chances: list[Chance], batch: Batch) -> NDArray[np.int64]:
    if not chances:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.any([chance.strikes(batch) for chance in chances], axis=0))
