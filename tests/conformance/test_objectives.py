"""Every objective, in every kernel, takes the steps of a plain loop over one client that differentiates its formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nodes.learning.kernels.generic import OneByOne, Stacked
from nodes.learning.model_kinds.models import Cnn, Linear, Mlp, Model
from nodes.learning.objectives import (
    OBJECTIVES,
    CrossEntropy,
    Fednore1,
    Fednore2,
    FednoreBoth,
    FedProx,
    Hinge,
    Objective,
)
from nodes.learning.trainer import Learner
from nodes.learning.training import Training
from p2p.random_streams import stream
from tests.conformance.test_learning import SIZES, TOLERANCE, Branching, Floats, Residual, make_data, some_models

PLAIN = Training(epochs=2, batch_size=5)
MOMENTUM = Training(epochs=2, batch_size=7, momentum=0.5, weight_decay=0.1)
FULL = Training(epochs=3, batch_size="all")
MODELS: list[Model] = [
    Linear(),
    Mlp(hidden=(120, 6)),
    Cnn(channels=(3, 4), kernel=3, padding="same", dense=(6,)),
    Residual(),
    Branching(),
]
# Strong enough to matter: without the term, models differ by far more than the tolerance.
CHOSEN: list[Objective] = [
    CrossEntropy(),
    Hinge(),
    FedProx(mu=0.7),
    Fednore1(lam=0.2, sigma=4.0),
    Fednore1(lam=0.001, sigma=1.0, penalty="printed"),
    *(Fednore2(lam=0.3, sigma=2.0, reading=reading) for reading in ("printed", "keep_label", "temperature", "scaled")),
    Fednore2(lam=200.0, reading="keep_label"),
    FednoreBoth(lam=0.2, sigma=2.0),
    FednoreBoth(lam=0.2, sigma=2.0, reading="scaled", c_max=0.3),
]
ids = [f"{type(objective).__name__}-{index}" for index, objective in enumerate(CHOSEN)]


@pytest.fixture(autouse=True)
def _one_torch_thread() -> Iterator[None]:
    """The plain loop is far slower when two cores wait for each other over tiny products."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def loss_of(objective: Any, scores: Tensor, labels: Tensor, records: int) -> Tensor:
    """The mean loss of a batch, written from the papers' formulas."""
    chance = scores.softmax(1)[torch.arange(len(labels)), labels]
    if isinstance(objective, Hinge):
        # One row at a time: 1 plus the best other score minus the true one, if that is positive.
        margins = [
            row[label] - row[torch.arange(len(row)) != label].max() for row, label in zip(scores, labels, strict=True)
        ]
        return torch.stack([torch.clamp(1 - margin, min=0) for margin in margins]).mean()
    if not isinstance(objective, Fednore2 | FednoreBoth) or objective.reading == "printed":
        return -chance.log().mean()
    c = min(objective.lam * objective.sigma / math.sqrt(records), objective.c_max)
    if objective.reading == "keep_label":
        return -(chance * (1 - c) + c).log().mean()
    if objective.reading == "temperature":
        return nn.functional.cross_entropy(scores * (1 - c), labels)
    return (1 + c) * nn.functional.cross_entropy(scores, labels)


def penalty_of(objective: Any, module: nn.Module, start: dict[str, Tensor], records: int) -> Tensor:
    """The term that depends on the distance from the start, layer by layer."""
    total = torch.zeros(())
    for owner, layer in module.named_modules():
        parts = [part - start[f"{owner}.{name}".lstrip(".")] for name, part in layer.named_parameters(recurse=False)]
        if parts:
            square = torch.stack([part.square().sum() for part in parts]).sum()
            total = total + _term(objective, square, records)
    return total


def _term(objective: Any, square: Tensor, records: int) -> Tensor:
    if isinstance(objective, FedProx):
        return objective.mu / 2 * square
    if isinstance(objective, Fednore1 | FednoreBoth):
        force = objective.lam * objective.sigma
        # Printed: minus lambda sigma (W_i - W_t) / S with S = norm / n, the gradient of minus lambda sigma n norm.
        force = force / records if objective.penalty == "smoothed" else -force * records
        return force * (square + 1e-12).sqrt()
    return torch.zeros(())


def train_plainly(model: Model, training: Training, objective: Objective, start: Floats, node: int) -> Floats:
    """One client's training in round 1: a module, an optimiser, autograd of the whole objective."""
    dataset, shards = make_data()
    module = model.build(dataset.shape, dataset.classes)
    nn.utils.vector_to_parameters(torch.from_numpy(start.copy()), module.parameters())
    begun = {name: part.detach().clone() for name, part in module.named_parameters()}
    optimiser = torch.optim.SGD(
        module.parameters(), lr=training.learning_rate, momentum=training.momentum, weight_decay=training.weight_decay
    )
    rng, records = stream(3, "batches", node, 1), len(shards[node])
    size = records if training.batch_size == "all" else training.batch_size
    for _ in range(training.epochs):
        order = rng.permutation(shards[node])
        for first in range(0, records, size):
            rows = order[first : first + size]
            optimiser.zero_grad()
            scores, labels = module(torch.from_numpy(dataset.train_x[rows])), torch.from_numpy(dataset.train_y[rows])
            loss = loss_of(objective, scores, labels, records) + penalty_of(objective, module, begun, records)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    flat: Floats = nn.utils.parameters_to_vector(module.parameters()).detach().numpy()
    return flat


def make_learner(model: Model, training: Training, objective: Objective, **options: Any) -> Learner:
    """A learner with that objective."""
    dataset, shards = make_data()
    return Learner(model, dataset, shards, training, 3, objective=objective, **options)


def train(
    model: Model, training: Training, objective: Objective, change: Callable[[Learner], None] | None = None
) -> Floats:
    """All clients' models after one round."""
    learner = make_learner(model, training, objective, threads=2, at_once=4)
    if change is not None:
        change(learner)
    return learner.train(some_models(learner), range(len(SIZES)), 1)


@pytest.mark.slow
@pytest.mark.parametrize("training", [PLAIN, MOMENTUM, FULL], ids=["plain", "momentum", "full batch"])
@pytest.mark.parametrize("model", MODELS, ids=[type(model).__name__ for model in MODELS])
@pytest.mark.parametrize("objective", CHOSEN, ids=ids)
def test_the_learner_does_what_the_formula_says(objective: Objective, model: Model, training: Training) -> None:
    """Dense, convolutional, stacked and single kernels agree with autograd of the objective's formula."""
    trained = train(model, training, objective)
    models = some_models(make_learner(model, training, objective))
    for node in (0, 2, 3):
        plain = train_plainly(model, training, objective, models[node], node)
        assert np.allclose(trained[node], plain, atol=TOLERANCE, rtol=1e-4), node


def test_every_objective_is_tried() -> None:
    """The comparison covers the whole table."""
    assert {type(objective) for objective in CHOSEN} == set(OBJECTIVES.values())


@pytest.mark.slow
@pytest.mark.parametrize("objective", CHOSEN[1:], ids=ids[1:])
def test_an_objective_matters_unless_it_is_printed_so(objective: Any) -> None:
    """All but Fed-nore-2 as printed change what is learned, by far more than the tolerance."""
    gap = float(np.abs(train(Linear(), PLAIN, objective) - train(Linear(), PLAIN, CrossEntropy())).max())
    printed = isinstance(objective, Fednore2) and objective.reading == "printed"
    assert gap == 0.0 if printed else gap > 20 * TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [None, Stacked, OneByOne])
@pytest.mark.parametrize("model", MODELS[1:3], ids=["mlp", "cnn"])
def test_limits_are_exact(model: Model, kernel: type | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fed-nore-2 as printed, and other readings with lambda 0, are cross-entropy to the bit, whatever lambda."""

    def change(learner: Learner) -> None:
        if kernel is not None:
            monkeypatch.setattr(learner, "kernel", kernel(learner.module))

    plain = train(model, PLAIN, CrossEntropy(), change)
    for objective in (Fednore2(lam=200.0, reading="printed"), Fednore2(lam=0.0), Fednore2(lam=0.0, reading="scaled")):
        assert train(model, PLAIN, objective, change).tobytes() == plain.tobytes()


def test_grouping_does_not_matter() -> None:
    """Constants follow their clients through sorting, stacks and narrowing."""
    objective, nodes = FednoreBoth(lam=0.2, sigma=2.0), list(range(len(SIZES)))
    for model in (Mlp(hidden=(9,)), Residual()):
        learner = make_learner(model, PLAIN, objective)
        models = some_models(learner)
        together = learner.train(models, nodes, 1)
        alone = make_learner(model, PLAIN, objective, at_once=1).train(models, nodes, 1)
        assert np.allclose(alone, together, atol=TOLERANCE)
