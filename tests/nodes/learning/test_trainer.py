"""The learner's promises beside training itself: a repeatable start, measuring, saving, and refusing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nodes.datasets.dataset import Dataset
from nodes.learning.model_kinds.models import Linear, Mlp, Model
from nodes.learning.trainer import Learner
from nodes.learning.training import Training
from p2p.config.errors import UserError


def make_learner(model: Model, seed: int = 1, tests: int = 3) -> Learner:
    """Twelve records of four features in three classes, held by three clients."""
    rng = np.random.default_rng(0)
    records = rng.standard_normal((12, 4)).astype(np.float32)
    labels = np.arange(12) % 3
    shards = [np.arange(2), np.arange(2, 7), np.arange(7, 12)]
    return Learner(model, Dataset(records, labels, records[:tests], labels[:tests], 3), shards, Training(), seed)


@dataclass(frozen=True)
class Built:
    """A model that is a given layer."""

    layer: Any

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """A chain with the layer in it."""
        return nn.Sequential(nn.Linear(4, 3), self.layer)


def test_the_start_is_the_seeds_and_touches_no_global_generator() -> None:
    """Equal seeds give equal models; torch's own generator goes on as if nothing had happened."""
    before = torch.get_rng_state()
    first, again, other = (make_learner(Mlp(hidden=(5,)), seed).initial() for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert first.dtype == np.float32
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.abs(first[:20]).max() <= 0.5


def test_dimension_and_records_are_counted() -> None:
    """What the network and the ledger need to know."""
    learner = make_learner(Mlp(hidden=(5,)))
    assert learner.dimension == Mlp(hidden=(5,)).parameters((4,), 3) == len(learner.initial())
    assert [learner.records(node) for node in range(3)] == [2, 5, 5]


def test_figures_are_those_of_the_module() -> None:
    """Accuracy and loss on the test set, for distinct and repeated models."""
    learner = make_learner(Linear(), tests=12)
    first = learner.initial()
    models = np.stack([first, -first, first])
    accuracy, loss = learner.evaluate(models)
    module = Linear().build((4,), 3)
    for row, model in enumerate(models):
        module.load_state_dict(learner.state_dict(model))
        rng = np.random.default_rng(0)
        scores = module(torch.from_numpy(rng.standard_normal((12, 4)).astype(np.float32))).detach()
        labels = torch.arange(12) % 3
        assert accuracy[row] == pytest.approx(float((scores.argmax(1) == labels).double().mean()))
        assert loss[row] == pytest.approx(float(nn.functional.cross_entropy(scores, labels)), rel=1e-5)


def test_a_saved_model_has_the_modules_names_and_own_memory() -> None:
    """The dictionary loads into the module and does not alias the vector."""
    learner = make_learner(Mlp(hidden=(5,)))
    vector = learner.initial()
    saved = learner.state_dict(vector)
    assert list(saved) == ["1.weight", "1.bias", "3.weight", "3.bias"]
    vector[:] = 0
    assert float(saved["1.weight"].abs().max()) > 0


def test_the_number_of_torch_threads_is_left_alone() -> None:
    """Training borrows the setting and gives it back."""
    before = torch.get_num_threads()
    learner = make_learner(Linear())
    learner.train(learner.initial()[None], [1], 1)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.BatchNorm1d(3), "model: keeps state beside its parameters"),
        (nn.Dropout(0.5), "model: draws random numbers of its own"),
        (nn.Linear(3, 5), "model: gives [2, 5] for 2 records; it must give 3 scores each"),
    ],
)
def test_models_that_cannot_be_repeated_or_scored_are_users_errors(layer: nn.Module, message: str) -> None:
    """An own model gets a clear message."""
    with pytest.raises(UserError) as caught:
        make_learner(Built(layer))
    assert message in str(caught.value)
