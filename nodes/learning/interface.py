"""What processes ask of learning, and what learning asks of a trainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nodes.learning.averaging import Weight
from nodes.learning.deferred_vectors import Matrix, Vector

Scores = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Accuracy and loss of each model."""
Noise = Callable[[], NDArray[np.float64]]


class Learning(Protocol):
    """The learning operations of processes in a run; if `learns` is false, model steps may be skipped."""

    dimension: int
    learns: bool

    def first_model(self) -> Vector:
        """Returns the initial model, which the bootstrap server distributes."""

    def start_training(self, node: int, round_number: int) -> None:
        """Starts a node's local training from its current model."""

    def release(self, node: int, round_number: int) -> Vector:
        """Returns the clipped and noised update of a node that has started training."""

    def model(self, node: int) -> Vector:
        """Returns a snapshot of a node's current model."""

    def adopt(self, node: int, model: Vector) -> None:
        """Replaces a node's model by a received one."""

    def protect(self, node: int, round_number: int, weight: float, noise: Noise) -> None:
        """Sets a node's release to its clipped update times `weight`, plus `noise`."""

    def step(
        self, node: int, updates: Sequence[Vector], weight: Weight = None, *, round_number: int | None = None
    ) -> None:
        """Subtracts the mean of updates from a node's model, or their sum times `weight`, or times one for each.

        With a round's number it is that round's aggregation, with the noise, momentum and step size of the run.
        """

    def mix(self, node: int, models: Sequence[Vector], weights: Sequence[float] | None) -> None:
        """Replaces a node's model by the mean of models, or by their sum with these weights."""


class Trainer(Protocol):
    """A local trainer; `threads` is the number of cores that computations may use."""

    dimension: int
    threads: int

    def initial(self) -> Matrix:
        """Returns the initial model."""

    def train(
        self,
        models: Matrix,
        nodes: Sequence[int],
        round_number: int,
        numbers: Sequence[int],
        losses: NDArray[np.float64] | None = None,
    ) -> Matrix:
        """Returns the models after local training, and fills `losses` with their losses summed over local epochs.

        `numbers` counts each node's trainings before this one.
        """

    def evaluate(self, models: Matrix) -> Scores:
        """Returns accuracy and loss of each model on the test set."""

    def public_loss(self, model: Matrix) -> float:
        """Returns the loss of a model on the public validation set."""

    def own_losses(self, models: Matrix, nodes: Sequence[int]) -> NDArray[np.float64]:
        """Returns the loss of each node's model on the node's own records."""
