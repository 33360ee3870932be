"""Quantities with units."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.config.units import SCALES, Unit, example, format_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("20 Mbit/s", "bytes/s", 2_500_000.0),
        ("20Mbit/s", "bytes/s", 2_500_000.0),
        ("1 MiB/s", "bytes/s", 2.0**20),
        ("40 ms", "s", 0.04),
        ("35 ms", "s", 0.035),
        ("30 min", "s", 1800.0),
        ("1e-3 s", "s", 0.001),
        ("2 MB", "bytes", 2e6),
        ("200 samples/s", "samples/s", 200.0),
        ("25%", "", 0.25),
        ("7", "s", 7.0),
        (7, "s", 7.0),
        (0.5, "", 0.5),
    ],
)
def test_quantities_are_understood(text: object, unit: str, number: float) -> None:
    """Text with a unit, text without, and bare numbers in the base unit."""
    assert parse_quantity(text, unit) == number


@pytest.mark.parametrize(
    ("text", "unit", "rule"),
    [
        ("20 Mbits", "bytes/s", "unknown unit; use one of"),
        ("40 ms", "bytes", "unknown unit"),
        ("fast", "bytes/s", "is not a quantity; write for example `20 Mbit/s`"),
        ("", "s", "is not a quantity"),
        (True, "s", "must be a quantity"),
        (None, "s", "must be a quantity"),
        ([1], "s", "must be a quantity"),
        (math.nan, "s", "finite"),
        ("nan", "s", "finite"),
        ("1e999 s", "s", "finite"),
        (10**400, "s", "finite"),
        ("1__0 s", "s", "is not a quantity"),
    ],
)
def test_what_is_no_quantity_is_refused(text: object, unit: str, rule: str) -> None:
    """The message says what would be one."""
    with pytest.raises(ValueError, match=rule):
        parse_quantity(text, unit)


def test_bounds_are_kept() -> None:
    """Open and closed ends."""
    with pytest.raises(ValueError, match="must be > 0"):
        Unit("s", low=0.0, low_open=True).check("0 s")
    with pytest.raises(ValueError, match="must be >= 0"):
        Unit("s", low=0.0).check(-1)
    with pytest.raises(ValueError, match="must be <= 1"):
        Unit("", low=0.0, high=1.0).check("150%")


@given(st.sampled_from(sorted(SCALES)), st.floats(min_value=1e-12, max_value=1e18))
def test_formatted_quantities_come_back(unit: str, value: float) -> None:
    """What is written out is read back as the very same number."""
    assert parse_quantity(format_quantity(value, unit), unit) == value


@given(st.integers(min_value=1, max_value=999))
def test_handy_units_are_used(number: int) -> None:
    """20 Mbit/s is written as that, not as bytes per second."""
    value = parse_quantity(f"{number} Mbit/s", "bytes/s")
    assert format_quantity(value, "bytes/s") == f"{number} Mbit/s"


def test_every_dimension_has_an_example() -> None:
    """The cure in an error message must itself be right."""
    for unit in SCALES:
        assert parse_quantity(example(unit), unit) > 0
