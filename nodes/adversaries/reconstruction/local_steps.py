"""Local training as an attack repeats it: SGD over batches of candidate images, differentiable by the images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodes.learning.training import Training
from p2p.random_streams import stream


@dataclass(frozen=True, slots=True, eq=False)
class LocalSteps:
    """The steps of one local training; by default one step on all images, whose update is the gradient itself.

    Attributes:
        batches: for each step the places of its images; none for one step on all images
        rate: learning rate, which matters from the second step on
        momentum: fraction of the previous step that is kept
        weight_decay: pull towards zero
        proximal: pull towards the first model (FedProx)
    """

    batches: Sequence[Tensor] = ()
    rate: float = 0.0
    momentum: float = 0.0
    weight_decay: float = 0.0
    proximal: float = 0.0

    def mean_gradient(self, model: Tensor, gradient: Callable[[Tensor, Tensor | None], Tensor]) -> Tensor:
        """Returns the update divided by learning rate and number of steps.

        Args:
            model: flat, where training starts.
            gradient: mean gradient of some images (None: all) at a flat model, both in the graph of the images.
        """
        if not self.batches:
            return gradient(model, None)
        now, step, total = model, torch.zeros_like(model), torch.zeros_like(model)
        for places in self.batches:
            pull = self.weight_decay * now + self.proximal * (now - model)
            step = self.momentum * step + gradient(now, places) + pull
            # Steps are added up; the difference of two models would lose digits.
            total = total + step
            now = now - self.rate * step
        return total / len(self.batches)


def public_steps(
    training: Training, proximal: float, images: int, round_number: int, seed: int, *name: str | int
) -> LocalSteps:
    """Returns the steps of a client that is known to train on so many images.

    Which images share a batch is the client's secret. Candidate images have no order, so any division will do for the
    first pass; those of later passes are guesses.
    """
    width = training.widest_batch(images)
    order = stream(seed, *name, "batches")
    passes = [np.array_split(order.permutation(images), range(width, images, width)) for _ in range(training.epochs)]
    return LocalSteps(
        batches=[torch.from_numpy(places) for one in passes for places in one],
        rate=training.rate(round_number),
        momentum=training.momentum,
        weight_decay=training.weight_decay,
        proximal=proximal,
    )
