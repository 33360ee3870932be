"""Classes of devices: phones, homes, servers, each with its share of the clients and its own links and speed.

The presets are round assumptions about each access technology, made in 2024: uplinks slower than downlinks, homes and
cells unlike one another. They agree in size with the worldwide medians of the Speedtest Global Index of mid-2024
(mobile about 56 Mbit/s down, fixed about 94 Mbit/s down; uploads about a fifth and a half of that). For a study, give
rates measured on your own peers (`uplink: {kind: empirical, path: ..., column: ...}`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Len
from numpy.typing import NDArray

from p2p.distributions import Constant, Distribution, Lognormal, RatePerNode, SpeedPerNode, rounded
from p2p.shares import place_of, share_problem
from p2p.streams import draws
from p2p.units import Share

Floats = NDArray[np.float64]
Preset = Literal["phone_4g", "phone_5g", "home_dsl", "home_cable", "home_fibre", "server"]

_MBIT = 125e3
PRESETS: dict[str, tuple[float, float, float]] = {
    "phone_4g": (10, 40, 0.5),
    "phone_5g": (20, 150, 0.6),
    "home_dsl": (8, 40, 0.3),
    "home_cable": (20, 200, 0.3),
    "home_fibre": (100, 300, 0.4),
    "server": (1000, 1000, 0.0),
}
"""Median uplink and downlink in Mbit/s, and the spread (sigma of the logarithm) of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One class of clients. What it does not give comes from its preset, and else from the network or scenario.

    Attributes:
        name: what the class is called
        share: share of the clients that belong to it; all shares sum to 1
        preset: typical links of an access technology, see p2p/devices.py
        uplink: what such a client can send
        downlink: what such a client can receive
        compute: how many samples it trains on per second
    """

    name: Annotated[str, Len(1, 40)]
    share: Share
    preset: Preset | None = None
    uplink: RatePerNode | None = None
    downlink: RatePerNode | None = None
    compute: SpeedPerNode | None = None

    def law(self, what: Literal["uplink", "downlink", "compute"], fallback: Distribution) -> Distribution:
        """The law of one of its quantities."""
        own: Distribution | None = getattr(self, what)
        if own is not None:
            return own
        return fallback if self.preset is None or what == "compute" else _preset_law(self.preset, what)


def device_problems(devices: Sequence[Device]) -> list[str]:
    """Shares that are no whole, and names given twice."""
    if not devices:
        return []
    names = [device.name for device in devices]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems = [f"devices = {name}: two classes have this name; rename one" for name in twice]
    return problems + share_problem("devices", [device.share for device in devices])


def device_classes(devices: Sequence[Device], seed: int, clients: int) -> NDArray[np.int64]:
    """The class of each client, as a position in `devices`; zeros if there are none."""
    if not devices:
        return np.zeros(clients, dtype=np.int64)
    return place_of(draws(seed, "device", np.arange(clients)), [device.share for device in devices])


def per_client(
    devices: Sequence[Device],
    what: Literal["uplink", "downlink", "compute"],
    fallback: Distribution,
    seed: int,
    clients: int,
) -> Floats:
    """One drawn quantity of every client, by the law of its class; `fallback` where there is no class."""
    u = draws(seed, what, np.arange(clients))
    unit = "samples/s" if what == "compute" else "bytes/s"
    if not devices:
        return rounded(fallback.quantiles(u), unit)
    values, classes = np.empty(clients), device_classes(devices, seed, clients)
    for index, device in enumerate(devices):
        mine = classes == index
        values[mine] = rounded(device.law(what, fallback).quantiles(u[mine]), unit)
    return values


def _preset_law(preset: Preset, what: str) -> Distribution:
    up, down, sigma = PRESETS[preset]
    median = (up if what == "uplink" else down) * _MBIT
    return Lognormal(median=median, sigma=sigma) if sigma else Constant(value=median)
