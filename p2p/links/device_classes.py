"""Device classes (phones, homes, servers), each with its share of the clients and its own link rates and speed.

The presets are rounded assumptions of 2024 about each access technology: uplinks are slower than downlinks, and rates
vary between clients. Their magnitudes agree with the worldwide medians of the Speedtest Global Index of mid-2024
(mobile about 56 Mbit/s down, fixed about 94 Mbit/s down; uploads about a fifth and a half of that). For a study, use
rates measured on the actual peers (`uplink: {kind: empirical, path: ..., column: ...}`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Len
from numpy.typing import NDArray

from p2p.config.distributions import Constant, Distribution, Lognormal, RatePerNode, SpeedPerNode, rounded
from p2p.config.population_shares import place_of, share_problem
from p2p.config.units import Fraction
from p2p.random_streams import draws

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
    """One class of clients; values not given come from its preset, else from the network or scenario.

    Attributes:
        name: name of the class
        share: share of the clients that belong to it; all shares sum to 1
        preset: typical links of an access technology, see p2p/links/device_classes.py
        uplink: upload rate of such a client
        downlink: download rate of such a client
        compute: training speed of such a client, in samples per second
    """

    name: Annotated[str, Len(1, 40)]
    share: Fraction
    preset: Preset | None = None
    uplink: RatePerNode | None = None
    downlink: RatePerNode | None = None
    compute: SpeedPerNode | None = None

    def law(self, what: Literal["uplink", "downlink", "compute"], fallback: Distribution) -> Distribution:
        """Returns the distribution of one of the class's quantities."""
        own: Distribution | None = getattr(self, what)
        if own is not None:
            return own
        return fallback if self.preset is None or what == "compute" else _preset_distribution(self.preset, what)


def device_problems(devices: Sequence[Device]) -> list[str]:
    """Returns the problems of device classes: shares that do not sum to 1, and duplicate names."""
    if not devices:
        return []
    names = [device.name for device in devices]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems = [f"devices = {name}: two classes have this name; rename one" for name in twice]
    return problems + share_problem("devices", [device.share for device in devices])


def device_classes(devices: Sequence[Device], seed: int, clients: int) -> NDArray[np.int64]:
    """Returns the class of each client as an index into `devices`; zeros if there are none."""
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
    """Draws one quantity of every client from the distribution of its class, or from `fallback` without classes."""
    # One draw per client, whatever its class: changing one class leaves the values of the others unchanged.
    u = draws(seed, what, np.arange(clients))
    unit = "samples/s" if what == "compute" else "bytes/s"
    if not devices:
        return rounded(fallback.quantiles(u), unit)
    values, classes = np.empty(clients), device_classes(devices, seed, clients)
    for index, device in enumerate(devices):
        members = classes == index
        values[members] = rounded(device.law(what, fallback).quantiles(u[members]), unit)
    return values


def _preset_distribution(preset: Preset, what: str) -> Distribution:
    up, down, sigma = PRESETS[preset]
    median = (up if what == "uplink" else down) * _MBIT
    # A lognormal needs sigma > 0; servers have no spread.
    return Lognormal(median=median, sigma=sigma) if sigma else Constant(value=median)
