"""Settings that are allowed and surely not meant: a forgotten unit, a useless delta, energy without rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from p2p.config.units import format_quantity
from scenarios.schema import Scenario

_LONG_LATENCY_S = 2.0
_SLOW_LINK = 1000.0
"""Bytes per second; a modem of 1990 is faster."""
_SLOW_TRAINING = 0.01


def implausible_settings(scenario: Scenario) -> list[str]:
    """Returns a warning `path = value: what it means; what was probably meant` for each such setting."""
    return [
        *_delays(scenario),
        *_rates(scenario),
        *_privacy(scenario),
        *_energy(scenario),
        *_retransmission(scenario),
    ]


def _delays(scenario: Scenario) -> Iterator[str]:
    for key in ("latency", "jitter"):
        median_s = _median(getattr(scenario.network, key))
        if median_s is not None and median_s > _LONG_LATENCY_S:
            meant = f"; if milliseconds were meant, write `{median_s:g} ms`"
            yield f"network.{key} = {format_quantity(median_s, 's')}: a message takes that long one way{meant}"


def _rates(scenario: Scenario) -> Iterator[str]:
    network = scenario.network
    places: list[tuple[str, Any]] = [(f"network.{way}", getattr(network, way)) for way in ("uplink", "downlink")]
    for index, device in enumerate(network.devices):
        places += [(f"network.devices.{index}.{way}", getattr(device, way)) for way in ("uplink", "downlink")]
    for node in ("proxy", "server", "relay"):
        places += [(f"network.{node}_{way}", getattr(network, f"{node}_{way}")) for way in ("uplink", "downlink")]
    for path, given in places:
        rate = _median(given)
        if rate is not None and rate < _SLOW_LINK:
            meant = f"; if megabits were meant, write `{rate:g} Mbit/s`"
            yield f"{path} = {format_quantity(rate, 'bytes/s')}: slower than any access link{meant}"
    speed = _median(scenario.compute)
    if speed is not None and speed < _SLOW_TRAINING:
        yield f"compute = {speed:g} samples/s: one sample takes {1 / speed:.0f} s; give samples per second"


def _privacy(scenario: Scenario) -> Iterator[str]:
    if scenario.privacy is None:
        return
    delta = scenario.privacy.resolved_budget().delta
    if delta > 1 / scenario.clients:
        path = "privacy.delta" if scenario.privacy.calibration is None else "privacy.noise.calibrate.delta"
        yield (
            f"{path} = {delta:g}: above 1/clients, which is {1 / scenario.clients:.2g}: publishing one client in full "
            f"would pass; take {1e-1 / scenario.clients:.1g} or less"
        )


def _energy(scenario: Scenario) -> Iterator[str]:
    energy = scenario.network.energy
    preset = any(device.preset is not None for device in scenario.network.devices)
    if energy is not None and not (energy.per_byte_sent or energy.per_byte_received or energy.per_sample or preset):
        yield (
            "network.energy: all rates are 0, so every figure will be 0; give joules per byte and sample, or a device "
            "preset that has them (`peerveil list devices`)"
        )


def _retransmission(scenario: Scenario) -> Iterator[str]:
    deadline_s = getattr(scenario.protocol, "deadline", None)
    timeout_s, loss = scenario.network.retransmit.timeout, scenario.network.loss
    if deadline_s is not None and loss and scenario.network.retransmit.tries > 1 and timeout_s >= deadline_s:
        yield (
            f"network.retransmit.timeout = {format_quantity(timeout_s, 's')}: not below protocol.deadline, which is "
            f"{format_quantity(float(deadline_s), 's')}, so no lost update is ever sent again in time; lower it"
        )


def _median(given: Any) -> float | None:
    """Returns the median of a distribution or a plain rate; None where there is none, as for a matrix of latencies."""
    # A lognormal names its median; its quantiles would import SciPy, which is slow.
    given = getattr(given, "median", given)
    if isinstance(given, int | float):
        return float(given)
    return float(given.quantiles(np.array([0.5]))[0]) if hasattr(given, "quantiles") else None
