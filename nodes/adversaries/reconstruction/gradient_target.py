"""The gradient that an attack tries to explain, and how far candidate images are from explaining it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from nodes.adversaries.reconstruction.local_steps import LocalSteps
from nodes.datasets.dataset import PixelRange
from nodes.learning.kernels.generic import layer_columns, unflatten

Layers = Literal["together", "each"]
# The cosine with a zero vector is 0.
_TINY = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class GradientTarget:
    """An observed gradient, the public model it belongs to, and what is known of the images behind it.

    Attributes:
        module: the model's architecture
        weights: the models at which the gradient was taken, [s, d]; of several, the mean gradient is matched
        gradient: mean gradient of the cross-entropy of `count` images, [d], with clipping and noise as it was seen; of
            several local steps, the mean over these
        count: number of images
        shape: channels, height and width of an image
        pixels: values of black and white in the records that the model reads
        steps: the local steps behind the gradient, as far as they are known
    """

    module: nn.Module
    weights: Tensor
    gradient: Tensor
    count: int
    shape: tuple[int, ...]
    pixels: PixelRange
    steps: LocalSteps = field(default_factory=LocalSteps)

    def of(self, images: Tensor, targets: Tensor) -> Tensor:
        """Returns the mean gradient [d] that training on images in [0, 1] would give, differentiable by them.

        Args:
            targets: labels [n], or the probability of each class [n, classes].
        """
        records = to_records(images, self.pixels)

        def gradient(model: Tensor, places: Tensor | None) -> Tensor:
            some = (records, targets) if places is None else (records[places], targets[places])
            return self._at(model, *some)

        found = [self.steps.mean_gradient(model, gradient) for model in self.weights]
        return torch.stack(found).mean(0) if len(found) > 1 else found[0]

    def _at(self, model: Tensor, records: Tensor, targets: Tensor) -> Tensor:
        # One flat vector: the gradient then comes out flat, in the order of a released one. After the first local step
        # it depends on the images already.
        flat = model if model.requires_grad else model.detach().clone().requires_grad_()
        scores = functional_call(self.module, unflatten(self.module, flat), (records,))
        loss = nn.functional.cross_entropy(scores, targets)
        (gradient,) = torch.autograd.grad(loss, flat, create_graph=True)
        return gradient


def to_records(images: Tensor, pixels: PixelRange) -> Tensor:
    """Returns images [..., channels, height, width] with pixels in [0, 1] as records that the model reads."""
    black, white = _ends(pixels)
    return black + images * (white - black)


def to_images(records: Tensor, pixels: PixelRange) -> Tensor:
    """Returns records as images with pixels in [0, 1]."""
    black, white = _ends(pixels)
    return (records - black) / (white - black)


def cosine_distance(found: Tensor, wanted: Tensor, columns: list[slice]) -> Tensor:
    """Returns `1 - cos`, the mean over the parts of the vectors that `columns` name.

    A factor common to a part changes nothing, so clipping of the whole vector is invisible to the distance over all
    columns, and clipping of each layer to the mean over layers.
    """
    parts = [_cosine(found[part], wanted[part]) for part in columns]
    return 1.0 - torch.stack(parts).mean()


def euclidean_distance(found: Tensor, wanted: Tensor, columns: list[slice]) -> Tensor:
    """Returns the L2 distance, the sum over the parts that `columns` name."""
    parts = [torch.linalg.vector_norm(found[part] - wanted[part]) for part in columns]
    return torch.stack(parts).sum()


def columns_of(module: nn.Module, dimension: int, layers: Layers) -> list[slice]:
    """Returns the parts of a flat gradient that are compared: all at once, or layer by layer."""
    return layer_columns(module) if layers == "each" else [slice(0, dimension)]


def total_variation(images: Tensor) -> Tensor:
    """Returns the mean absolute vertical plus the mean absolute horizontal difference of neighbouring pixels."""
    steps = (images.diff(dim=-2), images.diff(dim=-1))
    # An image of a single row has no vertical differences, and the mean of nothing is NaN.
    return torch.stack([step.abs().mean() for step in steps if step.numel()]).sum()


def _cosine(found: Tensor, wanted: Tensor) -> Tensor:
    lengths = torch.linalg.vector_norm(found) * torch.linalg.vector_norm(wanted)
    cosine: Tensor = (found * wanted).sum() / lengths.clamp(min=_TINY)
    return cosine


def _ends(pixels: PixelRange) -> tuple[Tensor, Tensor]:
    return torch.tensor(pixels.black)[:, None, None], torch.tensor(pixels.white)[:, None, None]
