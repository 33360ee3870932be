"""Learning left out: for runs that move byte counts only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nodes.workbench import Scores, Vector


class NoLearning:
    """Stands in for a workbench when `learning: none`: vectors have a size and no numbers worth looking at."""

    learns = False

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._same = Vector(dimension, lambda: np.zeros(dimension, dtype=np.float32))

    def first_model(self) -> Vector:
        """A vector of the right size."""
        return self._vector()

    def begin(self, node: int, round_number: int) -> None:
        """Nothing is trained."""

    def release(self, node: int, round_number: int) -> Vector:
        """A vector of the right size."""
        return self._vector()

    def model(self, node: int) -> Vector:
        """A vector of the right size."""
        return self._vector()

    def adopt(self, node: int, model: Vector) -> None:
        """Nothing is kept."""

    def protect(self, node: int, round_number: int, weight: float, noise: Callable[[], NDArray[np.float64]]) -> None:
        """Nothing is noised."""

    def step(self, node: int, updates: Sequence[Vector], weight: float | None = None) -> None:
        """Nothing moves."""

    def forget(self, round_number: int) -> None:
        """Nothing was kept."""

    def settle(self) -> None:
        """Nothing is pending."""

    def watch(self, round_number: int, nodes: Sequence[int]) -> None:
        """There is nothing to measure."""

    def scores_before(self, round_number: int) -> Scores | None:
        """There is nothing to measure."""
        return None

    def _vector(self) -> Vector:
        return self._same
