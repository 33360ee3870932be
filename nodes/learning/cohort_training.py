"""Training of cohorts: nodes that train in the same round are computed together, when a value is first read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodes.learning.carried_memory import CarriedMemory
from nodes.learning.deferred_vectors import Matrix, Name
from nodes.learning.interface import Noise, Scores, Trainer
from nodes.learning.release_stages import ReleaseStages
from p2p.random_streams import stream, streams


@dataclass(slots=True)
class RoundTraining:
    """One round's training: what is pending, and what was computed.

    Attributes:
        started: whether a node has started to train
        waiting: nodes that have started and are not computed yet, with the number of their noise draw
        releases: the computed releases by node
        protections: weight and noise that are still to be applied to releases
        watched: nodes whose local models are scored
        before: their scores
        start_losses: clipped loss of the model that a node trained from on its own records, and its noise draw's number
        summed_losses: training loss of a node, summed over local epochs
    """

    started: bool = False
    waiting: dict[int, int] = field(default_factory=dict)
    releases: dict[int, Matrix] = field(default_factory=dict)
    protections: dict[int, tuple[float, Noise]] = field(default_factory=dict)
    watched: list[int] = field(default_factory=list)
    before: Scores | None = None
    start_losses: dict[int, tuple[float, int]] = field(default_factory=dict)
    summed_losses: dict[int, float] = field(default_factory=dict)

    def add_scores(self, scores: Scores) -> None:
        """Appends the scores of nodes that were trained later than others."""
        if self.before is not None:
            scores = (np.concatenate((self.before[0], scores[0])), np.concatenate((self.before[1], scores[1])))
        self.before = scores

    def protect(self, node: int) -> None:
        """Applies the weight and noise of a release, if they are still to be applied."""
        # In float64, rounded once: noise that cancels in a sum then cancels to float32 accuracy.
        weight, noise = self.protections.pop(node, (1.0, None))
        if noise is not None:
            row = (weight * self.releases[node].astype(np.float64) + noise()).astype(np.float32)
            row.flags.writeable = False
            self.releases[node] = row


@dataclass(slots=True)
class CohortTraining:
    """The training of all rounds that are not over; `models` is read, never written.

    Attributes:
        carried: what belongs to each model beside it
        seed: the seed of the noise
        releases_models: whether a release is the node's model after the noisy local step, instead of the noisy update
        sends_loss: whether nodes sum up their losses in training
        loss_bound: whether, and up to which value, nodes measure the model that they train from
    """

    trainer: Trainer
    pipeline: ReleaseStages
    models: Matrix
    carried: CarriedMemory
    seed: int
    releases_models: bool
    sends_loss: bool
    loss_bound: float | None
    rounds: dict[int, RoundTraining] = field(default_factory=dict)

    def round(self, round_number: int) -> RoundTraining:
        """Returns a round's training; creates it if nothing of it is known."""
        found = self.rounds.get(round_number)
        if found is None:
            found = self.rounds[round_number] = RoundTraining()
        return found

    def computed(self, round_number: int) -> RoundTraining:
        """Returns a round's training after all pending nodes have been trained together."""
        found = self.rounds.get(round_number)
        if found is None:
            # Nothing of it is known, and nothing is remembered of the question.
            return RoundTraining()
        if found.waiting:
            self._train(round_number, found)
        return found

    def compute_pending_of(self, node: int) -> None:
        """Computes a node's pending training before its model changes."""
        for number in [number for number, found in self.rounds.items() if node in found.waiting]:
            self.computed(number)

    def compute_all(self) -> None:
        """Computes everything that is pending."""
        for number in sorted(self.rounds):
            self.computed(number)
        for found in self.rounds.values():
            for node in list(found.protections):
                found.protect(node)

    def release(self, round_number: int, node: int) -> Matrix:
        """Returns the values of a release, computing them if they are pending."""
        found = self.computed(round_number)
        found.protect(node)
        return found.releases[node]

    def releases(self) -> Iterator[tuple[Name, Matrix]]:
        """Yields all computed releases with their names."""
        for number, found in self.rounds.items():
            for node, row in found.releases.items():
                yield ("release", number, node), row

    def noisy_start_losses(self, nodes: list[int], round_number: int, std: float) -> list[float]:
        """Returns the clipped and noised losses, on their own records, of the models that nodes trained from."""
        known, found = self.computed(round_number).start_losses, []
        for loss, number, node in ((*known[node], node) for node in nodes if node in known):
            # Named by the release's number, like its noise: training anew draws anew.
            found.append(loss + std * float(stream(self.seed, "loss noise", node, number).standard_normal()))
        return found

    def _train(self, round_number: int, found: RoundTraining) -> None:
        """Trains all nodes pending in a round together and prepares their releases."""
        waiting = found.waiting
        nodes = sorted(waiting)  # a fixed order: the grouping of models, and so rounding, must not depend on timing
        before = self.models[nodes]
        losses = self._start_losses(found, nodes, before)
        summed = np.zeros(len(nodes)) if self.sends_loss else None
        trained = self.trainer.train(before, nodes, round_number, [waiting[node] for node in nodes], summed)
        watched = set(found.watched)
        rows = [row for row, node in enumerate(nodes) if node in watched]
        if rows:
            found.add_scores(self.trainer.evaluate(trained[rows]))
        if summed is not None:
            found.summed_losses.update(zip(nodes, summed.tolist(), strict=True))
        # `before` is a copy (fancy indexing), so it can hold the updates without another matrix.
        updates = np.subtract(before, trained, out=before)
        generators = streams(self.seed, [("noise", node, waiting[node]) for node in nodes])
        updates = self.pipeline.apply(
            updates, nodes, generators, self.models, round_number, self.trainer.threads, losses, self.carried.masks
        )
        if self.releases_models:
            # The models that training started from; pending training is computed before a model changes.
            updates = self.models[nodes] - updates
        updates.flags.writeable = False
        found.releases.update(zip(nodes, updates, strict=True))
        found.waiting = {}

    def _start_losses(self, found: RoundTraining, nodes: list[int], before: Matrix) -> NDArray[np.float64] | None:
        """Returns the losses before training, if a stage or a schedule reads them, and keeps the clipped ones."""
        if self.loss_bound is None and not self.pipeline.needs_loss:
            return None
        losses = self.trainer.own_losses(before, nodes)
        if self.loss_bound is not None:
            clipped = np.clip(np.nan_to_num(losses, nan=self.loss_bound), 0.0, self.loss_bound).tolist()
            numbers = [found.waiting[node] for node in nodes]
            found.start_losses.update(zip(nodes, zip(clipped, numbers, strict=True), strict=True))
        return losses
