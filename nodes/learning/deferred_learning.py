"""Deferred learning: processes receive vectors immediately; their values are computed when first read.

Learning takes no simulated time, so it can be deferred. Nodes that train in the same round are trained together, and
the steps of a round are one matrix product. A cohort's updates are rows of one float32 matrix. Messages carry
references to rows, never copies, and a released row is never written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from nodes.aggregation.aggregator import Aggregator, ServerStep
from nodes.learning.averaging import AveragingStep, Weight, WeightedSums
from nodes.learning.carried_memory import Attachment, CarriedMemory, MemoryRules
from nodes.learning.cohort_training import CohortTraining
from nodes.learning.deferred_vectors import NO_ATTACHMENTS, Name, NamedVector, stacked
from nodes.learning.deferred_vectors import Matrix as Matrix
from nodes.learning.deferred_vectors import Vector as Vector
from nodes.learning.deferred_vectors import mean_vector as mean_vector
from nodes.learning.interface import Learning as Learning
from nodes.learning.interface import Noise, Scores, Trainer
from nodes.learning.release_stages import ReleaseStages
from p2p.random_streams import stream
from privacy.stages.wire import DENSE, Encoding


@dataclass(frozen=True, slots=True)
class LearningState:
    """The complete learning state between two rounds.

    Attributes:
        models: every client's model, and the server's in the last row.
        noise_numbers: number of noise draws of each client so far.
        given: named vectors that may still be read, and what goes with models under the name of its kind.
        memory: what the stages of a release and the aggregator remember, by name.
    """

    models: Matrix
    noise_numbers: NDArray[np.int64]
    given: Mapping[Name, Matrix]
    memory: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class DeferredLearning:
    """All clients' models and the run's pending computations; the last row is the server's model.

    Invariant: a node's training starts from its model at the time of `begin`. Pending training of a node is therefore
    computed before its model changes.

    Args:
        releases_models: whether a release is the node's model after the noisy local step, instead of the noisy update.
        loss_bound: whether, and up to which value, nodes measure the model that they train from on their own records.
        aggregator: noise, momentum and step size of aggregations.
        memory: what aggregators remember beside their model, and hand on with it.
    """

    learns = True

    def __init__(
        self,
        trainer: Trainer,
        clients: int,
        pipeline: ReleaseStages,
        seed: int,
        releases_models: bool = False,
        *,
        loss_bound: float | None = None,
        aggregator: Aggregator | None = None,
        memory: MemoryRules | None = None,
    ) -> None:
        self._aggregator = aggregator or Aggregator()
        # Asked at every step of every node.
        self._clips_to_median = pipeline.clips_to_median
        self._aggregations: dict[tuple[int, int], int] = {}
        self.dimension = trainer.dimension
        self._trainer, self._pipeline, self._seed = trainer, pipeline, seed
        self._first = trainer.initial()
        self._clients = clients
        self._models: Matrix = np.tile(self._first, (clients + 1, 1))
        self._carried = CarriedMemory(memory or MemoryRules(), clients + 1, self.dimension)
        sends_loss = self._aggregator.settings.sends_loss
        self._training = CohortTraining(
            trainer, pipeline, self._models, self._carried, seed, releases_models, sends_loss, loss_bound
        )
        self._steps: list[AveragingStep] = []
        self._noise_numbers: NDArray[np.int64] = np.zeros(clients, dtype=np.int64)
        self._named: WeakSet[NamedVector] = WeakSet()
        self._models_given = 0
        self._blank: Matrix | None = None  # created on first use; only resumed runs need it
        self.paused = False

    def audit(self, wrap: Callable[[Trainer], Trainer], noise_seed: int) -> None:
        """Replaces the trainer, and the seed of the noise; before the run starts."""
        self._trainer, self._seed = wrap(self._trainer), noise_seed
        self._training.trainer, self._training.seed = self._trainer, noise_seed

    @property
    def threads(self) -> int:
        """Number of cores that computations may use."""
        return self._trainer.threads

    def first_model(self) -> Vector:
        """Returns the initial model, which the bootstrap server distributes."""
        return Vector(self.dimension, lambda: self._first)

    def start_training(self, node: int, round_number: int) -> None:
        """Starts a node's local training from its current model."""
        self._take_steps()
        training = self._training.round(round_number)
        training.started = True
        if not self.paused:
            training.waiting[node] = int(self._noise_numbers[node])
        # Counted also while paused and for training that is never released: reusing noise would reveal a difference.
        self._noise_numbers[node] += 1

    def release(self, node: int, round_number: int) -> Vector:
        """Returns the clipped and noised update of a node that has started training."""
        loss = partial(self._loss_of, node, round_number) if self._aggregator.settings.sends_loss else None
        wire = self._pipeline.wire_of(round_number, node)
        return self._named_vector(("release", round_number, node), wire=wire, loss=loss)

    def _loss_of(self, node: int, round_number: int) -> float:
        """Returns a node's training loss, summed over local epochs; zero while learning is paused."""
        return 0.0 if self.paused else self._training.computed(round_number).summed_losses.get(node, 0.0)

    def released(self, nodes: Sequence[int], round_number: int) -> Matrix:
        """Returns the releases of nodes as the rows of a read-only matrix."""
        rows = [self.find(("release", round_number, node)) for node in nodes]
        return stacked(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    def model(self, node: int) -> Vector:
        """Returns a snapshot of a node's current model."""
        self._take_steps()
        self._models_given += 1
        row, rules = self._row(node), self._carried.rules
        snapshot = None if self.paused else self._models[row].copy()
        attached = rules.blank(self.dimension) if self.paused else self._carried.attachments_of(row)
        return self._named_vector(("model", node, self._models_given), snapshot, attached=attached)

    def snapshot(self, nodes: Sequence[int]) -> Matrix | None:
        """Returns copies of nodes' current models for an observer; None while paused. Changes nothing."""
        if self.paused:
            return None
        self._take_steps()
        return self._models[[self._row(node) for node in nodes]]

    def adopt(self, node: int, model: Vector) -> None:
        """Replaces a node's model by a received one."""
        if self.paused:
            return
        self._take_steps()
        self._training.compute_pending_of(node)
        self._models[self._row(node)] = model.array()
        self._carried.adopt(self._row(node), model.attached)

    def protect(self, node: int, round_number: int, weight: float, noise: Noise) -> None:
        """Sets a node's release to its clipped update times `weight`, plus `noise`."""
        if not self.paused:
            self._training.round(round_number).protections[node] = (weight, noise)

    def step(
        self, node: int, updates: Sequence[Vector], weight: Weight = None, *, round_number: int | None = None
    ) -> None:
        """Subtracts the mean of updates from a node's model, or their sum times `weight`, or times one for each.

        With a round's number it is that round's aggregation, with the noise, momentum and step size of the run.
        """
        plain = self._aggregator.is_plain and self._carried.masks is None
        finishes = round_number is not None and not plain
        finish = self._server_step(node, round_number or 0, len(updates)) if finishes and updates else None
        if updates and not self.paused:
            if finish is not None:
                self._take_steps()  # one at a time: momentum of the second needs that of the first
            row, median = self._row(node), self._clips_to_median
            self._steps.append(AveragingStep(row, list(updates), weight, finish=finish, to_median=median))

    def _server_step(self, node: int, round_number: int, updates: int) -> ServerStep:
        """Returns what the aggregator does with a mean; its noise is drawn once for every aggregation of the run."""
        number = self._aggregations.get((round_number, node), 0)
        # Counted also while paused: an aggregator that was restarted in a round must not use the same noise again.
        self._aggregations[round_number, node] = number + 1
        settings, noise = self._aggregator.settings, None
        if settings.noise is not None and not self.paused:
            drawn = stream(self._seed, "aggregate noise", node, round_number, number)
            noise = drawn.standard_normal(self.dimension, dtype=np.float32)
            noise *= np.float32(self._aggregator.mean_std(updates))
        after = settings.noise is not None and settings.noise.when == "after_momentum"
        by_median = settings.noise is not None and settings.noise.by_median
        taken = None if self._carried.masks is None else np.empty(self.dimension, dtype=np.float32)
        momentum = self._carried.momentum_of(self._row(node))
        return ServerStep(settings.momentum, momentum, noise, after, settings.step_size, by_median, taken)

    def mix(self, node: int, models: Sequence[Vector], weights: Sequence[float] | None) -> None:
        """Replaces a node's model by the mean of models, or by their sum with these weights."""
        if models and not self.paused:
            self._steps.append(AveragingStep(self._row(node), list(models), weights, replaces=True))

    def evaluate_before(self, round_number: int, nodes: Sequence[int]) -> None:
        """Requests the scores of these nodes' local models before aggregation, without clipping and noise."""
        if not self.paused:
            self._training.round(round_number).watched = list(nodes)

    def scores_before(self, round_number: int) -> Scores | None:
        """Returns accuracy and loss of the requested local models of a round, and forgets them."""
        training = self._training.computed(round_number)
        scores, training.before = training.before, None
        return scores

    def scores(self, nodes: Sequence[int]) -> Scores:
        """Returns accuracy and loss of the nodes' current models."""
        self._take_steps()
        return self._trainer.evaluate(self._models[[self._row(node) for node in nodes]])

    def scores_of(self, model: Vector) -> tuple[float, float]:
        """Returns accuracy and loss of one model."""
        accuracy, loss = self._trainer.evaluate(model.array()[None, :])
        return float(accuracy[0]), float(loss[0])

    def public_loss(self, node: int) -> float:
        """Returns the loss of a node's current model on the public validation set."""
        self._take_steps()
        return self._trainer.public_loss(self._models[self._row(node)])

    def noisy_losses(self, nodes: Sequence[int], round_number: int, std: float) -> list[float]:
        """Returns the clipped and noised losses, on their own records, of the models that nodes trained from."""
        return self._training.noisy_start_losses(list(nodes), round_number, std)

    def forget(self, round_number: int) -> None:
        """Frees a round's updates once no message carries them; vectors that are still referenced keep their values."""
        self._take_steps()
        for vector in self._named:
            if vector.name[:2] == ("release", round_number):
                vector.array()  # caches the values in the vector before their source is freed
        self._training.rounds.pop(round_number, None)

    def flush(self) -> None:
        """Computes everything pending; called at the end of each round, whether or not a checkpoint is written."""
        # Stacks, and so rounding, depend on what is computed together: settling only for checkpoints would let
        # a resumed run differ in the last bits.
        self._training.compute_all()
        self._take_steps()

    def state(self) -> LearningState:
        """Returns the state from which a resumed run continues."""
        self.flush()
        given: dict[Name, Matrix] = dict(self._training.releases())
        for vector in self._named:
            given.setdefault(vector.name, vector.array())
            for part, attachment in vector.attached.items():
                given.setdefault((part, *vector.name[1:]), attachment.find())
        return LearningState(self._models, self._noise_numbers, given, self._pipeline.memory | self._carried.state())

    def pause(self) -> None:
        """Pauses learning until `restore`: vectors have only names, and noise draws are only counted."""
        self.paused = True

    def restore(self, state: LearningState) -> None:
        """Restores the state that an earlier run saved at this simulated time."""
        self.paused = False
        self._models[:] = state.models
        self._noise_numbers[:] = state.noise_numbers
        for name, kept in self._pipeline.memory.items():
            kept[:] = state.memory[name]
        self._carried.restore(state.memory)
        open_rounds = {number for number, training in self._training.rounds.items() if training.started}
        for (what, number, node), row in state.given.items():
            if what == "release" and number in open_rounds:
                self._training.rounds[number].releases[node] = row
        for vector in list(self._named):
            if vector.name in state.given:
                parts = {part: state.given[part, *vector.name[1:]] for part in vector.attached}
                vector.set_value(state.given[vector.name], parts)
            elif vector.name[0] != "release" or vector.name[1] not in open_rounds:
                # Unreferenced when the state was saved, so it is never read again; Python has not collected it yet.
                self._named.discard(vector)

    def find(self, name: Name) -> Matrix:
        """Returns the values of a release, computing them if they are pending."""
        what, round_number, node = name
        if what != "release":
            raise KeyError(name)
        return self._training.release(round_number, node)

    def blank(self) -> Matrix:
        """Returns zeros, the placeholder for every vector while learning is paused."""
        if self._blank is None:
            self._blank = np.zeros(self.dimension, dtype=np.float32)
            self._blank.flags.writeable = False
        return self._blank

    def _named_vector(
        self,
        name: Name,
        array: Matrix | None = None,
        wire: Encoding = DENSE,
        loss: Callable[[], float] | None = None,
        attached: Mapping[str, Attachment] = NO_ATTACHMENTS,
    ) -> Vector:
        vector = NamedVector(self, name, array, wire, loss, attached)
        self._named.add(vector)
        return vector

    def _take_steps(self) -> None:
        """Takes all pending steps at once, after the pending training of the affected nodes."""
        if not self._steps:
            return
        # Reading the updates may train nodes and so needs the models before these steps.
        mixture = WeightedSums(self._steps)
        for row in {step.row for step in self._steps}:
            self._training.compute_pending_of(row)
        taken = [(step.row, step.finish.taken) for step in self._steps if step.finish is not None]
        self._steps = []
        mixture.subtract(self._models)
        for row, step in taken:
            if step is not None:
                self._carried.note(row, step)

    def _row(self, node: int) -> int:
        return min(node, self._clients)  # all node numbers beyond the clients' mean the server
