"""Device classes (phones, homes, servers), each with its share of the clients and its own link rates and speed.

A preset gives what the class does not (p2p/links/device_presets.py).
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
from p2p.links.device_presets import PRESETS, DevicePreset, PresetName
from p2p.random_streams import draws

Floats = NDArray[np.float64]
Quantity = Literal["uplink", "downlink", "compute"]

_MBIT = 125e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One class of clients; values not given come from its preset, else from the network or scenario.

    Attributes:
        name: name of the class
        share: share of the clients that belong to it; all shares sum to 1
        preset: links, speed and energy of a kind of device, as `peerveil list devices` shows
        uplink: upload rate of such a client
        downlink: download rate of such a client
        compute: training speed of such a client, in samples per second
    """

    name: Annotated[str, Len(1, 40)]
    share: Fraction
    preset: PresetName | None = None
    uplink: RatePerNode | None = None
    downlink: RatePerNode | None = None
    compute: SpeedPerNode | None = None

    def distribution(self, what: Quantity, fallback: Distribution) -> Distribution:
        """Returns the distribution of one of the class's quantities."""
        # What a class says itself goes before its preset, and that before the network's.
        own: Distribution | None = getattr(self, what)
        if own is not None:
            return own
        return fallback if self.preset is None else _preset_distribution(PRESETS[self.preset], what)


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
    what: Quantity,
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
        values[members] = rounded(device.distribution(what, fallback).quantiles(u[members]), unit)
    return values


def per_client_energy(
    devices: Sequence[Device],
    what: Literal["per_byte_sent", "per_byte_received", "per_sample"],
    seed: int,
    clients: int,
) -> Floats:
    """Returns one energy rate of every client by the preset of its class; 0 where there is none."""
    rates = [0.0 if device.preset is None else float(getattr(PRESETS[device.preset], what)) for device in devices]
    # Without classes all clients are of class 0, whose rate is then 0.
    return np.array(rates or [0.0])[device_classes(devices, seed, clients)]


def _preset_distribution(preset: DevicePreset, what: Quantity) -> Distribution:
    if what == "compute":
        median, sigma = preset.speed, preset.speed_sigma
    else:
        median, sigma = (preset.up_mbit if what == "uplink" else preset.down_mbit) * _MBIT, preset.link_sigma
    # A lognormal needs sigma > 0; servers have no spread.
    return Lognormal(median=median, sigma=sigma) if sigma else Constant(value=median)
