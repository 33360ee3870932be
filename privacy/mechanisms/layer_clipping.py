"""Clipping factors: one for the whole vector, or one per layer."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def scale_factors(norms: ArrayLike, bound: float) -> NDArray[np.float64]:
    """Returns the clipping factor `1 / max(1, norm/bound)` of a vector of each norm.

    Guarantees:
        the scaled vector has L2 norm at most `bound`: sensitivity `bound` for add/remove, twice that for replace.
    """
    result: NDArray[np.float64] = 1.0 / np.maximum(1.0, np.asarray(norms, dtype=np.float64) / bound)
    return result


def split_bound(bound: float, layers: int) -> float:
    """Returns the bound per layer that bounds the whole vector by `bound`: `bound / sqrt(layers)`."""
    # Squares of the layers' norms add up to the square of the whole.
    return bound / math.sqrt(layers)


def layered_sensitivity(bound: float, layers: int) -> float:
    """Returns the sensitivity of the whole vector if each layer is clipped to `bound`: `bound sqrt(layers)`."""
    return bound * math.sqrt(layers)
