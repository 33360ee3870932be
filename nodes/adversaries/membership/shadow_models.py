"""Shadow models: the adversary repeats the public training on records of its own, so that it knows the members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodes.adversaries.membership.signals import Examples
from nodes.datasets.dataset import Dataset
from nodes.learning.model_kinds.models import Model
from nodes.learning.objectives import Objective
from nodes.learning.trainer import Learner
from nodes.learning.training import Training
from p2p.random_streams import stream


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """The public part of a run's learning: what every participant knows.

    Attributes:
        initial: the first model, which the bootstrap hands out
        rounds: rounds of training that a shadow model repeats
    """

    model: Model
    training: Training
    objective: Objective
    classes: int
    initial: NDArray[np.float32]
    rounds: int


@dataclass(frozen=True, slots=True, eq=False)
class Shadow:
    """A trained model [d] with the records it was trained on and those it was not."""

    model: Tensor
    inside: Examples
    outside: Examples


def train_shadows(recipe: Recipe, auxiliary: Examples, count: int, seed: int, *name: str | int) -> list[Shadow]:
    """Trains shadow models, each on another random half of the auxiliary records.

    A shadow repeats the run's rounds of local training on its half as if it were one client without noise: the
    adversary can repeat the public recipe, but not the other clients.
    """
    halves = [_halves(len(auxiliary), stream(seed, *name, "half", number)) for number in range(count)]
    learner = Learner(
        recipe.model, _as_dataset(auxiliary, recipe.classes), [inside for inside, _ in halves], recipe.training,
        int(stream(seed, *name, "batches").integers(2**31)), objective=recipe.objective,
    )  # fmt: skip
    models = np.tile(recipe.initial, (count, 1))
    for round_number in range(1, recipe.rounds + 1):
        models = learner.train(models, range(count), round_number)
    return [
        Shadow(torch.from_numpy(model), auxiliary.at(torch.from_numpy(inside)), auxiliary.at(torch.from_numpy(outside)))
        for model, (inside, outside) in zip(models, halves, strict=True)
    ]


def _halves(count: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = rng.permutation(count)
    return np.sort(order[: count // 2]), np.sort(order[count // 2 :])


def _as_dataset(examples: Examples, classes: int) -> Dataset:
    records, labels = examples.records.numpy(), examples.labels.numpy()
    return Dataset(records, labels, records[:1], labels[:1], classes)
