"""DP-SGD in stacks does what one sample at a time does, for every kind of model; and its noise is there, always."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import nn

from nodes.datasets.dataset import Dataset
from nodes.learning.model_kinds.models import Cnn, Linear, Mlp, Model
from nodes.learning.private_records.dp_sgd import RecordNoise, noise_generator
from nodes.learning.private_records.record_batches import RecordStep, draw_record_steps
from nodes.learning.trainer import Learner
from nodes.learning.training import PerSample, Training
from p2p.config.errors import UserError
from p2p.random_streams import stream
from tests.conformance.test_learning import Branching, Residual

Floats = NDArray[np.float32]
SIZES = [11, 30, 3, 17]
MODELS: list[Model] = [
    Linear(),
    Mlp(hidden=(9, 6)),
    Mlp(hidden=(7,), activation="tanh"),
    Cnn(channels=(3, 4), kernel=3, padding="same", dense=(6,)),
    Residual(),
]
TRAININGS = [
    Training(epochs=2, batch_size=5, learning_rate=0.3, per_sample=PerSample(clip=0.7, noise=0.0)),
    Training(
        batch_size=4,
        learning_rate=0.2,
        momentum=0.9,
        weight_decay=0.01,
        per_sample=PerSample(clip=0.4, noise=0.0, sampling="shuffled"),
    ),
]


@pytest.fixture(autouse=True)
def _one_torch_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_data() -> tuple[Dataset, list[NDArray[np.int64]]]:
    """Images of 2 x 8 x 8 in three classes; some are bright, so that clipping has something to do."""
    rng = stream(5, "test")
    count = sum(SIZES)
    images = rng.standard_normal((count, 2, 8, 8), dtype=np.float32)
    images *= rng.choice([0.05, 1.0, 3.0], size=count).astype(np.float32)[:, None, None, None]
    shards = np.split(rng.permutation(count), np.cumsum(SIZES)[:-1])
    labels = rng.integers(3, size=count)
    return Dataset(images, labels, images[:20], labels[:20], 3), shards


def make_learner(model: Model, training: Training, **options: Any) -> Learner:
    """A learner on that data."""
    dataset, shards = make_data()
    settings = training.per_sample
    assert settings is not None
    noise = RecordNoise(settings, settings.noise or 0.0)
    return Learner(model, dataset, shards, training, 3, record_noise=noise, **options)


def one_by_one(model: Model, training: Training, start: Floats, node: int, number: int) -> tuple[Floats, float]:
    """Plain torch: the gradient of each record by itself, clipped, summed, divided; then ordinary SGD."""
    dataset, shards = make_data()
    settings = training.per_sample
    assert settings is not None
    module = model.build(dataset.shape, dataset.classes)
    nn.utils.vector_to_parameters(torch.from_numpy(start.copy()), module.parameters())
    optimiser = torch.optim.SGD(
        module.parameters(), training.learning_rate, training.momentum, weight_decay=training.weight_decay
    )
    summed = 0.0
    for step in draw_record_steps(shards, [node], [number], training, settings, 0.0, 3, 1):
        total = torch.zeros(len(start))
        for row, weight in zip(step.rows[0], step.weights[0], strict=True):
            if weight > 0:
                optimiser.zero_grad()
                scores = module(torch.from_numpy(dataset.train_x[[row]]))
                loss = nn.functional.cross_entropy(scores, torch.from_numpy(dataset.train_y[[row]]))
                loss.backward()  # type: ignore[no-untyped-call]
                summed += loss.item() / len(shards[node])
                own = torch.cat([part.grad.flatten() for part in module.parameters() if part.grad is not None])
                total += float(weight) * own * min(1.0, settings.clip / float(own.norm()))
        nn.utils.vector_to_parameters(total, (part.grad for part in module.parameters()))  # type: ignore[misc]
        optimiser.step()
    return nn.utils.parameters_to_vector(module.parameters()).detach().numpy(), summed


@pytest.mark.slow
@pytest.mark.parametrize("training", TRAININGS, ids=["poisson", "shuffled"])
@pytest.mark.parametrize("model", MODELS, ids=[type(model).__name__ for model in MODELS])
def test_a_stack_takes_the_steps_of_single_records(model: Model, training: Training) -> None:
    """To 1e-5, with clipping at work, momentum and weight decay included."""
    learner = make_learner(model, training, at_once=3)
    models = np.tile(learner.initial(), (len(SIZES), 1))
    losses = np.full(len(SIZES), np.nan)
    trained = learner.train(models, range(len(SIZES)), 1, [4] * len(SIZES), losses)
    for node in range(len(SIZES)):
        expected, summed = one_by_one(model, training, models[node], node, 4)
        assert losses[node] == pytest.approx(summed, rel=1e-4)
        assert np.abs(trained[node] - expected).max() < 1e-5
        assert np.abs(trained[node] - models[node]).max() > 1e-3


def test_clients_do_not_depend_on_their_stack() -> None:
    """Noise and coins are each client's own, whatever is trained beside it, on however many threads."""
    private = PerSample(clip=1.0, noise=1.1)
    training = Training(batch_size=5, per_sample=private)
    learner = make_learner(Mlp(hidden=(9,)), training, at_once=2, threads=2)
    models = np.tile(learner.initial(), (4, 1))
    together = learner.train(models, range(4), 1, [0, 1, 2, 3])
    alone = make_learner(Mlp(hidden=(9,)), training, at_once=1, threads=1).train(models[:1], [2], 1, [2])
    assert np.allclose(together[2], alone[0], atol=1e-6)
    again = learner.train(models, range(4), 7, [0, 1, 2, 3])
    assert np.array_equal(together, again)  # named by the number of the training, not by the round
    assert not np.allclose(learner.train(models, range(4), 1, [1, 2, 3, 4]), together, atol=1e-3)


def test_without_the_trainings_number_nothing_is_trained() -> None:
    """A default would use one noise twice."""
    learner = make_learner(Linear(), TRAININGS[0])
    with pytest.raises(ValueError, match="number"):
        learner.train(learner.initial()[None], [0], 1)


@pytest.mark.parametrize("model", [Mlp(hidden=(9,)), Residual()], ids=["ghost", "func"])
def test_an_empty_batch_is_noised_like_any_other(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a rate so small that no record is ever taken, the model moves by noise of the promised deviation."""
    training = Training(batch_size=1, learning_rate=0.5, per_sample=PerSample(clip=2.0, noise=1.5))
    dataset, _ = make_data()
    noise = RecordNoise(training.per_sample or PerSample(clip=1.0, noise=1.0), 1.5)
    learner = Learner(model, dataset, [np.arange(1)] * 60, training, 3, record_noise=noise)
    steps = [RecordStep(np.zeros((60, 1), np.int64), np.zeros((60, 1), np.float32), np.full(60, 3.0, np.float32))]
    moved = _train_steps(learner, steps, monkeypatch)
    assert stats.kstest(moved.flatten() / (0.5 * 3.0), "norm").pvalue > 1e-4


def _train_steps(learner: Learner, steps: list[RecordStep], monkeypatch: pytest.MonkeyPatch) -> Floats:
    """Trains 60 clients on given steps, past the draw of batches."""
    monkeypatch.setattr("nodes.learning.private_records.dp_sgd.draw_record_steps", lambda *_: steps)
    models = np.tile(learner.initial(), (60, 1))
    return models - learner.train(models, range(60), 1, [0] * 60)


@pytest.mark.parametrize("model", [Mlp(hidden=(9,)), Residual()], ids=["ghost", "func"])
def test_a_record_without_a_finite_gradient_counts_as_none(model: Model) -> None:
    """Otherwise it alone would make the model infinite, which no noise hides."""
    training = Training(batch_size=4, per_sample=PerSample(clip=1.0, noise=0.0, sampling="shuffled"))
    dataset, _ = make_data()
    dataset.train_x[0] = np.inf
    noise = RecordNoise(PerSample(clip=1.0, noise=0.0, sampling="shuffled"), 0.0)
    learner = Learner(model, dataset, [np.arange(4)], training, 3, record_noise=noise)
    trained = learner.train(learner.initial()[None], [0], 1, [0])
    assert np.isfinite(trained).all()
    assert np.abs(trained - learner.initial()).max() > 1e-4


def test_every_record_has_a_coin_of_its_own() -> None:
    """The rate is batch over records, coins are independent, and clients with few records take all of them."""
    training = Training(epochs=40, batch_size=5, per_sample=PerSample(clip=1.0, noise=1.0))
    shards = [np.arange(100, 120), np.arange(3)]
    settings = training.per_sample
    assert settings is not None
    steps = draw_record_steps(shards, [0, 1], [0, 0], training, settings, 1.0, 3, 1)
    taken = np.array([[row in step.rows[0][step.weights[0] > 0] for row in shards[0]] for step in steps])
    assert len(steps) == 160
    assert stats.binomtest(int(taken.sum()), taken.size, 0.25).pvalue > 1e-4
    sizes = np.bincount(taken.sum(axis=1), minlength=21)
    expected = stats.binom.pmf(np.arange(21), 20, 0.25) * 160
    assert stats.chisquare([sizes[:3].sum(), *sizes[3:8], sizes[8:].sum()],
                           [expected[:3].sum(), *expected[3:8], expected[8:].sum()]).pvalue > 1e-4  # fmt: skip
    # The divisor is the expected batch, 5, or all 3 records; noise is divided by it too.
    assert {float(step.weights[0].max(initial=0.0)) for step in steps} <= {0.0, np.float32(0.2)}
    assert all(np.isclose(step.noise_std[0], 0.2) for step in steps)
    both = [step for step in steps if len(step.rows) == 2]
    assert len(both) == 40
    assert all((step.weights[1] > 0).sum() == 3 and np.isclose(step.noise_std[1], 1 / 3) for step in both)


def test_noise_comes_from_the_whole_state_of_its_stream() -> None:
    """Torch's own seeds have 32 bits: two streams that agree in them must still differ."""
    first, second = (noise_generator(stream(3, "record noise", 0, number)) for number in (0, 1))
    one, other = (torch.empty(20_000).normal_(generator=each).numpy() for each in (first, second))
    assert stats.kstest(one, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    again = torch.empty(20_000).normal_(generator=noise_generator(stream(3, "record noise", 0, 0))).numpy()
    assert np.array_equal(one, again)


def test_a_model_that_cannot_be_vectorised_is_refused() -> None:
    """There is no gradient of a single record then."""
    with pytest.raises(UserError, match="per_sample"):
        make_learner(Branching(), TRAININGS[0])
