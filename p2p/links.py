"""Where links come from: the `network` section of a scenario, and the drawn links of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from p2p.choices import Choice
from p2p.distributions import Constant, DelayPerPair, Distribution, RatePerNode, rounded
from p2p.sharing import SHARINGS, Fifo, Sharing
from p2p.streams import draws
from p2p.units import PositiveSeconds, Rate, Share

Nodes = NDArray[np.int64]
Floats = NDArray[np.float64]

_DENSE_UP_TO = 1500  # nodes; above this a matrix of latencies would cost more memory than drawing costs time


@dataclass(frozen=True, slots=True, kw_only=True)
class Retransmit:
    """A lost message is sent again, byte for byte.

    Attributes:
        tries: how often a message is sent at most, the first time included
        timeout: how long after its last byte has left a sender takes a message for lost
    """

    tries: Annotated[int, Ge(1)] = 5
    timeout: PositiveSeconds = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """Access links, latencies and losses. Links are full duplex; only clients' links are drawn.

    Attributes:
        sharing: how messages under way share the access links
        uplink: what a client can send
        downlink: what a client can receive
        latency: one way, per pair of nodes, the same in both directions
        loss: share of messages that vanish on the way
        retransmit: how lost messages are sent again
        proxy_uplink: what the proxy can send; unlimited unless given
        proxy_downlink: what the proxy can receive; unlimited unless given
        server_uplink: what the server can send; unlimited unless given
        server_downlink: what the server can receive; unlimited unless given
    """

    sharing: Annotated[Sharing, Choice(SHARINGS)] = field(default_factory=Fifo)
    uplink: RatePerNode = field(default_factory=lambda: Constant(value=2.5e6))
    downlink: RatePerNode = field(default_factory=lambda: Constant(value=12.5e6))
    latency: DelayPerPair = field(default_factory=lambda: Constant(value=0.04))
    loss: Share = 0.0
    retransmit: Retransmit = field(default_factory=Retransmit)
    proxy_uplink: Rate | None = None
    proxy_downlink: Rate | None = None
    server_uplink: Rate | None = None
    server_downlink: Rate | None = None


class Links:
    """The links of one run: rates per node, latency per pair, all drawn by name from the seed."""

    def __init__(self, settings: NetworkSettings, seed: int, clients: int, nodes: int) -> None:
        self._seed = seed
        self._latency = settings.latency
        self.up = _rates(settings.uplink, seed, "uplink", clients, nodes)
        self.down = _rates(settings.downlink, seed, "downlink", clients, nodes)
        self._dense: Floats | None = None
        if nodes <= _DENSE_UP_TO:
            everyone = np.arange(nodes)
            self._dense = self._draw(everyone[:, None], everyone[None, :])

    def limit(self, node: int, up: float | None, down: float | None) -> None:
        """Gives a node outside the clients links of its own; None stays unlimited."""
        self.up[node] = np.inf if up is None else up
        self.down[node] = np.inf if down is None else down

    def latencies(self, sender: int, receivers: Nodes) -> Floats:
        """One-way latency from a sender to each of its receivers, in seconds."""
        if self._dense is not None:
            return np.asarray(self._dense[sender, receivers])
        return self._draw(np.full_like(receivers, sender), receivers)

    def _draw(self, one: Nodes, other: Nodes) -> Floats:
        # Drawn for the unordered pair: both directions of a path take the same time.
        u = draws(self._seed, "latency", np.minimum(one, other), np.maximum(one, other))
        return rounded(self._latency.quantiles(u), "s")


def _rates(law: Distribution, seed: int, name: str, clients: int, nodes: int) -> Floats:
    rates = np.full(nodes, np.inf)
    rates[:clients] = rounded(law.quantiles(draws(seed, name, np.arange(clients))), "bytes/s")
    return rates
