"""The LSTM: torch's own is the oracle; stacks and single records agree with one at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from nodes.datasets.dataset import Dataset
from nodes.learning.kernels.generic import OneByOne, Stacked
from nodes.learning.private_records.dp_sgd import RecordNoise
from nodes.learning.private_records.record_batches import draw_record_steps
from nodes.learning.sequences.lstm_module import LstmModule
from nodes.learning.sequences.sequence_models import Lstm
from nodes.learning.trainer import Learner
from nodes.learning.training import PerSample, Training
from p2p.config.errors import UserError
from p2p.random_streams import stream
from scenarios.loading.load import parse_scenario

MODEL = Lstm(embedding=3, hidden=5, layers=2)
PRIVATE = PerSample(clip=0.3, noise=0.0)


@pytest.fixture(autouse=True)
def _one_torch_thread() -> Iterator[None]:
    """Two threads would mostly wait for each other over such small products."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def data() -> tuple[Dataset, list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]]:
    """Sequences of nine symbols out of seven, held by three clients."""
    rng = stream(4, "test")
    codes, labels = rng.integers(7, size=(24, 9)).astype(np.float32), rng.integers(7, size=24)
    return Dataset(codes, labels, codes[:6], labels[:6], 7), np.split(np.arange(24), [6, 14])


def test_it_computes_what_torch_computes() -> None:
    """With torch's second bias at zero."""
    module = MODEL.build((9,), 7)
    assert isinstance(module, LstmModule)
    torchs = nn.LSTM(3, 5, 2, batch_first=True)
    with torch.no_grad():
        for layer in range(2):
            pairs = ((module.inputs[layer].weight, "weight_ih"), (module.memory[layer].weight, "weight_hh"),
                     (module.inputs[layer].bias, "bias_ih"), (torch.zeros(20), "bias_hh"))  # fmt: skip
            for own, name in pairs:
                getattr(torchs, f"{name}_l{layer}").copy_(own)
        records = torch.from_numpy(data()[0].train_x)
        expected = module.dense(torchs(module.embedding(records.long()))[0][:, -1])
        assert torch.allclose(module(records), expected, atol=1e-6)
    assert sum(part.numel() for part in module.parameters()) == MODEL.parameters((9,), 7)


@pytest.mark.slow
def test_stacks_train_as_one_by_one() -> None:
    """The kernel is the stacked one, and agrees with torch's optimiser."""
    dataset, shards = data()
    learner = Learner(MODEL, dataset, shards, Training(batch_size=4, learning_rate=0.5, momentum=0.5), 3)
    assert isinstance(learner.kernel, Stacked)
    models = np.tile(learner.initial(), (3, 1))
    together = learner.train(models, range(3), 1)
    learner.kernel = OneByOne(learner.module)
    assert np.abs(learner.train(models, range(3), 1) - together).max() < 1e-5


@pytest.mark.slow
def test_gradients_of_single_sequences_are_those_of_a_plain_loop() -> None:
    """To 1e-5, with clipping at work."""
    dataset, shards = data()
    training = Training(batch_size=4, learning_rate=1.0, per_sample=PRIVATE)
    learner = Learner(MODEL, dataset, shards, training, 3, record_noise=RecordNoise(PRIVATE, 0.0))
    models = np.tile(learner.initial(), (3, 1))
    trained = learner.train(models, range(3), 1, [0] * 3)
    module = MODEL.build((9,), 7)
    for node in range(3):
        nn.utils.vector_to_parameters(torch.from_numpy(models[node].copy()), module.parameters())
        for step in draw_record_steps(shards, [node], [0], training, PRIVATE, 0.0, 3, 1):
            total = torch.zeros(learner.dimension)
            for row, weight in zip(step.rows[0], step.weights[0], strict=True):
                scores = module(torch.from_numpy(dataset.train_x[[row]]))
                loss = nn.functional.cross_entropy(scores, torch.from_numpy(dataset.train_y[[row]]))
                own = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(module.parameters()))])
                total += float(weight) * own * min(1.0, PRIVATE.clip / float(own.norm()))
            flat = nn.utils.parameters_to_vector(module.parameters()).detach()
            nn.utils.vector_to_parameters(flat - total, module.parameters())
        expected = nn.utils.parameters_to_vector(module.parameters()).detach().numpy()
        assert np.abs(trained[node] - expected).max() < 1e-5
        assert np.abs(trained[node] - models[node]).max() > 1e-3


def test_records_that_are_no_symbols_are_refused() -> None:
    """At the latest when they are loaded."""
    dataset, shards = data()
    dataset.train_x[3, 2] = 0.5
    with pytest.raises(UserError, match="whole numbers from 0 to 6"):
        Learner(MODEL, dataset, shards, Training(), 3)
    with pytest.raises(UserError, match="lstm: needs sequences"):
        MODEL.build((1, 8, 8), 10)


@pytest.mark.parametrize(
    ("data_section", "model", "message"),
    [
        ("{name: synthetic}", "{kind: lstm}", "reads sequences of symbols"),
        ("{name: digits}", "{kind: lstm}", "needs sequences"),
        ("{name: shakespeare}", "{kind: mlp}", "takes codes of characters for amounts"),
    ],
)
def test_data_and_model_must_fit(data_section: str, model: str, message: str) -> None:
    """`check` tells before anything is read."""
    rest = "name: a\nrounds: 1\nclients: 3\nprotocol: {kind: central, train_per_round: 2}"
    text = f"{rest}\ndata: {data_section}\nmodel: {model}"
    with pytest.raises(UserError, match=message):
        parse_scenario(text)
