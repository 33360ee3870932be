"""Formats numbers for display: three significant digits and a unit."""

from __future__ import annotations

import math

_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
NOTHING = "-"


def bytes_text(amount: float | None) -> str:
    """Formats `12300000` as `12.3 MB` (powers of 1000)."""
    if amount is None:
        return NOTHING
    scaled, unit = float(amount), 0
    # 999.5 and not 1000: it would be rounded to 1000 of the smaller unit.
    while abs(scaled) >= 999.5 and unit < len(_BYTE_UNITS) - 1:
        scaled, unit = scaled / 1000, unit + 1
    return f"{_three_digits(scaled)} {_BYTE_UNITS[unit]}"


def seconds_text(time_s: float | None) -> str:
    """Formats a duration: `4.2 s`, `35 ms`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`."""
    if time_s is None:
        return NOTHING
    if time_s < 0:
        return f"-{seconds_text(-time_s)}"
    # Otherwise shown as `0 ms`.
    if time_s == 0:
        return "0 s"
    if time_s < 0.9995:
        return f"{_three_digits(time_s * 1000)} ms"
    if time_s < 119.5:
        return f"{_three_digits(time_s)} s"
    for unit_s, unit, smaller_s, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        # Rounded to the smaller unit first, so that 59.9 min becomes 1 h and not 60 min.
        whole, rest = divmod(round(time_s / smaller_s) * smaller_s, unit_s)
        if whole:
            return f"{whole} {unit} {rest // smaller_s} {smaller}" if rest else f"{whole} {unit}"
    return f"{_three_digits(time_s)} s"


def joules_text(energy_j: float) -> str:
    """Formats `16200` as `16.2 kJ`."""
    for unit, name in ((1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ"), (1.0, "J"), (1e-3, "mJ")):
        # 0.9995 and not 1: it would be rounded to 1000 of the smaller unit.
        if abs(energy_j) >= 0.9995 * unit:
            return f"{_three_digits(energy_j / unit)} {name}"
    return f"{_three_digits(energy_j * 1e6)} uJ" if energy_j else "0 J"


def share_text(share: float | None) -> str:
    """Formats `0.634` as `63%`, with one digit more below 10%."""
    if share is None:
        return NOTHING
    return f"{share:.0%}" if abs(share) >= 0.0995 or share == 0 else f"{share:.1%}"


def accuracy_text(accuracy: float | None) -> str:
    """Formats an accuracy with three decimals."""
    return NOTHING if accuracy is None else f"{accuracy:.3f}"


def count_text(count: float | None) -> str:
    """Formats a count with thousands separators; a mean of counts keeps one decimal."""
    if count is None:
        return NOTHING
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"


def epsilon_text(epsilon: float | str | None) -> str:
    """Formats an epsilon: three significant digits, two from 1000 on, `inf` for no guarantee."""
    if epsilon is None:
        return NOTHING
    if epsilon == "inf" or math.isinf(float(epsilon)):
        return "inf"
    return (
        f"{float(epsilon):.3g}"
        if abs(float(epsilon)) < 1000
        else f"{float(epsilon):.2g}".replace("e+0", "e").replace("e+", "e")
    )


def _three_digits(number: float) -> str:
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:.0f}"
