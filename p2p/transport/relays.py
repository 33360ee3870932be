"""Relays: nodes that forward messages of others, so that no single node sees both ends of a path.

A data message crosses `hops` relays, drawn for each message. Its origin wraps it in one layer for every relay on the
path, and each relay removes its own: the first hop is the largest, the last has the size of the message alone. Every
hop is a row of its own in the message log. A lost hop is sent again by its own sender, to the same relay; a relay that
goes down loses what it holds. The keys between nodes and relays exist beforehand; their exchange is not counted.
Control messages do not cross relays: they run between a node and the proxy, which knows the node anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2p.log.records import KIND
from p2p.random_streams import draws

Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Relays:
    """The relays of one run.

    Attributes:
        nodes: their node numbers
        hops: the number of relays on a path
        layer_bytes: the size of one layer
    """

    seed: int
    nodes: tuple[int, ...]
    hops: int
    layer_bytes: int

    def ways(self, kind: str, round_number: int, sender: int, sequence: int, receivers: Sequence[int]) -> Nodes:
        """Returns the relays of each message, [message, hop], all different; drawn by the message's own name."""
        ids = [np.array(part, dtype=np.int64) for part in (KIND[kind], round_number, sender, sequence)]
        ends = np.array(receivers, dtype=np.int64)
        picks: list[Nodes] = []
        for hop in range(self.hops):
            u = draws(self.seed, "relay", *ids, ends, np.array(hop, dtype=np.int64))
            # One relay less to choose from at every hop, so no rejection loop is needed.
            pick = (u * (len(self.nodes) - hop)).astype(np.int64)
            # The pick counts among the relays not yet taken: step over those taken before, smallest first.
            for taken in np.sort(np.array(picks), axis=0) if picks else ():
                pick = pick + (pick >= taken)
            picks.append(pick)
        return np.asarray(self.nodes, dtype=np.int64)[np.stack(picks, axis=1)]
