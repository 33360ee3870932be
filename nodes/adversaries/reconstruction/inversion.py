"""Gradient inversion: images whose gradient points like the observed one (Geiping et al. 2020; thesis ch. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Ge, Gt
from torch import Tensor

from nodes.adversaries.reconstruction.gradient_target import (
    GradientTarget,
    Layers,
    columns_of,
    cosine_distance,
    euclidean_distance,
    total_variation,
)
from nodes.adversaries.reconstruction.signed_descent import ImageDescent, SignedAdam, SignOfMoment
from nodes.learning.thread_pool import one_torch_thread
from p2p.random_streams import stream

# The step size falls to a tenth at these shares of the steps, as in Geiping et al. and Weng (2025).
DECAY_AT = (3 / 8, 5 / 8, 7 / 8)
DECAY = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """Images in [0, 1], [n, channels, height, width], and the attack's loss before each step."""

    images: Tensor
    losses: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """Descends from random images on the distance of gradients plus a total variation, by signs, within [0, 1].

    Attributes:
        objective: distance of gradients; cosine ignores their lengths, hence clipping of the whole vector
        layers: compare gradients as one vector (together), or each layer on its own and sum up
        total_variation: weight of the images' total variation in the loss (a1)
        steps: steps of the attack
        step_size: first step size, in units of the pixel range
        sign_of: Adam on signs of the gradient, or sign descent with momentum (Weng's wording)
        restarts: random starts; the one with the smallest loss is kept
    """

    objective: Literal["cosine", "euclidean"] = "cosine"
    layers: Layers = "together"
    total_variation: Annotated[float, Ge(0)] = 0.01
    steps: Annotated[int, Ge(1)] = 500
    step_size: Annotated[float, Gt(0)] = 0.01
    sign_of: Literal["gradient", "moment"] = "gradient"
    restarts: Annotated[int, Ge(1)] = 1

    def reconstruct(self, target: GradientTarget, labels: Tensor, seed: int, *name: str | int) -> Reconstruction:
        """Returns the best of the restarts; each draws its start from a stream called `name` and its number."""
        with one_torch_thread():
            found = [self._descend(target, labels, random_start(target, seed, *name, i)) for i in range(self.restarts)]
        return min(found, key=lambda one: one.losses[-1])

    def _descend(self, target: GradientTarget, labels: Tensor, images: Tensor) -> Reconstruction:
        columns = columns_of(target.module, len(target.gradient), self.layers)
        descent: ImageDescent = SignedAdam() if self.sign_of == "gradient" else SignOfMoment()
        losses: list[float] = []
        for number in range(self.steps):
            loss, gradient = self._slope(target, images, labels, columns)
            losses.append(loss)
            descent.step(images, gradient, self._size(number))
            images.clamp_(0.0, 1.0)
        return Reconstruction(images, [*losses, self._slope(target, images, labels, columns)[0]])

    def _slope(
        self, target: GradientTarget, images: Tensor, labels: Tensor, columns: list[slice]
    ) -> tuple[float, Tensor]:
        """Returns the loss and its gradient by the images."""
        leaf = images.detach().requires_grad_()
        distance = cosine_distance if self.objective == "cosine" else euclidean_distance
        with torch.enable_grad():
            apart = distance(target.of(leaf, labels), target.gradient, columns)
            loss = apart + self.total_variation * total_variation(leaf)
            (gradient,) = torch.autograd.grad(loss, leaf)
        return float(loss.detach()), gradient

    def _size(self, number: int) -> float:
        """Returns the size of a step."""
        decays = sum(number >= share * self.steps for share in DECAY_AT)
        return self.step_size * DECAY**decays


def random_start(target: GradientTarget, seed: int, *name: str | int) -> Tensor:
    """Returns images with pixels uniform in [0, 1], from the stream called `name`."""
    return torch.from_numpy(stream(seed, *name).random((target.count, *target.shape), dtype=np.float32))
