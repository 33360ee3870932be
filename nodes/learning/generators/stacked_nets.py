"""Stacks of networks with one hidden layer, one per client: forward, hand-derived gradients, and Adam."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor, nn

LEAK = 0.2
_BETAS = (0.5, 0.999)
_SMALL = 1e-8


@dataclass(slots=True, eq=False)
class StackedNet:
    """Weights [k, out, in] and biases [k, 1, out] of both layers, with leaky ReLU in between."""

    parts: list[Tensor]
    _first: list[Tensor] = field(default_factory=list)
    _second: list[Tensor] = field(default_factory=list)

    @classmethod
    def drawn(cls, widths: tuple[int, int, int], generators: list[torch.Generator]) -> StackedNet:
        """Draws initial weights by torch's rule for dense layers, each client's from its own generator."""
        parts = []
        for inputs, outputs in pairwise(widths):
            for shape in ((outputs, inputs), (1, outputs)):
                rows = [torch.empty(shape).uniform_(-1, 1, generator=each) for each in generators]
                parts.append(torch.stack(rows) * inputs**-0.5)
        return cls(parts)

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the hidden layer and the output of the first `len(values)` networks."""
        count = len(values)
        into, bias, out, shift = (part[:count] for part in self.parts)
        hidden = nn.functional.leaky_relu_(torch.baddbmm(bias, values, into.mT), LEAK)
        return hidden, torch.baddbmm(shift, hidden, out.mT)

    def hidden_delta(self, hidden: Tensor, delta: Tensor) -> Tensor:
        """Returns the gradient by the hidden layer's sums, given that by the output."""
        below = torch.bmm(delta, self.parts[2][: len(delta)])
        return torch.where(hidden > 0, below, LEAK * below)

    def gradients(self, values: Tensor, hidden: Tensor, delta: Tensor, below: Tensor) -> list[Tensor]:
        """Returns the gradients of all parts, summed over the records of each network."""
        sums = (below.sum(1, keepdim=True), delta.sum(1, keepdim=True))
        return [torch.bmm(below.mT, values), sums[0], torch.bmm(delta.mT, hidden), sums[1]]

    def step(self, gradients: list[Tensor], rate: float, number: int) -> None:
        """Takes step `number` (from 1) of Adam with the networks that have gradients; later ones stay as they are."""
        if not self._first:
            self._first = [torch.zeros_like(part) for part in self.parts]
            self._second = [torch.zeros_like(part) for part in self.parts]
        one, two = _BETAS
        for part, first, second, slope in zip(self.parts, self._first, self._second, gradients, strict=True):
            count = len(slope)
            mean = first[:count].mul_(one).add_(slope, alpha=1 - one)
            square = second[:count].mul_(two).addcmul_(slope, slope, value=1 - two)
            scale = (square / (1 - two**number)).sqrt_().add_(_SMALL)
            part[:count].addcdiv_(mean, scale, value=-rate / (1 - one**number))
