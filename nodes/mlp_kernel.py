"""Chains of dense layers, trained side by side with hand-derived gradients.

For a step of a client, `h_0` are its records, `z_l = h_{l-1} W_l^T + b_l`, `h_l = f(z_l)`, and the loss is the weighted
cross-entropy of the softmax of the last z. With `d_L = weights * (softmax - one_hot)`:

    dW_l = d_l^T h_{l-1},   db_l = column sums of d_l,   d_{l-1} = (d_l W_l) * f'(z_{l-1})

Each product is one batched product over clients, and plain SGD adds dW_l to W_l in the product itself: no gradient is
ever stored. That, and chunks that stay in the cache, is where the speed comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nodes.kernels import Samples, Step, layers
from nodes.training import Training

Forward = Callable[[Tensor], Tensor]
Backward = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Bend:
    """An activation, done in place, and the gradient through it given its output."""

    forward: Forward
    backward: Backward


def recognise(module: nn.Module, features: int) -> MlpKernel | None:
    """The fast kernel for `module` if it is a chain of biased dense layers with known activations, else None."""
    chain = list(layers(module))
    if chain and isinstance(chain[0], nn.Flatten) and (chain[0].start_dim, chain[0].end_dim) == (1, -1):
        chain = chain[1:]
    dense, between = chain[::2], chain[1::2]
    bends = [bend_of(layer) for layer in between]
    if len(chain) % 2 == 0 or None in bends or not all(is_dense(layer) for layer in dense):
        return None
    widths = [features, *(layer.out_features for layer in dense if isinstance(layer, nn.Linear))]
    return MlpKernel(widths, [bend for bend in bends if bend is not None])


class MlpKernel:
    """Stacked training of dense layers of the given widths (records first, classes last)."""

    parallel: ClassVar[bool] = True

    def __init__(self, widths: list[int], bends: list[Bend]) -> None:
        self._widths = widths
        self._bends = bends

    def train(self, models: Tensor, samples: Samples, steps: list[Step], training: Training, rate: float) -> None:
        """Batched products over the models that still train; see the module's docstring."""
        weights, biases = self._unstack(models)
        records = samples.records.flatten(1)
        update = _Update(weights, biases, training, rate)
        gathered = records.new_empty(steps[0].rows.numel(), records.shape[1])
        for step in steps:
            size = (*step.rows.shape, -1)
            rows = step.rows.flatten()
            count = len(step.rows)
            batch = torch.index_select(records, 0, rows, out=gathered[: len(rows)])
            values = self._forward(weights, biases, batch.view(size))
            delta = values.pop().softmax(2).sub_(samples.targets.index_select(0, rows).view(size))
            delta.mul_(step.weights.unsqueeze(2))
            for layer in reversed(range(len(weights))):
                before = values.pop()
                further = torch.bmm(delta, weights[layer][:count]) if layer else delta
                update(layer, delta, before)
                if layer:
                    delta = self._bends[layer - 1].backward(further, before)
        self._restack(weights, biases, models)

    def scores(self, models: Tensor, records: Tensor) -> Tensor:
        """The first layer is one product for all models, as they share the records."""
        weights, biases = self._unstack(models)
        first = torch.addmm(biases[0].flatten(), records.flatten(1), weights[0].flatten(0, 1).T)
        value = first.view(len(records), len(models), -1).transpose(0, 1)
        for layer in range(1, len(weights)):
            value = torch.baddbmm(biases[layer], self._bends[layer - 1].forward(value), weights[layer].mT)
        return value

    def _forward(self, weights: list[Tensor], biases: list[Tensor], records: Tensor) -> list[Tensor]:
        """What goes into each layer, and what comes out of the last."""
        values = [records]
        for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            value = torch.baddbmm(bias[: len(records)], values[-1], weight[: len(records)].mT)
            values.append(self._bends[layer].forward(value) if layer < len(self._bends) else value)
        return values

    def _unstack(self, models: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Own copies of the weights [k, out, in] and biases [k, 1, out] of each layer."""
        weights, biases, start = [], [], 0
        for inputs, outputs in zip(self._widths, self._widths[1:], strict=False):
            end = start + inputs * outputs
            weight, bias = models[:, start:end], models[:, None, end : end + outputs]
            weights.append(weight.reshape(-1, outputs, inputs).clone(memory_format=torch.contiguous_format))
            biases.append(bias.clone(memory_format=torch.contiguous_format))
            start = end + outputs
        return weights, biases

    def _restack(self, weights: list[Tensor], biases: list[Tensor], models: Tensor) -> None:
        start = 0
        for part in (part.flatten(1) for pair in zip(weights, biases, strict=True) for part in pair):
            models[:, start : start + part.shape[1]] = part
            start += part.shape[1]


class _Update:
    """One SGD step on a layer's weights and biases, in place, from delta and the layer's input."""

    def __init__(self, weights: list[Tensor], biases: list[Tensor], training: Training, rate: float) -> None:
        self._weights, self._biases = weights, biases
        self._rate, self._momentum, self._decay = rate, training.momentum, training.weight_decay
        if self._momentum:
            self._weight_speeds = [torch.zeros_like(weight) for weight in weights]
            self._bias_speeds = [torch.zeros_like(bias) for bias in biases]

    def __call__(self, layer: int, delta: Tensor, before: Tensor) -> None:
        count = len(delta)
        weight, bias = self._weights[layer][:count], self._biases[layer][:count]
        slope = delta.sum(1, keepdim=True)
        if not self._momentum:
            kept = 1 - self._rate * self._decay
            weight.baddbmm_(delta.mT, before, beta=kept, alpha=-self._rate)
            (bias.mul_(kept) if self._decay else bias).sub_(slope, alpha=self._rate)
            return
        speed = self._weight_speeds[layer][:count].baddbmm_(delta.mT, before, beta=self._momentum)
        bias_speed = self._bias_speeds[layer][:count].mul_(self._momentum).add_(slope)
        if self._decay:
            speed.add_(weight, alpha=self._decay)
            bias_speed.add_(bias, alpha=self._decay)
        weight.sub_(speed, alpha=self._rate)
        bias.sub_(bias_speed, alpha=self._rate)


def is_dense(layer: nn.Module) -> bool:
    """Whether it is a dense layer with biases."""
    return isinstance(layer, nn.Linear) and layer.bias is not None


def bend_of(layer: nn.Module) -> Bend | None:
    """The activation that a layer is, or None."""
    aten = torch.ops.aten
    if isinstance(layer, nn.ReLU):
        return Bend(Tensor.relu_, lambda slope, out: aten.threshold_backward(slope, out, 0))
    if isinstance(layer, nn.LeakyReLU) and (leak := float(layer.negative_slope)) > 0:
        return Bend(
            lambda value: nn.functional.leaky_relu_(value, leak),
            lambda slope, out: aten.leaky_relu_backward(slope, out, leak, True),
        )
    if isinstance(layer, nn.Tanh):
        return Bend(Tensor.tanh_, lambda slope, out: aten.tanh_backward(slope, out))
    if isinstance(layer, nn.Sigmoid):
        return Bend(Tensor.sigmoid_, lambda slope, out: aten.sigmoid_backward(slope, out))
    return None
