"""Where links come from: the `network` section of a scenario."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge

from p2p.config.choices import Choice
from p2p.config.distributions import Constant, DelayPerPair, RatePerNode
from p2p.config.errors import UserError
from p2p.config.units import Fraction, PositiveSeconds, Rate, Unit
from p2p.links.device_classes import Device, device_problems
from p2p.links.latency import LatencyPerPair
from p2p.transport.sharing import SHARINGS, Fifo, Sharing


@dataclass(frozen=True, slots=True, kw_only=True)
class Retransmit:
    """A lost message is sent again, byte for byte.

    Attributes:
        tries: how often a message is sent at most, the first time included
        timeout: how long after its last byte has left a sender takes a message for lost
        receiver_offline: send puts a message on the uplink though its receiver is down, fail_fast gives the attempt up
            at once, as a connection that is refused would; the next try comes after the timeout either way
    """

    tries: Annotated[int, Ge(1)] = 5
    timeout: PositiveSeconds = 2.0
    receiver_offline: Literal["send", "fail_fast"] = "send"


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """What work costs in joules; nothing is counted for waiting. A rate that is not given is that of a device's preset.

    Attributes:
        per_byte_sent: for each byte that leaves a node
        per_byte_received: for each byte that arrives at one
        per_sample: for each sample trained on
    """

    per_byte_sent: Annotated[float, Unit("J/byte", low=0.0)] | None = None
    per_byte_received: Annotated[float, Unit("J/byte", low=0.0)] | None = None
    per_sample: Annotated[float, Unit("J/sample", low=0.0)] | None = None


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
        energy: joules per byte and sample, to have energy in the summary; {} takes those of the devices' presets
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
