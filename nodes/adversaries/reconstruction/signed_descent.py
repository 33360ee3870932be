"""Descent on pixels by signs of the gradient, so that every pixel moves alike however flat the loss is there."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

BETA_1, BETA_2, TINY = 0.9, 0.999, 1e-8


class ImageDescent(Protocol):
    """A rule that changes images in place."""

    def step(self, images: Tensor, gradient: Tensor, size: float) -> None:
        """Takes one step against the gradient."""


class SignedAdam:
    """Adam (Kingma & Ba 2015) that is given the sign of the gradient.

    Weng (2025) prints Adam with its two betas exchanged and without powers (E-T02); this is the standard form.
    """

    def __init__(self) -> None:
        self._count = 0
        self._first: Tensor | float = 0.0
        self._second: Tensor | float = 0.0

    def step(self, images: Tensor, gradient: Tensor, size: float) -> None:
        """Moves by the bias-corrected first moment over the root of the second."""
        sign = gradient.sign()
        self._count += 1
        self._first = BETA_1 * self._first + (1.0 - BETA_1) * sign
        self._second = BETA_2 * self._second + (1.0 - BETA_2) * sign.square()
        mean = self._first / (1.0 - BETA_1**self._count)
        square = self._second / (1.0 - BETA_2**self._count)
        images.sub_(size * mean / (torch.sqrt(square) + TINY))


class SignOfMoment:
    """Sign descent with momentum: Weng's wording, the sign of the first moment with a second moment of one."""

    def __init__(self) -> None:
        self._first: Tensor | float = 0.0

    def step(self, images: Tensor, gradient: Tensor, size: float) -> None:
        """Moves every pixel by `size` against the sign of the first moment."""
        self._first = BETA_1 * self._first + (1.0 - BETA_1) * gradient
        images.sub_(size * torch.sign(self._first))
