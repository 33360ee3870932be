"""The range of noises, norms and epsilons. Updates are single-precision numbers, whose range ends at about 1e38."""

from __future__ import annotations

from collections.abc import Iterable

LEAST, MOST = 1e-30, 1e30
"""Squares and ratios of numbers in this range, as in mu = sensitivity / std, neither overflow nor vanish."""


def out_of_range(scales: Iterable[tuple[str, float | None]]) -> list[str]:
    """Returns a problem `path = value: rule` for every given scale out of range; 0 and infinity mean none."""
    return [
        f"{path} = {value:g}: must be between {LEAST:g} and {MOST:g}, far inside the range of single precision"
        for path, value in scales
        if value is not None and 0.0 < value < float("inf") and not LEAST <= value <= MOST
    ]
