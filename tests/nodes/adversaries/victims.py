"""Digits, and gradients of a few of them at a fresh model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from nodes.adversaries.reconstruction.gradient_target import GradientTarget
from nodes.datasets.dataset import Dataset, PixelRange
from nodes.datasets.registry import Digits
from nodes.learning.model_kinds.models import Mlp, Model
from nodes.learning.trainer import Learner
from nodes.learning.training import Training
from p2p.random_streams import stream


@dataclass(frozen=True)
class Victim:
    """Images with labels, and the exact gradient that they give."""

    target: GradientTarget
    images: Tensor
    labels: Tensor

    def noisy(self, std: float, name: int = 0) -> GradientTarget:
        """The gradient with normal noise on every coordinate."""
        drawn = stream(name, "test", "noise").standard_normal(len(self.target.gradient)).astype(np.float32)
        return replace(self.target, gradient=self.target.gradient + std * torch.from_numpy(drawn))

    def scaled(self, factor: float) -> GradientTarget:
        """The gradient after flat clipping by this factor."""
        return replace(self.target, gradient=self.target.gradient * factor)


@pytest.fixture(scope="session")
def digits() -> Dataset:
    """The digits of seed 0."""
    return Digits().load(Path(), 0)


def make_victim(digits: Dataset, model: Model, count: int) -> Victim:
    """One image of each of the first `count` classes, and their gradient at the initial model of seed 0."""
    learner = Learner(model, digits, [np.arange(count)], Training(), 0)
    rows = [int(np.flatnonzero(digits.train_y == label)[0]) for label in range(count)]
    images, labels = torch.from_numpy(digits.train_x[rows]), torch.from_numpy(digits.train_y[rows])
    weights = torch.from_numpy(learner.initial())
    blank = GradientTarget(learner.module, weights[None], torch.zeros_like(weights), count, (1, 8, 8), PixelRange())
    return Victim(replace(blank, gradient=blank.of(images, labels).detach()), images, labels)


@pytest.fixture(scope="session")
def ten_digits(digits: Dataset) -> Victim:
    """Ten images behind an MLP of 64 hidden units."""
    return make_victim(digits, Mlp(hidden=(64,)), 10)
