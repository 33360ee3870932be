"""In-place SGD on stacked dense layers, with delayed weight updates in the first layer.

The records of a step are known in advance, so the first layer can process several steps at once. With `W` the weights
before these steps, `X` all their records and `d_s` the first layer's delta in step s,

    z_t = X_t W^T - rate * sum over s < t of (X_t X_s^T) d_s,   and afterwards   W -= rate * sum of d_s^T X_s

The steps equal ordinary SGD up to rounding. Products over more records run at a higher rate (measured for 784 x 200
weights: 52 GFlop/s with 10 records, 69 with 20, 76 with 32). The additional products between records are cheap if the
layer is wide and the look-ahead covers only a few steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from nodes.learning.kernels.interface import SgdStep
from nodes.learning.objectives import Pull
from nodes.learning.training import Training

# Records per look-ahead; the products between records grow with its square.
RECORDS_AHEAD = 40
# Least inputs and outputs of a first layer beside which the products between records are cheap.
WIDE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The weights and biases that training began with, and the objective's pull towards them."""

    weights: list[Tensor]
    biases: list[Tensor]
    pull: Pull


class Descent:
    """The weights [k, out, in] and biases [k, 1, out] of each layer, for the models that still train."""

    def __init__(
        self, weights: list[Tensor], biases: list[Tensor], training: Training, rate: float, start: Start | None = None
    ) -> None:
        self._start = start
        # For each layer the gradients of the pull by weights and by biases; empty without one.
        self._pulls: list[tuple[Tensor, Tensor]] = []
        self.rate, self._momentum, self._decay = rate, training.momentum, training.weight_decay
        self._speeds = [[torch.zeros_like(part) for part in parts if self._momentum] for parts in (weights, biases)]
        self._set_views(weights, biases)

    def narrow(self, count: int) -> None:
        """Restricts further steps to the first `count` models."""
        # The count rarely changes between steps, and creating views takes time: nothing is rebuilt if it is equal.
        if count < len(self.biases[0]):
            self._set_views([weight[:count] for weight in self.weights], [bias[:count] for bias in self.biases])
            self._speeds = [[speed[:count] for speed in speeds] for speeds in self._speeds]

    def ahead(self, batch_size: int) -> int:
        """Returns the number of steps the first layer may process at once; 1 disables look-ahead."""
        # Momentum, weight decay and a pull change the weights by more than the deltas, so the formula does not hold.
        wide = min(self.weights[0].shape[1:]) >= WIDE
        plain = not self._momentum and not self._decay and self._start is None
        return max(1, RECORDS_AHEAD // batch_size) if wide and plain else 1

    def measure_pulls(self) -> None:
        """Computes the pull of all layers before a step changes any: it depends on weights and biases together."""
        if self._start is None:
            return
        starts = zip(self._start.weights, self._start.biases, strict=True)
        pairs = zip(self.weights, self.biases, starts, strict=True)
        self._pulls = [
            _pull(weight - first[: len(weight)], bias - second[: len(bias)], self._start.pull)
            for weight, bias, (first, second) in pairs
        ]

    def step_weights(self, layer: int, delta: Tensor, before: Tensor) -> None:
        """Updates a layer's weights from its delta and its input."""
        weight = self.weights[layer]
        if not self._momentum:
            # The gradient is added within the product, so it is never stored.
            weight.baddbmm_(delta.mT, before, beta=1 - self.rate * self._decay, alpha=-self.rate)
            if self._pulls:
                weight.sub_(self._pulls[layer][0], alpha=self.rate)
            return
        speed = self._speeds[0][layer].baddbmm_(delta.mT, before, beta=self._momentum)
        if self._pulls:
            speed.add_(self._pulls[layer][0])
        weight.sub_(speed.add_(weight, alpha=self._decay) if self._decay else speed, alpha=self.rate)

    def step_biases(self, layer: int, delta: Tensor) -> None:
        """Updates a layer's biases from its delta."""
        bias, slope = self.biases[layer], delta.sum(1, keepdim=True)
        if self._decay:
            slope.add_(bias, alpha=self._decay)
        if self._pulls:
            slope.add_(self._pulls[layer][1])
        if self._momentum:
            slope = self._speeds[1][layer].mul_(self._momentum).add_(slope)
        bias.sub_(slope, alpha=self.rate)

    def add_noise(self, layer: int, to_weights: Tensor, to_biases: Tensor) -> None:
        """Adds noise to the gradient of the step just taken; SGD is linear in it, so that may come afterwards."""
        for kind, (parts, noise) in enumerate(((self.weights, to_weights), (self.biases, to_biases))):
            if self._momentum:
                self._speeds[kind][layer].add_(noise)
            parts[layer].sub_(noise, alpha=self.rate)

    def _set_views(self, weights: list[Tensor], biases: list[Tensor]) -> None:
        self.weights, self.biases = weights, biases
        self.turned = [weight.mT for weight in weights]  # transposed views, made once instead of in every step


class FirstLayer:
    """The first layer during several steps on `records` [k, steps * batch, in], with `batch` records per step."""

    def __init__(self, descent: Descent, records: Tensor, batch: int) -> None:
        self._descent, self._records, self._batch = descent, records, batch
        self._end = 0
        # With a single step there is nothing to look ahead to, and one fused product is faster.
        if records.shape[1] > batch:
            self._values = torch.bmm(records, descent.turned[0])
            # Of each later with each earlier record; a transposed copy doubles the speed of a product over so few.
            self._products = torch.bmm(records[:, batch:], records[:, :-batch].mT.contiguous())
            self._deltas = torch.empty_like(self._values)

    def forward(self) -> Tensor:
        """Returns the layer's output in the next step."""
        descent, start = self._descent, self._end
        self._end += self._batch
        if self._batch == self._records.shape[1]:
            return torch.baddbmm(descent.biases[0], self._records, descent.turned[0])
        value = self._values[:, start : self._end] + descent.biases[0]
        if start:
            products = self._products[:, start - self._batch : start, :start]
            value.baddbmm_(products, self._deltas[:, :start], alpha=-descent.rate)
        return value

    def backward(self, delta: Tensor) -> None:
        """Updates the biases; after the last step also the weights, for all steps together."""
        self._descent.step_biases(0, delta)
        if self._batch < self._records.shape[1]:
            self._deltas[:, self._end - self._batch : self._end] = delta
            delta = self._deltas
        if self._end == self._records.shape[1]:
            self._descent.step_weights(0, delta, self._records)


def _pull(weights: Tensor, biases: Tensor, pull: Pull) -> tuple[Tensor, Tensor]:
    """Turns one layer's distances from the start into the gradients of the pull, in place."""
    squares = weights.square().sum((1, 2)) + biases.square().sum((1, 2))
    factor = pull(squares)[:, None, None]
    return weights.mul_(factor), biases.mul_(factor)


def together(steps: list[SgdStep], most: int) -> Iterator[list[SgdStep]]:
    """Groups consecutive steps of the same models into runs of at most `most` steps."""
    run: list[SgdStep] = []
    for step in steps:
        if run and (len(run) == most or len(step.rows) != len(run[0].rows)):
            yield run
            run = []
        run.append(step)
    if run:
        yield run
