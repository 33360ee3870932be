"""The drawn links of one run, and latencies in advance: of pairs that will talk, of nodes that talk with everyone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.config.distributions import rounded
from p2p.links.device_classes import per_client
from p2p.links.latency import PairLatency, PlacedNodes, pair_latencies
from p2p.links.settings import NetworkSettings

Nodes = NDArray[np.int64]
Floats = NDArray[np.float64]


class LatencyCache(NamedTuple):
    """Receivers and latencies sender after sender; those of node i stand at starts[i] up to starts[i + 1]."""

    starts: Nodes
    receivers: Nodes
    seconds: Floats

    def find(self, sender: int, receivers: Sequence[int]) -> Floats | None:
        """The latencies of a sender's messages, if it sends to all it was expected to send to, in that order."""
        part = slice(self.starts.item(sender), self.starts.item(sender + 1))
        # The order counts as well: latencies are returned by place.
        return self.seconds[part] if self.receivers[part].tolist() == receivers else None


def prefetch_latencies(edges: Nodes, seconds: Floats, nodes: int) -> LatencyCache:
    """Puts edges (sender, receiver) and their latencies in the order of senders."""
    # Stable, so that a sender's receivers stay in the order in which it will name them.
    order = np.argsort(edges[:, 0], kind="stable")
    starts = np.searchsorted(edges[order, 0], np.arange(nodes + 1))
    return LatencyCache(starts, edges[order, 1], seconds[order])


class Links:
    """The links of one run: rates per node, latency per pair, all drawn by name from the seed."""

    def __init__(self, settings: NetworkSettings, seed: int, clients: int, nodes: int) -> None:
        self._seed = seed
        self._latency = settings.latency
        # Asked once: checking for a runtime protocol is slow, and latencies are drawn very often.
        self._drawn = None if isinstance(settings.latency, PairLatency) else settings.latency
        # Drawn once: where nodes are does not change, and latencies are asked for a few at a time.
        placed = getattr(settings.latency, "placed", None)
        self._placed: PlacedNodes | None = None if placed is None else placed(seed, nodes)
        self.up = np.full(nodes, np.inf)
        self.down = np.full(nodes, np.inf)
        self.up[:clients] = per_client(settings.devices, "uplink", settings.uplink, seed, clients)
        self.down[:clients] = per_client(settings.devices, "downlink", settings.downlink, seed, clients)
        self._clients = clients
        self._latency_cache: LatencyCache | None = None
        self._latencies_to: dict[int, Floats] = {}
        self._latencies_from: dict[int, Floats] = {}

    def limit(self, node: int, up: float | None, down: float | None) -> None:
        """Gives a node outside the clients links of its own; None stays unlimited."""
        self.up[node] = np.inf if up is None else up
        self.down[node] = np.inf if down is None else down

    @property
    def least_latency_s(self) -> float:
        """A lower bound on all latencies; 0 where none is known without drawing every pair."""
        # A latency model of a user need not have one.
        support = getattr(self._latency, "support", None)
        return 0.0 if support is None else float(rounded(np.array(support()[0]), "s"))

    def latencies(self, senders: Nodes | int, receivers: Nodes) -> Floats:
        """One-way latency from each sender, or from one, to the receiver beside it, in seconds."""
        return self._between(np.broadcast_to(senders, receivers.shape), receivers)

    def _between(self, senders: Nodes, receivers: Nodes) -> Floats:
        if self._placed is not None:
            return self._placed.latencies(senders, receivers)
        return pair_latencies(self._latency, self._seed, senders, receivers)

    def drawn_latencies(self, draws: Floats, senders: Nodes, receivers: Nodes) -> Floats:
        """The same where the random number of each pair is known already; not used if pairs are not drawn."""
        if self._drawn is None:
            return self._between(senders, receivers)
        return rounded(self._drawn.quantiles(draws), "s")

    def latency(self, sender: int, receiver: int) -> float:
        """The same for one pair, as a number."""
        # Nodes above the clients are proxy, server and relays: each talks with everyone, so its latencies are kept.
        if receiver >= self._clients:
            return self.latencies_to(receiver).item(sender)
        if sender >= self._clients:
            return self.latencies_from(sender).item(receiver)
        return self.latencies_of(sender, [receiver]).item()

    def latencies_of(self, sender: int, receivers: Sequence[int]) -> Floats:
        """The same, fast for few receivers: of pairs in the latency cache, and to and from proxy and server."""
        if sender >= self._clients:
            known: Floats = self.latencies_from(sender)[np.array(receivers)]
            return known
        found = self._latency_cache.find(sender, receivers) if self._latency_cache is not None else None
        return self.latencies(sender, np.array(receivers, dtype=np.int64)) if found is None else found

    def prefetch(self, edges: Nodes) -> None:
        """Draws the latencies of pairs (sender, receiver) that will soon talk, all at once; a matter of speed only."""
        if len(edges):
            seconds = self._between(edges[:, 0], edges[:, 1])
            self._latency_cache = prefetch_latencies(edges, seconds, len(self.up))

    def latencies_to(self, node: int) -> Floats:
        """Latencies of everyone to a node that talks with everyone."""
        if node not in self._latencies_to:
            everyone = np.arange(len(self.up))
            self._latencies_to[node] = self.latencies(everyone, np.full_like(everyone, node))
        return self._latencies_to[node]

    def latencies_from(self, node: int) -> Floats:
        """Latencies of a node that talks with everyone."""
        if node not in self._latencies_from:
            self._latencies_from[node] = self.latencies(node, np.arange(len(self.up)))
        return self._latencies_from[node]
