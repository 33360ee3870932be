"""Canaries: clients that send a direction of their own, as a coin decides, instead of what they learnt.

A canary's update is +v or -v, its norm the bound C that every update is clipped to: a replaced client at the largest
distance that the accountant allows, 2C. In/out canaries send v or a zero update, at distance C. Noise is added to
either, and no event depends on which one is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.adversaries.observers import Observer
from nodes.adversaries.sightings import Sightings, received_by
from nodes.adversaries.traffic import Traffic
from nodes.learning.deferred_vectors import Matrix
from nodes.learning.interface import Scores
from p2p.random_streams import stream
from privacy.audits.settings import Neighbours


@dataclass(frozen=True, slots=True)
class Canaries:
    """The canaries of one run.

    Attributes:
        nodes: clients that are canaries, sorted
        coins: +1 or -1 for each
        directions: [canaries, d], of length one
        neighbours: whether -1 means the opposite direction (`replace`) or a zero update (`add_remove`)
    """

    nodes: NDArray[np.int64]
    coins: NDArray[np.float64]
    directions: Matrix
    neighbours: Neighbours = "replace"

    @property
    def factors(self) -> NDArray[np.float64]:
        """What each canary's direction is multiplied by."""
        return self.coins if self.neighbours == "replace" else (self.coins + 1.0) / 2.0

    @classmethod
    def drawn(
        cls, nodes: NDArray[np.int64], dimension: int, seed: int, run: int, neighbours: Neighbours = "replace"
    ) -> Canaries:
        """Draws coins and directions from streams of the audit's own seed, anew for each run."""
        coins: NDArray[np.float64] = stream(seed, "audit coins", run).choice([-1.0, 1.0], len(nodes))
        rows = stream(seed, "audit directions", run).standard_normal((len(nodes), dimension), dtype=np.float32)
        return cls(nodes, coins, rows / np.linalg.norm(rows, axis=1, keepdims=True), neighbours)


class CanaryTrainer:
    """Trains clients as `trainer` does, and lets canaries make their own step.

    Args:
        norm: length of a canary's update.
        still: whether the other clients stay where they are instead of training.
    """

    def __init__(self, trainer: Any, canaries: Canaries, norm: float, *, still: bool) -> None:
        self._trainer, self._still = trainer, still
        self._steps = canaries.directions * (norm * canaries.factors).astype(np.float32)[:, None]
        self._rows = {node: row for row, node in enumerate(canaries.nodes.tolist())}
        self.dimension: int = trainer.dimension
        self.threads: int = trainer.threads

    def initial(self) -> Matrix:
        """Returns the initial model."""
        first: Matrix = self._trainer.initial()
        return first

    def train(
        self,
        models: Matrix,
        nodes: Sequence[int],
        round_number: int,
        numbers: Sequence[int],
        losses: NDArray[np.float64] | None = None,
    ) -> Matrix:
        """Returns the models after local training; a canary's is its model minus its step, and it has no loss."""
        trained = models.copy()
        others = [place for place, node in enumerate(nodes) if node not in self._rows]
        if others and not self._still:
            mine = [nodes[place] for place in others], round_number, [numbers[place] for place in others]
            # An array of their own: indexing `losses` by a list would give the trainer a copy.
            their_losses = None if losses is None else np.zeros(len(others))
            trained[others] = self._trainer.train(models[others], *mine, their_losses)
            if losses is not None:
                losses[others] = their_losses
        for place, node in enumerate(nodes):
            if node in self._rows:
                # Minus: a release is the model before training less the model after it.
                trained[place] -= self._steps[self._rows[node]]
        return trained

    def evaluate(self, models: Matrix) -> Scores:
        """Returns accuracy and loss of each model on the test set."""
        scores: Scores = self._trainer.evaluate(models)
        return scores

    def public_loss(self, model: Matrix) -> float:
        """Returns the loss of a model on the public validation set."""
        return float(self._trainer.public_loss(model))

    def own_losses(self, models: Matrix, nodes: Sequence[int]) -> NDArray[np.float64]:
        """Returns the loss of each node's model on the node's own records."""
        losses: NDArray[np.float64] = self._trainer.own_losses(models, nodes)
        return losses


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReceivers(Observer):
    """All receivers of a run; who received what is told by the column `by`, so that every view can be read from it."""

    def sees(self, traffic: Traffic, nodes: Sequence[int]) -> Sightings:
        """Returns every message that reached its destination."""
        return received_by(traffic, np.ones(len(traffic.columns["kind"]), dtype=np.bool_))
