"""Learning beside the clock: vectors are promised when a process needs them and computed when somebody looks.

Learning takes no simulated time, so it can wait: nodes that train in the same round are trained together, and the
steps of a round are one matrix product. A cohort's updates are rows of one float32 matrix; messages carry handles to
rows, never copies, and a released row is not written to again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from nodes.averaging import Mixture, Step
from nodes.vectors import Given, Name, stacked
from nodes.vectors import Matrix as Matrix
from nodes.vectors import Vector as Vector
from nodes.vectors import mean_vector as mean_vector
from p2p.streams import streams

Scores = tuple[NDArray[np.float64], NDArray[np.float64]]
Noise = Callable[[], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class LearningState:
    """All that learning holds between two rounds.

    Attributes:
        models: every client's, and the server's in the last row.
        noise_numbers: how often each client has drawn noise.
        given: vectors that somebody may still look at.
    """

    models: Matrix
    noise_numbers: NDArray[np.int64]
    given: Mapping[Name, Matrix]


class Bench(Protocol):
    """What a process may ask of learning while the clock runs; if it does not learn, steps need not be taken."""

    dimension: int
    learns: bool

    def first_model(self) -> Vector:
        """What the bootstrap server hands out."""

    def begin(self, node: int, round_number: int) -> None:
        """A node starts to train from its model as it is now."""

    def release(self, node: int, round_number: int) -> Vector:
        """The clipped and noised update of a node that began to train."""

    def model(self, node: int) -> Vector:
        """A node's model as it is now; later steps do not change it."""

    def adopt(self, node: int, model: Vector) -> None:
        """A node takes over a model it received."""

    def protect(self, node: int, round_number: int, weight: float, noise: Noise) -> None:
        """A node's release will be its clipped update times its weight, plus noise."""

    def step(self, node: int, updates: Sequence[Vector], weight: float | None = None) -> None:
        """A node moves its model by minus the mean of some updates, or by minus their sum times a weight."""


class Teacher(Protocol):
    """What the workbench needs of a learner; `threads` is how many cores arithmetic may use."""

    dimension: int
    threads: int

    def initial(self) -> Matrix:
        """The first model."""

    def train(self, models: Matrix, nodes: Sequence[int], round_number: int) -> Matrix:
        """The models after local training."""

    def evaluate(self, models: Matrix) -> Scores:
        """Accuracy and loss of each model on the test set."""


class Pipeline(Protocol):
    """What happens to updates between training and release."""

    def apply(
        self, rows: Matrix, nodes: Sequence[int], generators: Sequence[np.random.Generator], threads: int
    ) -> Matrix:
        """Clips and noises rows in place."""


class Workbench:
    """All clients' models and this run's pending arithmetic. The row after the clients' is the server's."""

    learns = True

    def __init__(self, teacher: Teacher, clients: int, pipeline: Pipeline, seed: int) -> None:
        self.dimension = teacher.dimension
        self._teacher, self._pipeline, self._seed = teacher, pipeline, seed
        self._first = teacher.initial()
        self._clients = clients
        self._models: Matrix = np.tile(self._first, (clients + 1, 1))
        self._waiting: dict[int, dict[int, int]] = {}
        self._releases: dict[int, dict[int, Matrix]] = {}
        self._steps: list[Step] = []
        self._masks: dict[tuple[int, int], tuple[float, Noise]] = {}
        self._noise_numbers: NDArray[np.int64] = np.zeros(clients, dtype=np.int64)
        self._watched: dict[int, list[int]] = {}
        self._before: dict[int, Scores] = {}
        self._open: set[int] = set()
        self._given: WeakSet[Given] = WeakSet()
        self._models_given = 0
        self._blank: Matrix | None = None
        self.asleep = False

    def first_model(self) -> Vector:
        """What the bootstrap server hands out."""
        return Vector(self.dimension, lambda: self._first)

    def begin(self, node: int, round_number: int) -> None:
        """A node starts to train from its model as it is now; its noise, once drawn, is never drawn again."""
        self._take_steps()
        self._open.add(round_number)
        if not self.asleep:
            self._waiting.setdefault(round_number, {})[node] = int(self._noise_numbers[node])
        self._noise_numbers[node] += 1

    def release(self, node: int, round_number: int) -> Vector:
        """The clipped and noised update of a node that began to train."""
        return self._give(("release", round_number, node))

    def released(self, nodes: Sequence[int], round_number: int) -> Matrix:
        """The releases of some nodes as rows; nobody writes to them."""
        rows = [self.find(("release", round_number, node)) for node in nodes]
        return stacked(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    def model(self, node: int) -> Vector:
        """A node's model as it is now; later steps do not change it."""
        self._take_steps()
        self._models_given += 1
        snapshot = None if self.asleep else self._models[self._row(node)].copy()
        return self._give(("model", node, self._models_given), snapshot)

    def adopt(self, node: int, model: Vector) -> None:
        """A node takes over a model it received."""
        if self.asleep:
            return
        self._take_steps()
        self._train_from_now(node)
        self._models[self._row(node)] = model.array()

    def protect(self, node: int, round_number: int, weight: float, noise: Noise) -> None:
        """A node's release will be its clipped update times its weight, plus noise."""
        if not self.asleep:
            self._masks[round_number, node] = (weight, noise)

    def step(self, node: int, updates: Sequence[Vector], weight: float | None = None) -> None:
        """A node moves its model by minus the mean of some updates, or by minus their sum times a weight."""
        if updates and not self.asleep:
            self._steps.append(Step(self._row(node), list(updates), weight))

    def watch(self, round_number: int, nodes: Sequence[int]) -> None:
        """Asks for the accuracy of these nodes' local models before they are aggregated."""
        if not self.asleep:
            self._watched[round_number] = list(nodes)

    def scores_before(self, round_number: int) -> Scores | None:
        """Accuracy and loss of the watched nodes' local models of a round."""
        self._train(round_number)
        return self._before.pop(round_number, None)

    def scores(self, nodes: Sequence[int]) -> Scores:
        """Accuracy and loss of nodes' models as they are now."""
        self._take_steps()
        return self._teacher.evaluate(self._models[[self._row(node) for node in nodes]])

    def scores_of(self, model: Vector) -> tuple[float, float]:
        """Accuracy and loss of one model."""
        accuracy, loss = self._teacher.evaluate(model.array()[None, :])
        return float(accuracy[0]), float(loss[0])

    def forget(self, round_number: int) -> None:
        """Lets go of a round's updates once no message carries them; vectors in somebody's hands keep their numbers."""
        self._take_steps()
        self._open.discard(round_number)
        for vector in self._given:
            if vector.name[:2] == ("release", round_number):
                vector.array()
        for kept in (self._releases, self._waiting, self._watched, self._before):
            kept.pop(round_number, None)
        self._masks = {key: mask for key, mask in self._masks.items() if key[0] != round_number}

    def settle(self) -> None:
        """Does all that is pending, at the end of each round: whether it is also saved then changes no bit."""
        for round_number in sorted(self._waiting):
            self._train(round_number)
        for round_number, node in list(self._masks):
            self._mask(round_number, node)
        self._take_steps()

    def state(self) -> LearningState:
        """What a resumed run needs to go on from here."""
        self.settle()
        given: dict[Name, Matrix] = {
            ("release", number, node): row for number, rows in self._releases.items() for node, row in rows.items()
        }
        for vector in self._given:
            given.setdefault(vector.name, vector.array())
        return LearningState(self._models, self._noise_numbers, given)

    def sleep(self) -> None:
        """Learns nothing until `wake`: vectors are promised by name, and only noise is counted."""
        self.asleep = True

    def wake(self, state: LearningState) -> None:
        """Goes on from a state that was saved at this instant of an earlier run."""
        self.asleep = False
        self._models[:] = state.models
        self._noise_numbers[:] = state.noise_numbers
        for (what, number, node), row in state.given.items():
            if what == "release" and number in self._open:
                self._releases.setdefault(number, {})[node] = row
        for vector in list(self._given):
            if vector.name in state.given:
                vector.know(state.given[vector.name])
            elif vector.name[0] != "release" or vector.name[1] not in self._open:
                self._given.discard(vector)  # nobody had it any more then, so nobody will look: it waits for collection

    def find(self, name: Name) -> Matrix:
        """The numbers of a release that was promised."""
        what, round_number, node = name
        if what != "release":
            raise KeyError(name)
        self._train(round_number)
        self._mask(round_number, node)
        return self._releases[round_number][node]

    def _mask(self, round_number: int, node: int) -> None:
        """In float64, and rounded once: noise that cancels in a sum then does so to float32's accuracy."""
        weight, noise = self._masks.pop((round_number, node), (1.0, None))
        if noise is not None:
            row = (weight * self._releases[round_number][node].astype(np.float64) + noise()).astype(np.float32)
            row.flags.writeable = False
            self._releases[round_number][node] = row

    def blank(self) -> Matrix:
        """Zeros, which stand for every vector while the learning sleeps."""
        if self._blank is None:
            self._blank = np.zeros(self.dimension, dtype=np.float32)
            self._blank.flags.writeable = False
        return self._blank

    def _give(self, name: Name, array: Matrix | None = None) -> Vector:
        vector = Given(self, name, array)
        self._given.add(vector)
        return vector

    def _train_from_now(self, node: int) -> None:
        """Whoever began to train did so from the model as it was: a change has to wait for that."""
        for round_number in [number for number, waiting in self._waiting.items() if node in waiting]:
            self._train(round_number)

    def _train(self, round_number: int) -> None:
        """Trains everyone who waits in a round, all at once, and prepares their releases."""
        waiting = self._waiting.get(round_number)
        if not waiting:
            return
        nodes = sorted(waiting)
        before = self._models[nodes]
        trained = self._teacher.train(before, nodes, round_number)
        self._score_before(round_number, nodes, trained)
        updates = np.subtract(before, trained, out=before)
        generators = streams(self._seed, [("noise", node, waiting[node]) for node in nodes])
        updates = self._pipeline.apply(updates, nodes, generators, self._teacher.threads)
        updates.flags.writeable = False
        self._releases.setdefault(round_number, {}).update(zip(nodes, updates, strict=True))
        del self._waiting[round_number]

    def _score_before(self, round_number: int, nodes: list[int], trained: Matrix) -> None:
        wanted = set(self._watched.get(round_number, ()))
        rows = [row for row, node in enumerate(nodes) if node in wanted]
        if not rows:
            return
        scores = self._teacher.evaluate(trained[rows])
        earlier = self._before.get(round_number)
        joined = (
            scores if earlier is None else tuple(np.concatenate(pair) for pair in zip(earlier, scores, strict=True))
        )
        self._before[round_number] = (joined[0], joined[1])

    def _take_steps(self) -> None:
        """Takes all pending steps at once. Whoever still waits to train does so first, from the model as it was."""
        if not self._steps:
            return
        mixture = Mixture(self._steps)
        for row in {step.row for step in self._steps}:
            self._train_from_now(row)
        self._steps = []
        mixture.subtract(self._models)

    def _row(self, node: int) -> int:
        return min(node, self._clients)
