"""The short form of clipping and noise in the `privacy` section, and their arithmetic on rows of a float32 matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import NDArray

from p2p.config.choices import Choice
from privacy.calibration.strategies import CALIBRATIONS, Calibration

Matrix = NDArray[np.float32]
# A float32 product may round up, by a relative 2^-24 per coordinate; this margin keeps a clipped row's norm at most C.
_ROUND_DOWN = 1.0 - 2.0**-21


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatClip:
    """Scales an update down to a norm of at most `norm`, all layers as one vector.

    Attributes:
        norm: C, the largest L2 norm of an update.

    Guarantees:
        Every clipped row has L2 norm at most C; a row that is not finite becomes zero. One client's row therefore
        changes by at most 2C if its data set (or one record of it) is replaced, by C if the client is added or removed.
    """

    norm: Annotated[float, Gt(0)] = 1.0

    @property
    def norm_bound(self) -> float:
        """Bound that this clipping enforces."""
        return self.norm


@dataclass(frozen=True, slots=True, kw_only=True)
class NoClip:
    """Leaves updates unchanged. Guarantees nothing: sensitivity is unbounded and rigorous epsilon infinite."""

    @property
    def norm_bound(self) -> float:
        """No bound."""
        return math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise:
    """Adds independent normal noise to every coordinate of a release.

    Attributes:
        sigma: standard deviation of the noise added to each coordinate; give this or `calibrate`.
        calibrate: calibration of sigma from an epsilon.

    Guarantees:
        With clipping at C, one release has mu = 2C/std against its receivers (client level, replace-one). The noise
        is a float32 normal: attacks on floating-point rounding (Mironov 2012) are outside the model.
    """

    sigma: Annotated[float, Ge(0)] | None = None
    calibrate: Annotated[Calibration, Choice(CALIBRATIONS)] | None = None

    def __post_init__(self) -> None:
        if (self.sigma is None) == (self.calibrate is None):
            raise ValueError("needs exactly one of `sigma` and `calibrate`; remove or add one")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNoise:
    """Adds no noise. Guarantees nothing: rigorous epsilon is infinite."""


CLIPS: dict[str, type] = {"flat": FlatClip, "none": NoClip}
NOISES: dict[str, type] = {"gaussian": GaussianNoise, "none": NoNoise}


def clip_rows(rows: Matrix, norm: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Scales every row down to an L2 norm of at most `norm`, or one for each row, in place; returns the norms before.

    Guarantees:
        Every row has L2 norm at most `norm`, rounding included; a row that is not finite becomes zero.
    """
    norms: NDArray[np.float64] = np.empty(len(rows), dtype=np.float64)
    most = np.broadcast_to(norm, len(rows)).tolist()
    # Row by row: each is measured and scaled while it is in the cache.
    for index, (row, wide) in enumerate(_in_float64(rows)):
        norms[index] = found = _norm(wide)
        if not math.isfinite(found):
            # A diverged update cannot be scaled, and one NaN would destroy every model that averages it.
            row[:] = 0.0
        elif found > most[index]:
            # The product is computed in float64 and rounded once.
            wide *= most[index] / found * _ROUND_DOWN
            row[:] = wide
    return norms


def row_norms(rows: Matrix) -> NDArray[np.float64]:
    """Returns the L2 norm of each row, summed in float64."""
    return np.array([_norm(wide) for _, wide in _in_float64(rows)], dtype=np.float64)


def _norm(row: NDArray[np.float64]) -> float:
    # In float64: the squares of a long float32 row would lose digits in a sum of their own precision, and overflow.
    return math.sqrt(float(np.dot(row, row)))


def _in_float64(rows: Matrix) -> Iterator[tuple[Matrix, NDArray[np.float64]]]:
    """Yields each row, and its values in an array that the next row overwrites."""
    # A float64 copy of the whole matrix would take twice its memory.
    wide = np.empty(rows.shape[1])
    for row in rows:
        wide[:] = row
        yield row, wide
