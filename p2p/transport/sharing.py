"""Models of bandwidth sharing on access links: the `network.sharing` section of a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from p2p.config.units import PositiveSeconds
from p2p.transport.core.sharing_codes import FAIR, FIFO, IDEAL


class Sharing(Protocol):
    """A sharing model, identified in the event core by its code."""

    code: ClassVar[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ideal:
    """Messages do not compete: each takes size / min(uplink, downlink) + latency."""

    code: ClassVar[int] = IDEAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Fifo:
    """Uplinks send whole messages one after the other; downlinks serve in the order of first bytes."""

    code: ClassVar[int] = FIFO


@dataclass(frozen=True, slots=True, kw_only=True)
class Fair:
    """All messages under way share the access links max-min fairly (the fluid model); latency is paid at the end.

    Attributes:
        grid: recompute rates only at multiples of this; none is exact
    """

    code: ClassVar[int] = FAIR
    grid: PositiveSeconds | None = None


SHARINGS: dict[str, type] = {"ideal": Ideal, "fifo": Fifo, "fair": Fair}
