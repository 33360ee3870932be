"""Fractions of a population: validation, and assignment of members to parts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_TOLERANCE = 1e-6  # allows for thirds written as 0.3333333


def share_problem(name: str, shares: Sequence[float]) -> list[str]:
    """Returns a problem if the shares do not sum to 1, else an empty list."""
    total = math.fsum(shares)
    if abs(total - 1) <= _TOLERANCE:
        return []
    return [f"{name} = {total:.6g}: the shares must sum to 1; they sum to {total:.6g}"]


def place_of(u: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.int64]:
    """Returns the part that each uniform draw falls into; parts divide (0, 1) by their shares in the given order."""
    edges = np.cumsum(np.asarray(shares, dtype=np.float64))
    # The edges may end slightly below 1; draws beyond go to the last part with a positive share.
    last = max(index for index, share in enumerate(shares) if share > 0)
    return np.minimum(np.searchsorted(edges, u, side="right"), last)
