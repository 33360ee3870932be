"""A stand-in for learning, for runs that simulate message sizes only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nodes.learning.averaging import Weight
from nodes.learning.carried_memory import MemoryRules
from nodes.learning.deferred_vectors import Matrix, Vector
from nodes.learning.interface import Scores
from privacy.sealing.envelopes import Payload
from privacy.stages.wire import DENSE, WireFormat


class _SharedVector(Vector):
    """A vector that very many messages carry: they share one payload as well."""

    __slots__ = ("_payload",)

    def payload(self) -> Payload:
        # Other vectors must not keep theirs: each would refer to the other, and large arrays would stay in memory.
        try:
            return self._payload
        except AttributeError:
            self._payload: Payload = super().payload()
            return self._payload


class NoLearning:
    """Replaces deferred learning for `learning: none`: vectors have the right size and are all zero."""

    learns = False
    threads = 1

    def __init__(
        self,
        dimension: int,
        wire: WireFormat = DENSE,
        seed: int = 0,
        *,
        sends_loss: bool = False,
        memory: MemoryRules | None = None,
    ) -> None:
        self.dimension = dimension
        # One vector serves all messages of an encoding, since its values are never changed.
        self._shared_first = _SharedVector(dimension, self._zeros)
        self._shared_model = _SharedVector(dimension, self._zeros, attached=(memory or MemoryRules()).blank(dimension))
        self._seed, self._wire, self._loss = seed, wire, float if sends_loss else None
        self._shared_releases: dict[int, Vector] = {}

    def first_model(self) -> Vector:
        """Returns a zero vector of the model's size."""
        return self._shared_first

    def start_training(self, node: int, round_number: int) -> None:
        """Does nothing."""

    def release(self, node: int, round_number: int) -> Vector:
        """Returns a zero vector of the model's size, encoded as releases are."""
        # The encoding may depend on the round, not on the node: there is nothing that nodes remember.
        if round_number not in self._shared_releases:
            wire = self._wire.bound(self._seed, round_number, node, {})
            self._shared_releases = {round_number: _SharedVector(self.dimension, self._zeros, wire, self._loss)}
        return self._shared_releases[round_number]

    def model(self, node: int) -> Vector:
        """Returns a zero vector of the model's size, with what goes with a model."""
        return self._shared_model

    def adopt(self, node: int, model: Vector) -> None:
        """Does nothing."""

    def protect(self, node: int, round_number: int, weight: float, noise: Callable[[], NDArray[np.float64]]) -> None:
        """Does nothing."""

    def step(
        self, node: int, updates: Sequence[Vector], weight: Weight = None, *, round_number: int | None = None
    ) -> None:
        """Does nothing."""

    def mix(self, node: int, models: Sequence[Vector], weights: Sequence[float] | None) -> None:
        """Does nothing."""

    def forget(self, round_number: int) -> None:
        """Does nothing."""

    def flush(self) -> None:
        """Does nothing."""

    def evaluate_before(self, round_number: int, nodes: Sequence[int]) -> None:
        """Does nothing."""

    def scores_before(self, round_number: int) -> Scores | None:
        """Returns None: there are no scores."""
        return None

    def _zeros(self) -> Matrix:
        return np.zeros(self.dimension, dtype=np.float32)
