"""Conversion of quantities with units (`20 Mbit/s`, `40 ms`, `2 MB`, `30 min`) to floats in seconds, bytes, bytes/s.

A field of a strategy is annotated with one of the types below (`deadline_s: Seconds`), and the loader converts the
text of a scenario file to the number. A bare number is in the base unit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
}
_BITS = {"bit": 0.125, "kbit": 125.0, "Mbit": 125e3, "Gbit": 125e6}
_RATES = {f"{name}/s": value for name, value in (_BYTES | _BITS).items()}

SCALES: dict[str, dict[str, float]] = {
    "s": _SECONDS,
    "bytes": _BYTES | _BITS | {"bytes": 1.0},
    "bytes/s": _RATES | {"bytes/s": 1.0, "kbps": 125.0, "Mbps": 125e3, "Gbps": 125e6},
    "samples/s": {"samples/s": 1.0},
    "J/byte": {"J/byte": 1.0, "J/B": 1.0, "mJ/byte": 1e-3, "uJ/byte": 1e-6, "nJ/byte": 1e-9},
    "J/sample": {"J/sample": 1.0, "mJ/sample": 1e-3, "uJ/sample": 1e-6},
    "": {"": 1.0, "%": 0.01},
}
_HANDY = {"s": ("h", "min", "s", "ms"), "bytes": ("GB", "MB", "kB"), "bytes/s": ("Gbit/s", "Mbit/s", "kbit/s")}
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S*)\s*")


def parse_quantity(text: object, unit: str) -> float:
    """Parses `text` as a number of `unit`s.

    Raises:
        ValueError: not a finite number, or not in a unit of that dimension; the message lists the valid units.
    """
    # A bool is an int in Python, but `true` is not a quantity.
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise ValueError(f"must be a quantity; write for example `{example(unit)}`")
    value = _parse_text(text, unit) if isinstance(text, str) else _as_float(text)
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # a whole number beyond 1e308
        return math.inf


def _parse_text(text: str, unit: str) -> float:
    match = _NUMBER.fullmatch(text)
    scales = SCALES[unit]
    if match is None:
        # NaN leads to the caller's message "must be a finite number", which fits these words better.
        if text.strip().lower() in {"nan", "inf", "-inf", "+inf", ".nan", ".inf", "-.inf", "infinity"}:
            return math.nan
        raise ValueError(f"is not a quantity; write for example `{example(unit)}`")
    number, suffix = match.groups()
    if suffix and suffix not in scales:
        raise ValueError(f"has an unknown unit; use one of {', '.join(name for name in scales if name)}")
    scale = scales.get(suffix, 1.0)
    # Dividing by an integer rounds once: 35 ms becomes the float 0.035, which 35 * 1e-3 is not.
    return float(number) * scale if scale >= 1 else float(number) / round(1 / scale)


def format_quantity(value: float, unit: str) -> str:
    """Formats a quantity so that `parse_quantity` restores the exact number; in a larger unit if that is short."""
    for name in _HANDY.get(unit, ()):
        number = value / SCALES[unit][name]
        text = f"{number:.5g} {name}"
        # The comparison is exact: saved scenarios must reproduce the run bit by bit.
        if 1 <= number < 1000 and parse_quantity(text, unit) == value:
            return text
    # Below 1e15 a float of a whole number has all digits; `repr` is exact for the others.
    number_text = str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return f"{number_text} {unit}".strip()


def example(unit: str) -> str:
    """Returns an example quantity of that dimension, as a user would write it."""
    samples = {
        "s": "40 ms",
        "bytes": "2 MB",
        "bytes/s": "20 Mbit/s",
        "samples/s": "200 samples/s",
        "": "0.01",
    }
    return samples.get(unit, f"1 {unit}")


@dataclass(frozen=True, slots=True)
class Unit:
    """Marks a float field whose text may have a unit; `low` (open or not) and `high` bound the number."""

    base: str
    low: float = -math.inf
    low_open: bool = False
    high: float = math.inf

    def check(self, text: object) -> float:
        """Parses the text and checks the bounds; raises ValueError with the rule."""
        value = parse_quantity(text, self.base)
        if value < self.low or (self.low_open and value == self.low):
            raise ValueError(f"must be {'>' if self.low_open else '>='} {self.low:g}")
        if value > self.high:
            raise ValueError(f"must be <= {self.high:g}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return {"type": ["number", "string"], "examples": [example(self.base)]}


Seconds = Annotated[float, Unit("s", low=0.0)]
PositiveSeconds = Annotated[float, Unit("s", low=0.0, low_open=True)]
Bytes = Annotated[float, Unit("bytes", low=0.0)]
Rate = Annotated[float, Unit("bytes/s", low=0.0, low_open=True)]
Fraction = Annotated[float, Unit("", low=0.0, high=1.0)]
