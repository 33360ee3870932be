"""Messages on their way, as the network knows them: one by one, or as waves of those that were handed over together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from p2p.records import NOBODY

NONE_CUT: frozenset[int] = frozenset()


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

    def parcel(self, row: int, arrived_s: float = np.nan) -> Parcel:
        """Itself, as somebody sees it who does not know how many came together."""
        self.arrived_s = arrived_s
        return self

    @property
    def destination(self) -> int:
        """Whom it is for: behind relays, the last node of the way."""
        return self.onward[-1] if self.onward else self.receiver


class Contents(Protocol):
    """What messages hold that are handed over together; not looked into here."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


@dataclass(slots=True, eq=False)
class Wave:
    """Messages handed over together: all equal but for their receivers and contents. A row each, one after the other.

    There is no object for each of them unless somebody wants to see one.

    Attributes:
        numbers: the messages' own numbers, if each was a sending of its own; else all have `sequence`
        attempt: how often they have been sent, this time included
        cut: places of messages that will be lost: they take their share of the uplink, and end when they have left
        latencies: of each message, 0 for those that will be lost
        left_s: when the last byte of every message has left; may still be put off, while the uplink is shared
        lefts: the same for each message, where it is the receiver's link that holds it back; nothing puts that off
        landed: how many messages are known to have come
        moved: whether a message may arrive at another time than was said when it was handed over, or another way
        grounded_s: what arrives after this goes on as a transfer of its own
    """

    kind: str
    round_number: int
    sender: int
    receivers: Sequence[int]
    size_bytes: int
    overhead_bytes: int
    contents: Any
    sequence: int
    give_up_s: float = np.inf
    unread: bool = False
    numbers: Sequence[int] | None = None
    attempt: int = 1
    row: int = 0
    sent_s: float = np.nan
    latencies: Sequence[float] = ()
    cut: frozenset[int] = NONE_CUT
    left_s: float = np.inf
    lefts: list[float] | None = None
    landed: int = 0
    moved: bool = False
    grounded_s: float = np.inf

    def lose(self, places: Iterable[int]) -> None:
        """Some of its messages will be lost on their way."""
        self.cut = frozenset(places)
        self.latencies = [0.0 if place in self.cut else one for place, one in enumerate(self.latencies)]

    def arrivals_s(self) -> list[float]:
        """When each message arrives, as things stand."""
        if self.lefts is None:
            left_s = self.left_s
            return [left_s + latency_s for latency_s in self.latencies]
        return [left_s + latency_s for left_s, latency_s in zip(self.lefts, self.latencies, strict=True)]

    def arrived_s(self, index: int) -> float:
        """When a message arrives, as things stand."""
        return (self.left_s if self.lefts is None else self.lefts[index]) + self.latencies[index]

    def flying(self, after_s: float, until_s: float = np.inf) -> list[int]:
        """Places of the messages that arrive after one instant and up to another, as things stand."""
        return [place for place, arrives_s in enumerate(self.arrivals_s()) if after_s < arrives_s <= until_s]

    def put_off(self, left_s: float) -> None:
        """Its messages will have left at another time."""
        self.left_s, self.moved = left_s, True

    def ground(self, time_s: float) -> None:
        """What arrives after this goes on as transfers."""
        self.grounded_s, self.moved = min(self.grounded_s, time_s), True

    def parcel(self, row: int, arrived_s: float = np.nan) -> Parcel:
        """The message with this row."""
        index = row - self.row
        return Parcel(
            row,
            self.kind,
            self.round_number,
            self.sender,
            self.receivers[index],
            self.size_bytes,
            self.overhead_bytes,
            self.contents[index],
            self.sequence if self.numbers is None else self.numbers[index],
            self.attempt,
            self.give_up_s,
            self.sender,
            sent_s=self.sent_s,
            arrived_s=arrived_s,
        )


Letter = tuple[float, int, int, Wave]
"""A message of a wave that has come, or will: when, from whom, its row, and its wave."""


class Box(Protocol):
    """Where messages lie unread. Whoever opens them tells the network with `deliver` or `refuse` what they were."""

    def announce(self, letters: list[Letter], soonest_s: float) -> None:
        """Messages are on their way, or have just come; none of them before `soonest_s`."""

    def drop(self, letter: Letter) -> bool:
        """Takes in a message that has come; whether it is the only one here, or on its way."""

    def read(self) -> bool:
        """Opens what has come, and says whether more is on its way; called before anybody looks at the books."""


def as_it_stands(letter: Letter) -> Letter | None:
    """A letter with the time of its arrival as it is known now; None if it comes another way."""
    _, sender, row, wave = letter
    if not wave.moved:
        return letter
    arrives_s = wave.arrived_s(row - wave.row)
    return None if arrives_s > wave.grounded_s else (arrives_s, sender, row, wave)
