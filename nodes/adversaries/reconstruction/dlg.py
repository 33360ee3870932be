"""Deep leakage from gradients: images and labels together, by L-BFGS (Zhu et al. 2019; used by Yang et al. 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge, Gt
from torch import Tensor

from nodes.adversaries.reconstruction.gradient_target import GradientTarget
from nodes.adversaries.reconstruction.inversion import Reconstruction
from nodes.learning.thread_pool import one_torch_thread
from p2p.random_streams import stream

# Evaluations within one call of the optimiser, as in the authors' code.
INNER = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Dlg:
    """Minimises the squared distance of gradients over images and soft labels; needs no labels, and smooth models.

    Attributes:
        iterations: calls of L-BFGS, each with up to 20 inner iterations
        step_size: step size of L-BFGS
        restarts: random starts; the one with the smallest loss is kept
    """

    iterations: Annotated[int, Ge(1)] = 40
    step_size: Annotated[float, Gt(0)] = 1.0
    restarts: Annotated[int, Ge(1)] = 3

    def reconstruct(self, target: GradientTarget, classes: int, seed: int, *name: str | int) -> Reconstruction:
        """Returns the best of the restarts; each draws its start from a stream called `name` and its number."""
        starts = (_start(target, classes, stream(seed, *name, number)) for number in range(self.restarts))
        with one_torch_thread():
            return min((self._descend(target, *start) for start in starts), key=lambda one: one.losses[-1])

    def _descend(self, target: GradientTarget, images: Tensor, labels: Tensor) -> Reconstruction:
        # Torch's own tolerances would end the search where losses of small gradients begin.
        optimiser = torch.optim.LBFGS(
            [images, labels], lr=self.step_size, max_iter=INNER, tolerance_grad=0.0, tolerance_change=0.0
        )
        best, losses = images.detach().clone(), [float(_loss(target, images, labels).detach())]

        def closure() -> float:
            optimiser.zero_grad()
            loss = _loss(target, images, labels)
            loss.backward()  # type: ignore[no-untyped-call]
            return float(loss.detach())

        for _ in range(self.iterations):
            optimiser.step(closure)  # type: ignore[no-untyped-call]
            loss = float(_loss(target, images, labels).detach())
            # L-BFGS without a line search may jump away; what it had before counts.
            if not math.isfinite(loss):
                break
            if loss < min(losses):
                best = images.detach().clone()
            losses.append(min(loss, losses[-1]))
        return Reconstruction(best.clamp(0.0, 1.0), losses)


def _loss(target: GradientTarget, images: Tensor, labels: Tensor) -> Tensor:
    return (target.of(images, labels.softmax(1)) - target.gradient).square().sum()


def _start(target: GradientTarget, classes: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    images = rng.random((target.count, *target.shape), dtype=np.float32)
    labels = rng.standard_normal((target.count, classes), dtype=np.float32)
    return torch.from_numpy(images).requires_grad_(), torch.from_numpy(labels).requires_grad_()
