"""Several local steps: the attack repeats them as torch's SGD does, and reads more off the update for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from nodes.adversaries.reconstruction.inversion import Inversion
from nodes.adversaries.reconstruction.local_steps import LocalSteps, public_steps
from nodes.adversaries.reconstruction.similarity import pair_images, psnr_db
from nodes.datasets.dataset import Dataset
from nodes.learning.kernels.generic import unflatten
from nodes.learning.model_kinds.models import Mlp
from nodes.learning.trainer import Learner
from nodes.learning.training import Training
from tests.nodes.adversaries.victims import Victim

BATCHES = [torch.tensor([0, 3, 5]), torch.tensor([1, 2]), torch.tensor([4, 6, 7, 8, 9])]


def trained_by_torch(victim: Victim, steps: LocalSteps) -> Tensor:
    """The model after torch's own SGD over the same batches; the proximal term is added to the loss."""
    first = victim.target.weights[0]
    flat = first.clone().requires_grad_()
    optimiser = torch.optim.SGD([flat], lr=steps.rate, momentum=steps.momentum, weight_decay=steps.weight_decay)
    for places in steps.batches:
        optimiser.zero_grad()
        scores = functional_call(victim.target.module, unflatten(victim.target.module, flat), (victim.images[places],))
        loss = nn.functional.cross_entropy(scores, victim.labels[places])
        loss = loss + steps.proximal / 2 * (flat - first).square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return flat.detach()


@pytest.mark.parametrize("option", [{}, {"momentum": 0.7}, {"weight_decay": 0.1}, {"proximal": 2.0}])
def test_steps_are_those_of_torch(ten_digits: Victim, option: dict[str, float]) -> None:
    """Batches of unequal size, momentum, weight decay and the proximal term of FedProx."""
    steps = LocalSteps(batches=BATCHES, rate=0.3, **option)
    target = replace(ten_digits.target, steps=steps)
    found = target.of(ten_digits.images, ten_digits.labels).detach()
    moved = target.weights[0] - trained_by_torch(ten_digits, steps)
    torch.testing.assert_close(found * steps.rate * len(BATCHES), moved, rtol=1e-4, atol=1e-6)


def test_one_step_on_all_images_is_their_gradient(ten_digits: Victim) -> None:
    """To the bit, as without local steps."""
    one = replace(ten_digits.target, steps=public_steps(Training(batch_size="all"), 0.0, 10, 1, 0, "test"))
    # The order of the images changes the rounding of their mean only.
    torch.testing.assert_close(one.of(ten_digits.images, ten_digits.labels), ten_digits.target.gradient)


def test_every_pass_uses_every_image_once() -> None:
    """In batches of the public size, the last one shorter, in another order each time."""
    steps = public_steps(Training(epochs=3, batch_size=4, learning_rate=0.2, decay=0.5), 0.0, 10, 2, 0, "test")
    assert [len(places) for places in steps.batches] == [4, 4, 2] * 3
    assert steps.rate == 0.1
    passes = [torch.cat(list(steps.batches[start : start + 3])).tolist() for start in (0, 3, 6)]
    assert all(sorted(order) == list(range(10)) for order in passes)
    assert passes[0] != passes[1]


def update_of(victim: Victim, digits: Dataset, training: Training) -> Tensor:
    """What a client of the simulator sends after training on the victim's images, as a mean gradient."""
    rows = [int(np.flatnonzero((digits.train_x == image.numpy()).all(axis=(1, 2, 3)))[0]) for image in victim.images]
    learner = Learner(Mlp(hidden=(64,)), digits, [np.array(rows)], training, 0)
    first = victim.target.weights.numpy()
    trained = learner.train(first.copy(), [0], 1, [0])
    return torch.from_numpy((first - trained)[0] / (training.rate(1) * training.steps(10)))


def attacked(victim: Victim, gradient: Tensor, steps: LocalSteps) -> float:
    """Mean PSNR of the reconstructions."""
    target = replace(victim.target, gradient=gradient, steps=steps)
    found = Inversion(steps=1000).reconstruct(target, victim.labels, 0, "test").images
    return float(psnr_db(found[pair_images(found, victim.images)[1]], victim.images).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("training", "least"),
    [
        (Training(epochs=5, batch_size="all", learning_rate=0.5), 6.0),
        (Training(epochs=5, batch_size=5, learning_rate=0.1), 1.0),
    ],
    ids=["known order", "unknown order"],
)
def test_simulated_steps_read_more_off_an_update(
    ten_digits: Victim, digits: Dataset, training: Training, least: float
) -> None:
    """Several decibels where the model moves on between steps; what a client really sends is attacked."""
    gradient = update_of(ten_digits, digits, training)
    simulated = public_steps(training, 0.0, 10, 1, 0, "test")
    gain = attacked(ten_digits, gradient, simulated) - attacked(ten_digits, gradient, LocalSteps())
    assert gain > least
