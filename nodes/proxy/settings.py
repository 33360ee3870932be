"""The `proxy` section of a scenario: whether a standby takes over from the trusted proxy."""

from __future__ import annotations

from dataclasses import dataclass

from p2p.config.units import PositiveSeconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """What happens when the proxy is lost.

    Attributes:
        standby: a second node has the registry and the round's secret, and takes over; without it the run stops
        takeover: how long that takes
    """

    standby: bool = False
    takeover: PositiveSeconds = 10.0
