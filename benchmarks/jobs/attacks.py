"""What attacks with models cost: gradient inversion at the size at which Weng's findings are repeated."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch

from benchmarks.figures import Effort, Figure, timed
from nodes.adversaries.reconstruction.gradient_target import GradientTarget
from nodes.adversaries.reconstruction.inversion import Inversion
from nodes.datasets.dataset import Dataset, PixelRange
from nodes.learning.model_kinds.models import Mlp
from nodes.learning.trainer import Learner
from nodes.learning.training import Training
from p2p.random_streams import stream

GOAL_S = 10.0
SHAPE, IMAGES = (3, 32, 32), 10


def inversion(effort: Effort) -> list[Figure]:
    """Ten images of CIFAR's shape behind an MLP 3072-128-128-10, 500 steps."""
    target, labels = _problem()
    attack = Inversion(steps=20 if effort.quick else 500)
    # CPU seconds: the attack uses one thread.
    cost_s = min(
        timed(lambda: attack.reconstruct(target, labels, 0, "bench"), time.process_time)
        for _ in range(min(effort.repetitions, 3))
    )
    detail = f"MLP 3072-128-128-10, {attack.steps} steps, cosine"
    return [Figure("inversion of 10 images", cost_s, "s of CPU", GOAL_S, detail=detail)]


def _problem() -> tuple[GradientTarget, torch.Tensor]:
    """Random images and their gradient; what they show does not change the cost."""
    images = torch.from_numpy(stream(0, "bench", "images").random((IMAGES, *SHAPE), dtype=np.float32))
    labels = torch.arange(IMAGES)
    data = Dataset(images.numpy(), labels.numpy(), images.numpy(), labels.numpy(), IMAGES)
    learner = Learner(Mlp(hidden=(128, 128)), data, [np.arange(IMAGES)], Training(), 0)
    weights = torch.from_numpy(learner.initial())
    blank = GradientTarget(learner.module, weights[None], torch.zeros_like(weights), IMAGES, SHAPE, PixelRange())
    return replace(blank, gradient=blank.of(images, labels).detach()), labels
