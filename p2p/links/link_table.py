"""Latencies found in advance: of all pairs that will talk in a round, and of nodes that talk with everyone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int64]
Floats = NDArray[np.float64]


class LatencyCache(NamedTuple):
    """Receivers and latencies sender after sender; those of node i stand at starts[i] up to starts[i + 1]."""

    starts: Nodes
    receivers: Nodes
    seconds: Floats

    def find(self, sender: int, receivers: Sequence[int]) -> list[float] | None:
        """The latencies of a sender's messages, if it sends to all it was expected to send to, in that order."""
        part = slice(self.starts.item(sender), self.starts.item(sender + 1))
        known: list[float] = self.seconds[part].tolist()
        return known if self.receivers[part].tolist() == receivers else None


def prefetch_latencies(edges: Nodes, seconds: Floats, nodes: int) -> LatencyCache:
    """Puts edges (sender, receiver) and their latencies in the order of senders."""
    order = np.argsort(edges[:, 0], kind="stable")
    starts = np.searchsorted(edges[order, 0], np.arange(nodes + 1))
    return LatencyCache(starts, edges[order, 1], seconds[order])
