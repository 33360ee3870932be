"""Where links come from: the `network` section of a scenario, and the drawn links of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from p2p.config.choices import Choice
from p2p.config.distributions import Constant, DelayPerPair, RatePerNode, rounded
from p2p.config.errors import UserError
from p2p.config.units import Fraction, PositiveSeconds, Rate, Unit
from p2p.links.device_classes import Device, device_classes, device_problems, per_client
from p2p.links.latency import LatencyPerPair, PairLatency, pair_latencies
from p2p.links.link_table import LatencyCache, prefetch_latencies
from p2p.transport.sharing import SHARINGS, Fifo, Sharing

Nodes = NDArray[np.int64]
Floats = NDArray[np.float64]

_FEW = 8
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
class Energy:
    """What work costs in joules; nothing is counted for waiting.

    Attributes:
        per_byte_sent: for each byte that leaves a node
        per_byte_received: for each byte that arrives at one
        per_sample: for each sample trained on
    """

    per_byte_sent: Annotated[float, Unit("J/byte", low=0.0)] = 0.0
    per_byte_received: Annotated[float, Unit("J/byte", low=0.0)] = 0.0
    per_sample: Annotated[float, Unit("J/sample", low=0.0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """Access links, latencies and losses. Links are full duplex; only clients' links are drawn.

    Attributes:
        sharing: how messages under way share the access links
        uplink: what a client can send, unless its device class says
        downlink: what a client can receive, unless its device class says
        devices: classes of clients in shares that sum to 1; what a class gives goes before uplink and downlink
        latency: one way, per pair of nodes; a distribution, regions of the world, or a matrix
        jitter: added to the latency of each message
        loss: share of messages that vanish on the way
        retransmit: how lost messages are sent again
        proxy_uplink: what the proxy can send; unlimited unless given
        proxy_downlink: what the proxy can receive; unlimited unless given
        server_uplink: what the server can send; unlimited unless given
        server_downlink: what the server can receive; unlimited unless given
        relay_uplink: what a relay can send, where anonymity.routing is relay
        relay_downlink: what a relay can receive
        energy: joules per byte and sample, to have energy in the summary
    """

    sharing: Annotated[Sharing, Choice(SHARINGS)] = field(default_factory=Fifo)
    uplink: RatePerNode = field(default_factory=lambda: Constant(value=2.5e6))
    downlink: RatePerNode = field(default_factory=lambda: Constant(value=12.5e6))
    devices: tuple[Device, ...] = ()
    latency: LatencyPerPair = field(default_factory=lambda: Constant(value=0.04))
    jitter: DelayPerPair | None = None
    loss: Fraction = 0.0
    retransmit: Retransmit = field(default_factory=Retransmit)
    proxy_uplink: Rate | None = None
    proxy_downlink: Rate | None = None
    server_uplink: Rate | None = None
    server_downlink: Rate | None = None
    relay_uplink: Rate = 125e6
    relay_downlink: Rate = 125e6
    energy: Energy | None = None

    def __post_init__(self) -> None:
        problems = device_problems(self.devices)
        if problems:
            raise UserError(problems)


class Links:
    """The links of one run: rates per node, latency per pair, all drawn by name from the seed."""

    def __init__(self, settings: NetworkSettings, seed: int, clients: int, nodes: int) -> None:
        self._seed = seed
        self._latency = settings.latency
        self._devices = settings.devices
        self._classes = device_classes(settings.devices, seed, clients)
        self.up = np.full(nodes, np.inf)
        self.down = np.full(nodes, np.inf)
        self.up[:clients] = per_client(settings.devices, "uplink", settings.uplink, seed, clients)
        self.down[:clients] = per_client(settings.devices, "downlink", settings.downlink, seed, clients)
        self._clients = clients
        self._foreseen: LatencyCache | None = None
        self._ways_to: dict[int, Floats] = {}
        self._ways_from: dict[int, Floats] = {}
        self._dense: Floats | None = None
        if nodes <= _DENSE_UP_TO:
            everyone = np.arange(nodes)
            self._dense = pair_latencies(self._latency, seed, everyone[:, None], everyone[None, :])

    def limit(self, node: int, up: float | None, down: float | None) -> None:
        """Gives a node outside the clients links of its own; None stays unlimited."""
        self.up[node] = np.inf if up is None else up
        self.down[node] = np.inf if down is None else down

    def device_of(self, node: int) -> str:
        """The name of a client's device class; empty for other nodes, and where there are no classes."""
        return self._devices[self._classes[node]].name if self._devices and node < len(self._classes) else ""

    def latencies(self, senders: Nodes | int, receivers: Nodes) -> Floats:
        """One-way latency from each sender, or from one, to the receiver beside it, in seconds."""
        if self._dense is not None:
            return np.asarray(self._dense[senders, receivers])
        return pair_latencies(self._latency, self._seed, np.broadcast_to(senders, receivers.shape), receivers)

    def drawn_latencies(self, draws: Floats, senders: Nodes, receivers: Nodes) -> Floats:
        """The same where the random number of each pair is known already; not used if pairs are not drawn."""
        if self._dense is not None:
            return np.asarray(self._dense[senders, receivers])
        if isinstance(self._latency, PairLatency):
            return rounded(self._latency.between(self._seed, senders, receivers), "s")
        return rounded(self._latency.quantiles(draws), "s")

    def latency_list(self, sender: int, receivers: Sequence[int]) -> list[float]:
        """The same, fast for few receivers: of pairs that were foreseen, and to and from proxy and server."""
        if self._dense is not None:
            if len(receivers) == 1:
                return [self._dense.item(sender, receivers[0])]
            row = self._dense[sender]
            return [row.item(receiver) for receiver in receivers] if len(receivers) < _FEW else row[receivers].tolist()
        if len(receivers) == 1 and receivers[0] >= self._clients:
            return [self.latencies_to(receivers[0]).item(sender)]
        if sender >= self._clients:
            known = self.latencies_from(sender)
            return [known.item(receivers[0])] if len(receivers) == 1 else known[np.array(receivers)].tolist()
        found = self._foreseen.find(sender, receivers) if self._foreseen is not None else None
        return self.latencies(sender, np.array(receivers, dtype=np.int64)).tolist() if found is None else found

    def prefetch(self, edges: Nodes) -> None:
        """Draws the latencies of pairs (sender, receiver) that will soon talk, all at once; a matter of speed only."""
        if self._dense is None and len(edges):
            seconds = pair_latencies(self._latency, self._seed, edges[:, 0], edges[:, 1])
            self._foreseen = prefetch_latencies(edges, seconds, len(self.up))

    def latencies_to(self, node: int) -> Floats:
        """Latencies of everyone to a node that talks with everyone."""
        if node not in self._ways_to:
            everyone = np.arange(len(self.up))
            self._ways_to[node] = self.latencies(everyone, np.full_like(everyone, node))
        return self._ways_to[node]

    def latencies_from(self, node: int) -> Floats:
        """Latencies of a node that talks with everyone."""
        if node not in self._ways_from:
            self._ways_from[node] = self.latencies(node, np.arange(len(self.up)))
        return self._ways_from[node]
