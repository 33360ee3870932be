"""Presets of devices: access links, training speed and energy, each with where its figures come from.

Medians of links are rounded assumptions of 2024; their magnitudes agree with the worldwide medians of the Speedtest
Global Index of mid-2024 (mobile about 56 Mbit/s down, fixed about 94 Mbit/s down; uploads about a fifth and a half of
that). Training speeds are those of a small model (some ten thousand parameters): for another model scale them, or give
`compute`. For a study, use figures measured on the actual peers (`uplink: {kind: empirical, path: ..., column: ...}`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PresetName = Literal["phone_4g", "phone_5g", "home_dsl", "home_cable", "home_fibre", "server"]

_LINKS = "links: rounded medians of 2024, of the size of the Speedtest Global Index"
_PHONE_SPREAD = (
    "speed: sigma 0.93 measured on the CPU scores of 333 phones of 2019-20 (AI Benchmark list in FLASH, WWW 2021), "
    "median assumed"
)
# Quoted from memory: the table of the paper was not at hand when these figures were written, nor later on.
_HUANG = "(power model of Huang et al., MobiSys 2012; slopes quoted from memory, not checked against the paper)"
_LTE = f"energy per byte: LTE radio at work, 438.39 and 51.97 mW per Mbit/s up and down {_HUANG}"
_WIFI = f"energy per byte: Wi-Fi radio at work, 283.17 and 137.01 mW per Mbit/s up and down {_HUANG}"
_BITS_PER_BYTE = 8


def _joules_per_byte(milliwatts_per_mbit: float) -> float:
    """Converts a power slope in mW per Mbit/s, which is mJ per Mbit, to joules per byte."""
    return milliwatts_per_mbit * 1e-3 * _BITS_PER_BYTE / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePreset:
    """One kind of device.

    Attributes:
        up_mbit, down_mbit: median rates in Mbit/s.
        link_sigma: spread of both rates (sigma of the logarithm); 0 for none.
        speed: median training speed in samples per second, for a small model.
        speed_sigma: its spread.
        per_byte_sent, per_byte_received: joules per byte, radio at work; its base power is not in it.
        per_sample: joules per trained sample.
        source: where the figures come from, and which are assumptions.
    """

    up_mbit: float
    down_mbit: float
    link_sigma: float
    speed: float
    speed_sigma: float
    per_byte_sent: float
    per_byte_received: float
    per_sample: float
    source: str


def _phone(up_mbit: float, down_mbit: float, link_sigma: float, energy: str) -> DevicePreset:
    return DevicePreset(
        up_mbit=up_mbit,
        down_mbit=down_mbit,
        link_sigma=link_sigma,
        speed=200.0,
        speed_sigma=0.93,
        per_byte_sent=_joules_per_byte(438.39),
        per_byte_received=_joules_per_byte(51.97),
        per_sample=0.025,
        source=f"{_LINKS}; {_PHONE_SPREAD}; {energy}; per sample: 5 W while it trains, assumed",
    )


def _home(up_mbit: float, down_mbit: float, link_sigma: float) -> DevicePreset:
    return DevicePreset(
        up_mbit=up_mbit,
        down_mbit=down_mbit,
        link_sigma=link_sigma,
        speed=1000.0,
        speed_sigma=0.5,
        per_byte_sent=_joules_per_byte(283.17),
        per_byte_received=_joules_per_byte(137.01),
        per_sample=0.03,
        source=f"{_LINKS}; speed: assumed; {_WIFI}; per sample: a laptop of 30 W, assumed",
    )


PRESETS: dict[str, DevicePreset] = {
    "phone_4g": _phone(10, 40, 0.5, _LTE),
    "phone_5g": _phone(20, 150, 0.6, f"{_LTE}, taken for 5G too"),
    "home_dsl": _home(8, 40, 0.3),
    "home_cable": _home(20, 200, 0.3),
    "home_fibre": _home(100, 300, 0.4),
    "server": DevicePreset(
        up_mbit=1000,
        down_mbit=1000,
        link_sigma=0.0,
        speed=5000.0,
        speed_sigma=0.0,
        per_byte_sent=0.0,
        per_byte_received=0.0,
        per_sample=0.03,
        source="a rented machine with 1 Gbit/s, all assumed; its network card draws the same at rest: bytes are free",
    ),
}
