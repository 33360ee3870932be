"""Where nothing else is under way and nothing is going to happen, the times of messages follow from the links alone.

Whole phases of a round are then worked out as arrays: when everyone's message leaves and arrives, not one by one. The
arithmetic is that of fair sharing (see p2p/uplinks.py), to the last bit; what it does not cover is not foretold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.links import Links
from p2p.records import BOTTLENECK
from p2p.sharing import TOGETHER

Nodes = NDArray[np.int64]
Floats = NDArray[np.float64]

_ROOM = 1 - 1e-9
"""A downlink that is filled to the last bit might be short for a moment."""


class Sendings(NamedTuple):
    """Messages of one kind and phase, one in each place: true ends, bytes, and times; all of them arrive.

    What is a scalar is the same for all of them.
    """

    kind: str
    round_number: int
    senders: Nodes | int
    receivers: Nodes | int
    size_bytes: Nodes | int
    overhead_bytes: Nodes | int
    sent_s: Floats
    left_s: Floats
    arrived_s: Floats
    bottleneck: NDArray[np.int8] | int

    @property
    def last_s(self) -> float:
        """When the last of them arrives."""
        return float(self.arrived_s.max())


def by_time(some: Sendings) -> Sendings:
    """The same messages, those sent first in front."""
    if (some.sent_s[1:] >= some.sent_s[:-1]).all():
        return some
    order = np.argsort(some.sent_s, kind="stable")
    values: list[Any] = [value[order] if isinstance(value, np.ndarray) else value for value in some]
    return Sendings(*values)


class Load(NamedTuple):
    """What messages of one phase are, before it is known when they are sent: kind, round, and bytes."""

    kind: str
    round_number: int
    size_bytes: Nodes | int
    overhead_bytes: Nodes | int


class Foretelling:
    """Foretells messages over given links."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def knows(self, clients: int, hubs: Sequence[int]) -> bool:
        """Whether the hubs take and give all that comes at once, and every client can send, at a finite rate."""
        up, down = self._links.up, self._links.down
        unlimited = all(up[hub] == down[hub] == np.inf for hub in hubs)
        return unlimited and bool((up[:clients] < np.inf).all() and (up[:clients] > 0).all() and (down > 0).all())

    def to_hub(self, load: Load, senders: Nodes, hub: int, sent_s: Floats, left_s: Floats | None = None) -> Sendings:
        """One message of each node, alone on its uplink unless it is said when it has left."""
        if left_s is None:
            left_s = sent_s + load.size_bytes / self._links.up[senders]
        arrived_s = left_s + self._links.ways_to(hub)[senders]
        held = np.where(left_s == sent_s, BOTTLENECK["latency"], BOTTLENECK["uplink"]).astype(np.int8)
        return Sendings(*_head(load), senders, hub, *load[2:], sent_s, left_s, arrived_s, held)

    def from_hub(self, load: Load, hub: int, receivers: Nodes, sent_s: float) -> Sendings:
        """One message to each node, alone on its downlink."""
        left_s = sent_s + load.size_bytes / self._links.down[receivers]
        arrived_s = left_s + self._links.ways_from(hub)[receivers]
        held = np.where(left_s == sent_s, BOTTLENECK["latency"], BOTTLENECK["downlink"]).astype(np.int8)
        everywhere = np.full(len(receivers), sent_s)
        return Sendings(*_head(load), hub, receivers, *load[2:], everywhere, left_s, arrived_s, held)

    def fits(self, edges: Nodes, degree: int) -> bool:
        """Whether all messages along the edges, `degree` for each sender, could come at once at their highest rates."""
        senders, receivers = edges.T
        load = np.bincount(receivers, weights=self._links.up[senders] / degree, minlength=len(self._links.down))
        return bool((load <= self._links.down * _ROOM).all())

    def leave_s(self, senders: Nodes, degree: int, size_bytes: int, sent_s: Floats) -> Floats:
        """When the last bytes of `degree` messages of each sender have left, if they have its uplink to themselves."""
        rate = self._links.up[senders] / degree
        return sent_s + size_bytes / rate

    def latencies(self, edges: Nodes) -> Floats:
        """The latency of each edge."""
        return self._links.latencies(edges[:, 0], edges[:, 1])

    def joined(
        self, senders: Nodes, degree: int, size_bytes: int, sent_s: Floats, joins_s: Floats, small_bytes: int
    ) -> tuple[Floats, Floats]:
        """When `degree` messages of each sender have left if it sends a small one meanwhile, and when that has left.

        As `Uplinks` shares an uplink between two waves; where the small one comes later, each has it alone.
        """
        up = self._links.up[senders]
        alone_s, after_s = sent_s + size_bytes / (up / degree), joins_s + small_bytes / up
        rate = up / (degree + 1)
        rest = np.maximum(size_bytes - up / degree * (joins_s - sent_s), 0.0)
        ends_s, small_ends_s = joins_s + rest / rate, joins_s + small_bytes / rate
        first_s = np.minimum(ends_s, small_ends_s)
        over_s = first_s + TOGETHER * np.abs(first_s)
        later_s = first_s + np.maximum(rest - rate * (first_s - joins_s), 0.0) / (up / degree)
        small_later_s = first_s + np.maximum(small_bytes - rate * (first_s - joins_s), 0.0) / up
        shared = alone_s > joins_s
        left_s = np.where(shared, np.where(ends_s <= over_s, first_s, later_s), alone_s)
        small_left_s = np.where(shared, np.where(small_ends_s <= over_s, first_s, small_later_s), after_s)
        return left_s, small_left_s


def _head(load: Load) -> tuple[str, int]:
    return load.kind, load.round_number
