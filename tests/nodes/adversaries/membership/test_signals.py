"""Signals of membership against explicit formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from nodes.adversaries.membership.signals import (
    Examples,
    largest_posteriors,
    layer_gradient_norms,
    log_posteriors,
    modified_entropy,
    true_label,
)
from nodes.datasets.dataset import Dataset
from nodes.learning.kernels.generic import unflatten
from nodes.learning.model_kinds.models import Cnn, Mlp, Model
from nodes.learning.trainer import Learner
from nodes.learning.training import Training


def test_modified_entropy_by_hand() -> None:
    """p = (0.7, 0.2, 0.1): of the right label small, of a wrong one large."""
    p = np.array([0.7, 0.2, 0.1])
    logs = torch.from_numpy(np.log(np.stack([p, p])))
    right = -(1 - 0.7) * np.log(0.7) - 0.2 * np.log(0.8) - 0.1 * np.log(0.9)
    wrong = -(1 - 0.1) * np.log(0.1) - 0.7 * np.log(0.3) - 0.2 * np.log(0.8)
    assert modified_entropy(logs, torch.tensor([0, 2])).tolist() == pytest.approx([right, wrong])


def test_modified_entropy_of_certainty_is_finite() -> None:
    """A probability of one gives zero, and a confident wrong answer a large number."""
    logs = torch.tensor([[0.0, -800.0], [0.0, -800.0]], dtype=torch.float64)
    sure, mistaken = modified_entropy(logs, torch.tensor([0, 1])).tolist()
    assert sure == 0.0
    assert mistaken > 700.0


@pytest.mark.parametrize("model", [Mlp(hidden=(16,)), Cnn(channels=(4,), kernel=3, dense=(8,))], ids=["mlp", "cnn"])
def test_scores_and_gradients_are_torchs(digits: Dataset, model: Model) -> None:
    """Each record's own `backward` is the oracle of its gradient norms."""
    learner = Learner(model, digits, [np.arange(5)], Training(), 0)
    module, flat = learner.module, torch.from_numpy(learner.initial())
    examples = Examples(torch.from_numpy(digits.train_x[:5]), torch.from_numpy(digits.train_y[:5]))
    logs = log_posteriors(learner.kernel, torch.stack([flat, 2 * flat]), examples.records)
    module.load_state_dict(unflatten(module, flat))
    expected = module(examples.records).detach()
    assert torch.allclose(logs[0], expected.double().log_softmax(1), atol=1e-6)
    losses = nn.functional.cross_entropy(expected, examples.labels, reduction="none")
    assert torch.allclose(-true_label(logs, examples.labels)[0], losses.double(), atol=1e-6)
    norms = layer_gradient_norms(module, flat, examples)
    for row in range(5):
        module.zero_grad()
        one = examples.at(torch.tensor([row]))
        nn.functional.cross_entropy(module(one.records), one.labels).backward()  # type: ignore[no-untyped-call]
        sizes = [part.grad.double().square().sum() for part in module.parameters() if part.grad is not None]
        pairs = [float((sizes[i] + sizes[i + 1]).sqrt()) for i in range(0, len(sizes), 2)]
        assert norms[row].tolist() == pytest.approx(pairs, rel=1e-4)


def test_largest_posteriors_are_sorted() -> None:
    """Three of four."""
    logs = torch.tensor([[0.1, 0.4, 0.2, 0.3]]).log()
    assert largest_posteriors(logs)[0].tolist() == pytest.approx([0.4, 0.3, 0.2])
