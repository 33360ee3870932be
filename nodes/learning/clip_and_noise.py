"""The privacy pipeline between training and release: clipping, then noise, on the rows of one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodes.learning.thread_pool import chunks, run_parallel
from privacy.mechanisms.clip_and_noise import FlatClip, GaussianNoise, NoClip, NoNoise

Matrix = NDArray[np.float32]
# Floats per part; small cohorts fit one part and need no thread pool. The number is not tuned.
NUMBERS_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True)
class ClipAndNoise:
    """Clips every row, then adds each client's noise to its row, in place."""

    clip: FlatClip | NoClip
    noise: GaussianNoise | NoNoise
    stds: NDArray[np.float64]

    def apply(
        self,
        rows: Matrix,
        nodes: Sequence[int],
        generators: Sequence[np.random.Generator],
        threads: int,
        noise_factor: float = 1.0,
    ) -> Matrix:
        """Returns the private updates; they are bit-identical for any number of threads."""
        clipped, _ = self.clip.clip(rows)
        stds = self.stds[np.asarray(nodes, dtype=np.int64)] * noise_factor

        def add_noise(part: slice) -> None:
            self.noise.add(clipped[part], stds[part], generators[part])

        # Whole rows, at least one per part: a row's noise comes from one generator.
        run_parallel(add_noise, chunks(len(rows), -(-NUMBERS_AT_ONCE // rows.shape[1])), threads)
        return clipped


@dataclass(frozen=True, slots=True)
class NoProtection:
    """Releases updates unchanged."""

    def apply(
        self,
        rows: Matrix,
        nodes: Sequence[int],
        generators: Sequence[np.random.Generator],
        threads: int,
        noise_factor: float = 1.0,
    ) -> Matrix:
        """Returns the rows unchanged."""
        return rows
