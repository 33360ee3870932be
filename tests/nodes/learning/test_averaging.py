"""Steps taken together are those taken one by one, however few of the updates each of them uses."""

from __future__ import annotations

import numpy as np
import pytest

from nodes.learning import averaging
from nodes.learning.averaging import AveragingStep, WeightedSums
from nodes.learning.deferred_vectors import Vector

WIDTH = averaging.NUMBERS_AT_ONCE // 40 + 3


def random_steps(count: int, used: int, rng: np.random.Generator) -> list[AveragingStep]:
    """Steps of so many rows that use some of as many updates each; the first row steps twice."""
    updates = rng.standard_normal((count, WIDTH), dtype=np.float32)
    vectors = [Vector(WIDTH, lambda row=row: row) for row in updates]  # type: ignore[misc]
    picked = [[vectors[i] for i in rng.choice(count, used, replace=False)] for _ in range(count)]
    steps = [AveragingStep(row + 1, some, 0.25 if row == 2 else None) for row, some in enumerate(picked)]
    return [*steps, AveragingStep(1, [vectors[0], vectors[0]])]


@pytest.mark.parametrize("used", [1, 30])
def test_all_steps_at_once_equal_steps_one_by_one(used: int) -> None:
    """Of 40 updates, 1 or 30: nearly all weights are zero, or few; an update named twice counts twice."""
    rng = np.random.default_rng(used)
    steps = random_steps(40, used, rng)
    models = rng.standard_normal((42, WIDTH), dtype=np.float32)
    expected = models.astype(np.float64)
    for step in steps:
        for share, update in zip(step.shares(), step.updates, strict=True):
            expected[step.row] -= share * update.array()
    WeightedSums(steps).subtract(models)
    np.testing.assert_allclose(models, expected, rtol=1e-5, atol=1e-5)


def test_a_mixed_model_replaces_what_was_there() -> None:
    """Steps and mixtures of one row before it do not matter; other rows in the same batch step as ever."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4, WIDTH), dtype=np.float32)
    vectors = [Vector(WIDTH, lambda row=row: row) for row in rows]  # type: ignore[misc]
    models = rng.standard_normal((3, WIDTH), dtype=np.float32)
    stepped = models[1] - rows[3]
    WeightedSums(
        [
            AveragingStep(0, vectors[:2]),
            AveragingStep(0, vectors[2:], [0.5, 0.5], replaces=True),
            AveragingStep(1, vectors[3:]),
            AveragingStep(0, vectors[:3], [0.2, 0.3, 0.5], replaces=True),
        ]
    ).subtract(models)
    np.testing.assert_allclose(models[0], 0.2 * rows[0] + 0.3 * rows[1] + 0.5 * rows[2], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(models[1], stepped, rtol=1e-5, atol=1e-5)
