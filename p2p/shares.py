"""Shares of a population: whether they make a whole, and who falls into which."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_TOLERANCE = 1e-6


def share_problem(name: str, shares: Sequence[float]) -> list[str]:
    """A problem if the shares do not sum to 1; none otherwise."""
    total = math.fsum(shares)
    if abs(total - 1) <= _TOLERANCE:
        return []
    return [f"{name} = {total:.6g}: the shares must sum to 1; they sum to {total:.6g}"]


def place_of(u: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.int64]:
    """Which part each uniform draw falls into, parts taking their share of (0, 1) in the order given."""
    edges = np.cumsum(np.asarray(shares, dtype=np.float64))
    # Shares that sum to 1 but for rounding: the last part that has any takes what is left.
    last = max(index for index, share in enumerate(shares) if share > 0)
    return np.minimum(np.searchsorted(edges, u, side="right"), last)
