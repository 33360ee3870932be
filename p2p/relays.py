"""Relays: nodes that carry messages for others, so that no single node sees both ends of a way.

A data message crosses `hops` relays, drawn for each message. Its origin wraps it in one layer for every relay on the
way, and each relay takes its own layer off: the first hop is the largest, the last has the size of the message alone.
Every hop is a transmission of its own in the books. A hop that is lost is sent again by its own sender, to the same
relay; a relay that goes down loses what it holds. The keys between nodes and relays exist beforehand; their exchange
is not counted. Control messages do not cross relays: they run between a node and the proxy, who knows it anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from p2p.network import Network, Parcel
from p2p.records import KIND
from p2p.streams import draws

Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Relays:
    """The relays of one run.

    Attributes:
        nodes: their numbers
        hops: how many a message crosses
        layer_bytes: what one layer adds to a message
    """

    seed: int
    nodes: tuple[int, ...]
    hops: int
    layer_bytes: int

    def attach(self, network: Network) -> None:
        """From now on the relays pass on what they get."""

        def pass_on(parcel: Parcel) -> str:
            network.send_on(self.next_hop(parcel))
            return ""

        for node in self.nodes:
            network.attach(node, pass_on)

    def first_hops(self, parcels: list[Parcel]) -> list[Parcel]:
        """The parcels wrapped in all layers, on their way to their first relays; control messages as they are."""
        if parcels[0].kind == "control":
            return parcels
        added = self.hops * self.layer_bytes
        ways = self.ways(parcels).tolist()
        return [
            replace(
                parcel,
                receiver=way[0],
                onward=(*way[1:], parcel.receiver),
                size_bytes=parcel.size_bytes + added,
                overhead_bytes=parcel.overhead_bytes + added,
            )
            for parcel, way in zip(parcels, ways, strict=True)
        ]

    def next_hop(self, parcel: Parcel) -> Parcel:
        """A parcel as its relay hands it on: one layer less, and a fresh count of tries."""
        return replace(
            parcel,
            sender=parcel.receiver,
            receiver=parcel.onward[0],
            onward=parcel.onward[1:],
            size_bytes=parcel.size_bytes - self.layer_bytes,
            overhead_bytes=parcel.overhead_bytes - self.layer_bytes,
            attempt=1,
            hop=parcel.hop + 1,
            previous=parcel.row,
            as_sent=None,
        )

    def ways(self, parcels: list[Parcel]) -> Nodes:
        """The relays of each parcel, [parcel, hop], all different; drawn by the message's own name."""
        first = parcels[0]
        name = (KIND[first.kind], first.round_number, first.sender, first.sequence)
        ids = [np.array(part, dtype=np.int64) for part in name]
        receivers = np.array([parcel.receiver for parcel in parcels], dtype=np.int64)
        picks: list[Nodes] = []
        for hop in range(self.hops):
            u = draws(self.seed, "relay", *ids, receivers, np.array(hop, dtype=np.int64))
            pick = (u * (len(self.nodes) - hop)).astype(np.int64)
            # The pick counts among the relays not yet taken: step over those taken before, smallest first.
            for taken in np.sort(np.array(picks), axis=0) if picks else ():
                pick = pick + (pick >= taken)
            picks.append(pick)
        return np.asarray(self.nodes, dtype=np.int64)[np.stack(picks, axis=1)]
