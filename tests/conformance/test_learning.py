"""Every way of training a stack of models takes the same steps as `torch.optim.SGD` on a module of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from nodes.datasets.client_split import SPLITS
from nodes.datasets.dataset import Dataset
from nodes.learning.kernels.cnn import CnnKernel
from nodes.learning.kernels.generic import OneByOne, Stacked
from nodes.learning.kernels.interface import Kernel
from nodes.learning.kernels.mlp import MlpKernel
from nodes.learning.model_kinds.models import MODELS, Cnn, Linear, Mlp, Model
from nodes.learning.trainer import Learner, choose_kernel
from nodes.learning.training import Training
from p2p.random_streams import stream

Floats = NDArray[np.float32]
TOLERANCE = 2e-5
SIZES = [23, 4, 11, 1, 8, 23, 16]
TRAININGS = [
    Training(epochs=2, batch_size=5),
    Training(epochs=1, batch_size=8, momentum=0.9, learning_rate=0.05),
    Training(epochs=3, batch_size=4, weight_decay=0.05),
    Training(epochs=2, batch_size=7, momentum=0.5, weight_decay=0.1, decay=0.5),
]


@dataclass(frozen=True)
class Residual:
    """An own model that no kernel knows by structure."""

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """A dense layer with a way around it."""
        return _Residual(int(np.prod(shape)), classes)


class _Residual(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.inner = nn.Linear(features, features)
        self.norm = nn.LayerNorm(features)
        self.outer = nn.Linear(features, classes, bias=False)

    def forward(self, records: torch.Tensor) -> Any:
        flat = records.flatten(1)
        return self.outer(self.norm(flat + self.inner(flat).relu()))


@dataclass(frozen=True)
class Branching(Residual):
    """An own model that vmap cannot follow: its path depends on the data."""

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Looks at a value before it decides."""
        return _Branching(int(np.prod(shape)), classes)


class _Branching(_Residual):
    def forward(self, records: torch.Tensor) -> Any:
        if float(records.detach().sum()) > 1e9:
            return self.outer(records.flatten(1))
        return super().forward(records)


CHOSEN: list[tuple[Model, type]] = [
    (Linear(), MlpKernel),
    (Mlp(hidden=(9, 6)), MlpKernel),
    (Mlp(hidden=(120, 6)), MlpKernel),
    (Mlp(hidden=(7,), activation="leaky_relu"), MlpKernel),
    (Mlp(hidden=(7,), activation="tanh"), MlpKernel),
    (Mlp(hidden=(7,), activation="sigmoid"), MlpKernel),
    (Cnn(channels=(3, 4), kernel=3, padding="same", dense=(6,)), CnnKernel),
    (Cnn(channels=(4,), kernel=3, dense=(), activation="leaky_relu"), CnnKernel),
    (Cnn(channels=(2, 3), kernel=3, pool=1, dense=(5, 4), activation="tanh"), CnnKernel),
    (Residual(), Stacked),
    (Branching(), OneByOne),
]
names = [f"{type(model).__name__}-{getattr(model, 'activation', '')}" for model, _ in CHOSEN]


@pytest.fixture(autouse=True)
def _one_torch_thread() -> Iterator[None]:
    """The plain loop is far slower when two cores wait for each other over tiny products."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_data() -> tuple[Dataset, list[NDArray[np.int64]]]:
    """Images of 2 x 8 x 8 in three classes, held by clients of very unequal size."""
    rng = stream(5, "test")
    count = sum(SIZES)
    images = rng.standard_normal((count, 2, 8, 8), dtype=np.float32)
    labels = rng.integers(3, size=count)
    shards = np.split(rng.permutation(count), np.cumsum(SIZES)[:-1])
    return Dataset(images, labels, images[:20], labels[:20], 3), shards


def make_learner(model: Model, training: Training, **options: Any) -> Learner:
    """A learner on that data."""
    dataset, shards = make_data()
    return Learner(model, dataset, shards, training, 3, **options)


def some_models(learner: Learner) -> Floats:
    """Different models for all clients."""
    shifts = stream(9, "test").standard_normal((len(SIZES), learner.dimension), dtype=np.float32)
    return learner.initial() + np.float32(0.02) * shifts


def train_plainly(
    model: Model, training: Training, start: Floats, node: int, round_number: int
) -> tuple[Floats, float]:
    """The plain torch loop, written from the promise: module, optimiser, the client's own data order.

    With it the sum over epochs of the mean loss of the epoch's records, each at the model that its step began with.
    """
    dataset, shards = make_data()
    module = model.build(dataset.shape, dataset.classes)
    nn.utils.vector_to_parameters(torch.from_numpy(start.copy()), module.parameters())
    rate = training.learning_rate * training.decay ** (round_number - 1)
    optimiser = torch.optim.SGD(
        module.parameters(), lr=rate, momentum=training.momentum, weight_decay=training.weight_decay
    )
    rng, size = stream(3, "batches", node, round_number), training.batch_size
    assert size != "all"
    summed = 0.0
    for _ in range(training.epochs):
        order = rng.permutation(shards[node])
        for first in range(0, len(order), size):
            rows = order[first : first + size]
            optimiser.zero_grad()
            scores = module(torch.from_numpy(dataset.train_x[rows]))
            loss = nn.functional.cross_entropy(scores, torch.from_numpy(dataset.train_y[rows]))
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            summed += loss.item() * len(rows) / len(order)
    flat: Floats = nn.utils.parameters_to_vector(module.parameters()).detach().numpy()
    return flat, summed


@pytest.mark.slow
@pytest.mark.parametrize("training", TRAININGS, ids=range(len(TRAININGS)))
@pytest.mark.parametrize(("model", "kernel"), CHOSEN, ids=names)
def test_the_learner_does_what_plain_torch_does(model: Model, kernel: type, training: Training) -> None:
    """Each client's model is the plain loop's, whatever the kernel, the optimiser's settings and the client's size."""
    learner = make_learner(model, training, threads=2, at_once=4)
    models = some_models(learner)
    before = models.copy()
    trained, losses = learner.train(models, range(len(SIZES)), 2), np.full(len(SIZES), np.nan)
    assert type(learner.kernel) is kernel
    assert trained.dtype == np.float32
    # Taking down the losses changes no bit of what is learned.
    assert np.array_equal(trained, learner.train(models, range(len(SIZES)), 2, losses=losses))
    assert np.array_equal(models, before)
    for node in range(len(SIZES)):
        expected, summed = train_plainly(model, training, models[node], node, 2)
        assert np.allclose(trained[node], expected, atol=TOLERANCE), node
        assert losses[node] == pytest.approx(summed, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("training", TRAININGS, ids=range(len(TRAININGS)))
@pytest.mark.parametrize("kernel", [Stacked, OneByOne])
@pytest.mark.parametrize("model", [Linear(), Mlp(hidden=(9, 6)), Cnn(channels=(3, 4), kernel=3, padding="same")])
def test_kernels_agree(model: Model, kernel: type, training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generic kernels give what the chosen one gives, trained models and scores."""
    learner = make_learner(model, training)
    models = some_models(learner)
    fast, fast_figures = learner.train(models, range(len(SIZES)), 1), learner.evaluate(models)
    monkeypatch.setattr(learner, "kernel", kernel(learner.module))
    assert np.allclose(learner.train(models, range(len(SIZES)), 1), fast, atol=TOLERANCE)
    assert np.allclose(learner.evaluate(models), fast_figures, atol=TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "kernel"), CHOSEN, ids=names)
def test_grouping_does_not_matter(model: Model, kernel: type) -> None:
    """One, three or all clients at once, alone or in any order: the same within tolerance."""
    models = some_models(make_learner(model, TRAININGS[3]))
    nodes = list(range(len(SIZES)))
    together = make_learner(model, TRAININGS[3]).train(models, nodes, 1)
    for at_once in (1, 3):
        grouped = make_learner(model, TRAININGS[3], at_once=at_once).train(models, nodes, 1)
        assert np.allclose(grouped, together, atol=TOLERANCE)
    some = [4, 0, 3]
    assert np.allclose(make_learner(model, TRAININGS[3]).train(models[some], some, 1), together[some], atol=TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "kernel"), CHOSEN, ids=names)
def test_equal_calls_give_equal_bits_for_any_number_of_threads(model: Model, kernel: type) -> None:
    """Threads share the work, they do not change it."""
    results = []
    for threads in (1, 1, 2):
        learner = make_learner(model, TRAININGS[0], threads=threads, at_once=2)
        models = some_models(learner)
        trained = learner.train(models, range(len(SIZES)), 1)
        results.append(trained.tobytes() + np.stack(learner.evaluate(trained)).tobytes())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_of_the_table_has_a_kernel_by_hand(kind: str) -> None:
    """None of our own models falls back to the generic path."""
    model = MODELS[kind]()
    kernel: Kernel = choose_kernel(model.build((1, 28, 28), 10), torch.zeros(2, 1, 28, 28))
    assert isinstance(kernel, MlpKernel | CnnKernel)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPLITS)
def test_learning_learns_on_every_split(kind: str) -> None:
    """The average of ten rounds of clients' models beats guessing by far."""
    rng = stream(1, "clouds")
    centres = 2 * rng.standard_normal((4, 6))
    labels = rng.integers(4, size=400)
    records = (centres[labels] + rng.standard_normal((400, 6))).astype(np.float32)
    dataset = Dataset(records[:300], labels[:300], records[300:], labels[300:], 4)
    shards = SPLITS[kind]().split(dataset.train_y, 10, rng, np.arange(300) % 10)
    learner = Learner(Mlp(hidden=(8,)), dataset, shards, Training(), 1)
    model = learner.initial()[None]
    for number in range(1, 11):
        model = learner.train(np.repeat(model, 10, axis=0), range(10), number).mean(axis=0, keepdims=True)
    assert learner.evaluate(model)[0][0] > 0.8
