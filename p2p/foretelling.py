"""Where nothing else is under way and nothing is going to happen, the times of messages follow from the links alone.

Whole phases of a round are then worked out as arrays: when everyone's message leaves and arrives, not one by one. Each
way to share links has its own arithmetic for that, to the last bit the same as its engine's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.links import Links
from p2p.records import BOTTLENECK

Nodes = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int8]


class Load(NamedTuple):
    """What messages of one phase are, before it is known when they are sent: kind, round, and bytes."""

    kind: str
    round_number: int
    size_bytes: Nodes | int
    overhead_bytes: Nodes | int


class Sendings(NamedTuple):
    """Messages of one kind and phase, one in each place: true ends, bytes, and times; all of them arrive.

    What is a scalar is the same for all of them. `first_s` is when the first byte is at the receiver's link, where
    messages wait for one another there.
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
    bottleneck: Codes | int
    first_s: Floats | None = None

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


class Exchange(NamedTuple):
    """What comes of it when everyone sends to some others, averages once it has heard from all, and reports.

    Attributes:
        averages_s: when each member has all that it expects, and averages
        first_s: when the first of that has come
        heard: for each member the places of the edges over which it heard, in the order of arrival
    """

    updates: Sendings
    reports: Sendings
    averages_s: Floats
    first_s: Floats
    heard: Nodes


@dataclass(frozen=True)
class Plan:
    """An exchange to be foretold.

    Attributes:
        update: the bytes of one update
        report: the bytes of one report, which goes to `hub`
        edges: (sender, receiver), sorted; as many from each member as to it
        sends_s: when each member sends
    """

    update: Load
    report: Load
    hub: int
    members: Nodes
    edges: Nodes
    sends_s: Floats

    @property
    def degree(self) -> int:
        """How many each member sends to."""
        return len(self.edges) // len(self.members)

    @cached_property
    def by_receiver(self) -> Nodes:
        """The edges' places by receiver, then sender."""
        return np.argsort(self.edges[:, 1], kind="stable")

    def heard(self, values: NDArray[Any]) -> NDArray[Any]:
        """What there is for each edge as a row for each member: that of those whom it hears from."""
        return values[self.by_receiver].reshape(-1, self.degree)

    def averages_s(self, arrived_s: Floats) -> Floats:
        """When each member has heard from all, and has sent itself."""
        averages_s: Floats = np.maximum(self.heard(arrived_s).max(axis=1), self.sends_s)
        return averages_s


class Foretelling(ABC):
    """Foretells messages over given links; those of hubs (proxy and server) have no limits."""

    def __init__(self, links: Links) -> None:
        self.links = links

    def knows(self, clients: int, hubs: Sequence[int]) -> bool:
        """Whether the hubs take and give all that comes at once, and every client can send, at a finite rate."""
        up, down = self.links.up, self.links.down
        unlimited = all(up[hub] == down[hub] == np.inf for hub in hubs)
        return unlimited and bool((up[:clients] < np.inf).all() and (up[:clients] > 0).all() and (down > 0).all())

    def to_hub(self, load: Load, senders: Nodes, hub: int, sent_s: Floats) -> Sendings:
        """One message of each node, alone on its uplink."""
        return self.reported(load, senders, hub, sent_s, sent_s + load.size_bytes / self.links.up[senders])

    def reported(self, load: Load, senders: Nodes, hub: int, sent_s: Floats, left_s: Floats) -> Sendings:
        """The same where it is known when they have left."""
        arrived_s = left_s + self.links.ways_to(hub)[senders]
        held = np.where(self.links.up[senders] == np.inf, BOTTLENECK["latency"], BOTTLENECK["uplink"]).astype(np.int8)
        return Sendings(*load[:2], senders, hub, *load[2:], sent_s, left_s, arrived_s, held)

    @abstractmethod
    def from_hub(self, load: Load, hub: int, receivers: Nodes, sent_s: float) -> Sendings:
        """One message to each node, alone on its downlink."""

    @abstractmethod
    def exchange(self, plan: Plan) -> Exchange | None:
        """Everything from sending to the reports; None if it cannot be foretold."""

    @abstractmethod
    def apart(self, earlier: Sendings, places: Nodes, later: Sendings) -> bool:
        """Whether no message meets, on its receiver's link, the one in its place of the earlier ones."""


def exchanged(plan: Plan, updates: Sendings, reports: Sendings) -> Exchange:
    """What comes of updates that are in the order of edges."""
    arrivals_s = plan.heard(updates.arrived_s)
    in_turn = np.argsort(arrivals_s, axis=1, kind="stable")
    heard = np.take_along_axis(plan.by_receiver.reshape(-1, plan.degree), in_turn, axis=1)
    return Exchange(updates, reports, reports.sent_s, arrivals_s.min(axis=1), heard)
