"""What happens to updates between training and release: clipping, then noise, on the rows of one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.mechanisms import FlatClip, GaussianNoise, NoClip, NoNoise

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ClipAndNoise:
    """Clips every row, then adds each client's own noise to its row, in place."""

    clip: FlatClip | NoClip
    noise: GaussianNoise | NoNoise
    stds: NDArray[np.float64]

    def apply(self, rows: Matrix, nodes: Sequence[int], generators: Sequence[np.random.Generator]) -> Matrix:
        """The rows as they may leave their clients."""
        clipped, _ = self.clip.clip(rows)
        return self.noise.add(clipped, self.stds[np.asarray(nodes, dtype=np.int64)], generators)


@dataclass(frozen=True, slots=True)
class AsTheyAre:
    """Lets updates out unchanged."""

    def apply(self, rows: Matrix, nodes: Sequence[int], generators: Sequence[np.random.Generator]) -> Matrix:
        """The same rows."""
        return rows
