"""Learning beside the clock: late, together, and with the same result as if it had been done at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.deferred_vectors import Matrix, Vector, mean_vector
from nodes.learning.interface import Scores
from nodes.learning.release_stages import ReleaseStages


class Halver:
    """A trainer whose training halves a model, and that notes who was trained together."""

    dimension = 3
    threads = 2

    def __init__(self) -> None:
        self.together: list[list[int]] = []

    def initial(self) -> Matrix:
        """Eights."""
        return np.full(3, 8.0, dtype=np.float32)

    def train(
        self, models: Matrix, nodes: Sequence[int], round_number: int, numbers: Sequence[int], losses: Any = None
    ) -> Matrix:
        """Half of each."""
        self.together.append(list(nodes))
        return models / np.float32(2)

    def evaluate(self, models: Matrix) -> Scores:
        """The first number counts as accuracy, its negative as loss."""
        first = models[:, 0].astype(np.float64)
        return first, -first

    def public_loss(self, model: Matrix) -> float:
        """The first coordinate."""
        return float(model[0])

    def own_losses(self, models: Matrix, nodes: Sequence[int]) -> NDArray[np.float64]:
        """The first coordinates."""
        return models[:, 0].astype(np.float64)


def deferred(clients: int = 4) -> tuple[DeferredLearning, Halver]:
    """Deferred learning without privacy, and its trainer."""
    trainer = Halver()
    return DeferredLearning(trainer, clients, ReleaseStages(), 1), trainer


def constant(value: float) -> Vector:
    """A model or update of one number."""
    return Vector(3, lambda: np.full(3, value, dtype=np.float32))


def first(vector: Vector) -> float:
    """Its first number."""
    return float(vector.array()[0])


def test_nothing_is_computed_before_it_is_read() -> None:
    """And then all who wait are trained in one call, in the order of their numbers."""
    learning, trainer = deferred()
    for node in (2, 0, 3):
        learning.start_training(node, 1)
    update = learning.release(0, 1)
    assert trainer.together == []
    assert first(update) == 4.0
    assert trainer.together == [[0, 2, 3]]
    assert first(learning.release(3, 1)) == 4.0
    assert len(trainer.together) == 1


def test_a_step_moves_by_minus_the_mean() -> None:
    """8 - mean(4, 2, 0) = 6."""
    learning, _ = deferred()
    learning.step(1, [constant(4), constant(2), constant(0)])
    assert first(learning.model(1)) == 6.0
    assert first(learning.model(0)) == 8.0


def test_training_starts_from_the_model_as_it_was() -> None:
    """A model adopted, or a step taken, between the begin and the look does not enter the update."""
    learning, _ = deferred()
    for node in (0, 1):
        learning.start_training(node, 1)
    learning.adopt(0, constant(100))
    learning.step(1, [constant(-50)])
    assert first(learning.model(1)) == 58.0
    assert first(learning.release(0, 1)) == 4.0
    assert first(learning.release(1, 1)) == 4.0


def test_a_snapshot_stays_as_it_is() -> None:
    """Later steps do not change a model that was handed out."""
    learning, _ = deferred()
    snapshot = learning.model(0)
    learning.step(0, [constant(3)])
    learning.adopt(1, constant(1))
    assert first(snapshot) == 8.0
    assert first(learning.model(0)) == 5.0


def test_a_release_cannot_be_written_to() -> None:
    """Messages carry handles to rows, not copies."""
    learning, _ = deferred()
    learning.start_training(0, 1)
    row = learning.release(0, 1).array()
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1


def test_the_server_has_a_row_of_its_own() -> None:
    """Any node after the clients is the server."""
    learning, _ = deferred(clients=4)
    learning.step(7, [constant(8)])
    assert first(learning.model(7)) == 0.0
    assert learning.scores([0, 1, 2, 3])[0].tolist() == [8.0] * 4


def test_forgetting_a_round_first_takes_the_steps_that_need_it() -> None:
    """A step promised before is taken with the update as it was."""
    learning, _ = deferred()
    learning.start_training(0, 1)
    learning.step(1, [learning.release(0, 1)])
    learning.forget(1)
    assert first(learning.model(1)) == 4.0
    with pytest.raises(KeyError):
        learning.release(0, 1).array()


def test_scores_before_are_those_of_the_trained_models() -> None:
    """Only of those watched, asked for once."""
    learning, _ = deferred()
    learning.evaluate_before(1, [0, 2])
    for node in (0, 1, 2):
        learning.start_training(node, 1)
    scores = learning.scores_before(1)
    assert scores is not None
    assert scores[0].tolist() == [4.0, 4.0]
    assert learning.scores_before(1) is None


def test_an_interrupt_in_training_loses_nothing() -> None:
    """A second read gives what was promised."""
    learning, trainer = deferred()
    learning.start_training(0, 1)
    learning.step(1, [learning.release(0, 1)])
    train = trainer.train

    def interrupted(*arguments: Any) -> Matrix:
        raise KeyboardInterrupt

    trainer.train = interrupted  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        learning.model(1)
    trainer.train = train  # type: ignore[method-assign]
    assert first(learning.model(1)) == 4.0


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(-8, 8), min_size=1, max_size=4)), max_size=10))
def test_steps_together_equal_steps_one_by_one(steps: list[tuple[int, list[int]]]) -> None:
    """The matrix product is bookkeeping, not another algorithm."""
    together, _ = deferred()
    models: NDArray[np.float64] = np.full(4, 8.0)
    for node, values in steps:
        together.step(node, [constant(value) for value in values])
        models[node] -= np.mean(values)
    assert together.scores([0, 1, 2, 3])[0] == pytest.approx(models, abs=1e-4)


def test_a_vector_is_found_once_and_travels_as_itself() -> None:
    """The same object ever after; its bytes read back to the same numbers."""
    calls: list[int] = []

    def find() -> Matrix:
        calls.append(1)
        return np.arange(3, dtype=np.float32)

    vector = Vector(3, find)
    assert vector.array() is vector.array()
    assert len(calls) == 1
    payload = vector.payload()
    assert payload.value is vector
    assert payload.size_bytes == len(payload.to_bytes()) == 12
    assert payload.altered(payload.to_bytes()).value.array().tolist() == [0, 1, 2]


def test_the_mean_of_some_vectors() -> None:
    """Of a single one, that one."""
    one = constant(3)
    assert mean_vector([one]) is one
    assert first(mean_vector([constant(1), constant(2), constant(6)])) == 3.0
