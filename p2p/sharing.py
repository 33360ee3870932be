"""How messages under way share the nodes' access links: `ideal`, `fifo` and `fair`.

A sharing strategy makes an `Engine`: it takes transfers when they are handed over, tells when something ends next,
and hands back what has ended. Engines know nodes, bytes and seconds; they know nothing of messages' meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from p2p.parcels import Wave
from p2p.units import PositiveSeconds

Rates = NDArray[np.float64]

TOGETHER = 1e-13
"""What ends within this share of the time of day of one another ends together: rounding, not physics."""


@dataclass(slots=True, eq=False)
class Transfer:
    """One transmission under way. `cut`: it will not reach its receiver, so it uses the sender's uplink alone.

    `content` is the caller's; `version` is the engine's: it grows when what was foretold of the transfer changes.
    """

    row: int
    src: int
    dst: int
    size_bytes: float
    latency_s: float
    cut: bool
    handed_s: float
    order: int = 0
    started_s: float = np.inf
    left_s: float = np.inf
    content: Any = None
    version: int = 0


Arrive = Callable[[float, Transfer, str], None]
"""Told when a transfer arrives (or, if it was cut, has left its sender): the time, and the link that held it back."""


class Engine(Protocol):
    """Transfers in, endings out; the caller never passes over an ending.

    Attributes:
        in_turn: whether it counts in which order one sender's messages are handed over at one instant
    """

    in_turn: ClassVar[bool]

    def start(self, now_s: float, transfers: Sequence[Transfer]) -> None:
        """Takes transfers handed over now, in the order of sending."""

    def work(self, limit: Callable[[], float], arrive: Arrive) -> None:
        """Lets time pass up to and including `limit()`, and tells of each ending.

        By time, then receiver, sender, order of sending. The limit is asked for anew before each instant, for an
        ending may bring it forward; up to there nobody else changes anything.
        """

    def carry(self, now_s: float, wave: Wave) -> bool:
        """Takes a whole wave handed over now, if it can say at once when its messages will have left.

        It writes that into the wave, and anew when something puts it off; nobody is told of endings then.
        """

    def ground(self, now_s: float, waves: Sequence[tuple[Wave, Sequence[int]]]) -> None:
        """What is under way of all waves it carries, and is named here, becomes transfers from now on."""

    def next_s(self) -> float:
        """Before this nothing ends; infinity if nothing is under way."""

    def under_way(self) -> Iterable[Transfer]:
        """What has not ended yet, in any order."""

    def abort(self, now_s: float, transfers: Sequence[Transfer]) -> list[float]:
        """Ends transfers at once, frees what they held, and says how many bytes of each had left."""

    def set_capacity(self, now_s: float, node: int, up: float, down: float) -> None:
        """Changes a node's links from now on."""


class Sharing(Protocol):
    """A model of sharing."""

    def engine(self, up: Rates, down: Rates) -> Engine:
        """A fresh engine over these links (bytes/s per node)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ideal:
    """Nobody waits for anybody: a message takes size / min(uplink, downlink) + latency."""

    def engine(self, up: Rates, down: Rates) -> Engine:
        """An engine in which transfers never meet."""
        from p2p.engines import IdealEngine

        return IdealEngine(up, down)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fifo:
    """Uplinks send whole messages one after the other; downlinks serve in the order of first bytes."""

    def engine(self, up: Rates, down: Rates) -> Engine:
        """An engine with one queue for each uplink and each downlink."""
        from p2p.engines import FifoEngine

        return FifoEngine(up, down)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fair:
    """All messages under way share the access links max-min fairly (the fluid model); latency is paid at the end.

    Attributes:
        grid: recompute rates only at multiples of this; none is exact
    """

    grid: PositiveSeconds | None = None

    def engine(self, up: Rates, down: Rates) -> Engine:
        """An engine that fills the links progressively whenever a transfer starts or ends."""
        from p2p.fair_engine import FairEngine

        return FairEngine(up, down, self.grid)


SHARINGS: dict[str, type] = {"ideal": Ideal, "fifo": Fifo, "fair": Fair}
