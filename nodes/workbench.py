"""Learning beside the clock: vectors are promised when a process needs them and computed when somebody looks.

Learning takes no simulated time, so it can wait: nodes that train in the same round are trained together, and the
steps of a round are one matrix product. A cohort's updates are rows of one float32 matrix; messages carry handles to
rows, never copies, and a released row is not written to again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from p2p.streams import stream
from privacy.envelopes import Payload
from privacy.wire import decode_vector, encode_vector, vector_size

Matrix = NDArray[np.float32]
Scores = tuple[NDArray[np.float64], NDArray[np.float64]]


class Vector:
    """A vector of the model's size that is known once somebody asks for it."""

    __slots__ = ("_array", "_find", "size")

    def __init__(self, size: int, find: Callable[[], Matrix]) -> None:
        self.size = size
        self._find = find
        self._array: Matrix | None = None

    def array(self) -> Matrix:
        """The numbers; computed at the first call, the same object ever after."""
        if self._array is None:
            self._array = self._find()
        return self._array

    def payload(self) -> Payload:
        """This vector on the wire."""
        return Payload(self, vector_size(self.size), lambda: encode_vector(self.array()), self._read)

    def _read(self, data: bytes) -> Vector:
        return Vector(self.size, lambda: decode_vector(data))


def mean_vector(vectors: Sequence[Vector]) -> Vector:
    """The mean of some vectors; of a single one, that one."""
    if len(vectors) == 1:
        return vectors[0]
    rows = np.stack([vector.array() for vector in vectors])
    mean: Matrix = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    return Vector(vectors[0].size, lambda: mean)


class Bench(Protocol):
    """What a process may ask of learning while the clock runs."""

    dimension: int

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

    def step(self, node: int, updates: Sequence[Vector]) -> None:
        """A node moves its model by minus the mean of some updates."""


class Teacher(Protocol):
    """What the workbench needs of a learner."""

    dimension: int

    def initial(self) -> Matrix:
        """The first model."""

    def train(self, models: Matrix, nodes: Sequence[int], round_number: int) -> Matrix:
        """The models after local training."""

    def evaluate(self, models: Matrix) -> Scores:
        """Accuracy and loss of each model on the test set."""


class Pipeline(Protocol):
    """What happens to updates between training and release."""

    def apply(self, rows: Matrix, nodes: Sequence[int], generators: Sequence[np.random.Generator]) -> Matrix:
        """Clips and noises rows in place."""


class Workbench:
    """All clients' models and this run's pending arithmetic. The row after the clients' is the server's."""

    def __init__(self, teacher: Teacher, clients: int, pipeline: Pipeline, seed: int) -> None:
        self.dimension = teacher.dimension
        self._teacher, self._pipeline, self._seed = teacher, pipeline, seed
        self._first = teacher.initial()
        self._clients = clients
        self._models: Matrix = np.tile(self._first, (clients + 1, 1))
        self._waiting: dict[int, dict[int, int]] = {}
        self._releases: dict[int, dict[int, Matrix]] = {}
        self._steps: list[tuple[int, list[Vector]]] = []
        self._noise_numbers: NDArray[np.int64] = np.zeros(clients, dtype=np.int64)
        self._watched: dict[int, list[int]] = {}
        self._before: dict[int, Scores] = {}

    def first_model(self) -> Vector:
        """What the bootstrap server hands out."""
        return Vector(self.dimension, lambda: self._first)

    def begin(self, node: int, round_number: int) -> None:
        """A node starts to train from its model as it is now; its noise, once drawn, is never drawn again."""
        self._take_steps()
        self._waiting.setdefault(round_number, {})[node] = int(self._noise_numbers[node])
        self._noise_numbers[node] += 1

    def release(self, node: int, round_number: int) -> Vector:
        """The clipped and noised update of a node that began to train."""
        return Vector(self.dimension, lambda: self._release(node, round_number))

    def model(self, node: int) -> Vector:
        """A node's model as it is now; later steps do not change it."""
        self._take_steps()
        snapshot = self._models[self._row(node)].copy()
        return Vector(self.dimension, lambda: snapshot)

    def adopt(self, node: int, model: Vector) -> None:
        """A node takes over a model it received."""
        self._take_steps()
        self._train_from_now(node)
        self._models[self._row(node)] = model.array()

    def step(self, node: int, updates: Sequence[Vector]) -> None:
        """A node moves its model by minus the mean of some updates."""
        if updates:
            self._steps.append((node, list(updates)))

    def watch(self, round_number: int, nodes: Sequence[int]) -> None:
        """Asks for the accuracy of these nodes' local models before they are aggregated."""
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
        """Lets go of a round's updates once no message carries them."""
        self._take_steps()
        for kept in (self._releases, self._waiting, self._watched, self._before):
            kept.pop(round_number, None)

    def _release(self, node: int, round_number: int) -> Matrix:
        self._train(round_number)
        return self._releases[round_number][node]

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
        generators = [stream(self._seed, "noise", node, waiting[node]) for node in nodes]
        updates = self._pipeline.apply(updates, nodes, generators)
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
        """Applies all pending steps as one product: each row of weights says which updates a node averages."""
        if not self._steps:
            return
        steps = self._steps
        distinct: dict[int, int] = {}
        rows: list[Matrix] = []
        weights = np.zeros((len(steps), sum(len(updates) for _, updates in steps)), dtype=np.float32)
        for index, (_, updates) in enumerate(steps):
            for update in updates:
                array = update.array()
                column = distinct.setdefault(id(array), len(distinct))
                if column == len(rows):
                    rows.append(array)
                weights[index, column] += 1.0 / len(updates)
        for node, _ in steps:
            self._train_from_now(node)
        moves = weights[:, : len(rows)] @ np.stack(rows)
        self._steps = []
        for (node, _), move in zip(steps, moves, strict=True):
            self._models[self._row(node)] -= move

    def _row(self, node: int) -> int:
        return min(node, self._clients)
