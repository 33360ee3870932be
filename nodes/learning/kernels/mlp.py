"""Training kernel for stacked chains of dense layers, with hand-derived gradients.

In a client's step, `h_0` are its records, `z_l = h_{l-1} W_l^T + b_l`, `h_l = f(z_l)`, and the objective gives the
gradient of the loss by the last z, for cross-entropy `softmax - one_hot`. With `d_L` that gradient times the weights:

    dW_l = d_l^T h_{l-1},   db_l = column sums of d_l,   d_{l-1} = (d_l W_l) * f'(z_{l-1})

Each product is one batched product over clients. Plain SGD adds dW_l to W_l within the product, so no gradient is
stored. The kernel's speed comes from this, from stacks that fit the cache, and from the first layer's look-ahead (see
`nodes.learning.kernels.stacked_sgd`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nodes.learning.kernels.generic import layers
from nodes.learning.kernels.interface import Samples, SgdStep, StackTask
from nodes.learning.kernels.stacked_sgd import Descent, FirstLayer, Start, together
from nodes.learning.objectives import Pull, Terms
from nodes.learning.training import Training

Forward = Callable[[Tensor], Tensor]
Backward = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class ActivationFunction:
    """An in-place activation, and its gradient given its output; `backward` may overwrite the incoming gradient."""

    forward: Forward
    backward: Backward


def match_mlp(module: nn.Module, features: int) -> MlpKernel | None:
    """Returns the kernel for `module` if it is a chain of biased dense layers with known activations, else None."""
    chain = list(layers(module))
    if chain and isinstance(chain[0], nn.Flatten) and (chain[0].start_dim, chain[0].end_dim) == (1, -1):
        chain = chain[1:]
    # Dense layers and activations must alternate, with dense layers at both ends.
    dense, between = chain[::2], chain[1::2]
    bends = [bend_of(layer) for layer in between]
    if len(chain) % 2 == 0 or None in bends or not all(is_dense(layer) for layer in dense):
        return None
    widths = [features, *(layer.out_features for layer in dense if isinstance(layer, nn.Linear))]
    return MlpKernel(widths, [bend for bend in bends if bend is not None])


class MlpKernel:
    """Trains stacks of dense layers with the given widths (features first, classes last)."""

    parallel: ClassVar[bool] = True
    stacks: ClassVar[bool] = True

    def __init__(self, widths: list[int], bends: list[ActivationFunction]) -> None:
        self._widths = widths
        self._bends = bends

    def train(self, models: Tensor, task: StackTask[SgdStep]) -> None:
        """Takes the steps as batched products over the models that still train; see the module's docstring."""
        terms = task.objectives.terms()
        with self.descent(models, task.training, task.rate, terms.pull) as descent:
            for run in together(task.steps, descent.ahead(task.steps[0].rows.shape[1])):
                descent.narrow(len(run[0].rows))
                self._take_run(run, task.samples, descent, terms)

    def scores(self, models: Tensor, records: Tensor) -> Tensor:
        """Scores all models; the first layer is one product, as all models share the records."""
        weights, biases = self._unstack(models)
        first = torch.addmm(biases[0].flatten(), records.flatten(1), weights[0].flatten(0, 1).T)
        value = first.view(len(records), len(models), -1).transpose(0, 1)
        for layer in range(1, len(weights)):
            value = torch.baddbmm(biases[layer], self._bends[layer - 1].forward(value), weights[layer].mT)
        return value

    def _take_run(self, run: list[SgdStep], samples: Samples, descent: Descent, terms: Terms) -> None:
        """Takes several steps of the same models, which the first layer processes at once."""
        rows = torch.cat([step.rows for step in run], dim=1)
        size, rows, batch = (*rows.shape, -1), rows.flatten(), run[0].rows.shape[1]
        first = FirstLayer(descent, samples.records.flatten(1).index_select(0, rows).view(size), batch)
        targets = torch.split(samples.targets.index_select(0, rows).view(size), batch, dim=1)
        for step, target in zip(run, targets, strict=True):
            values = self.forward(descent, first.forward())
            delta = terms.noted_slope(values.pop(), target, step.weights).mul_(step.weights.unsqueeze(2))
            descent.measure_pulls()
            for layer in reversed(range(1, len(descent.weights))):
                before = values.pop()
                # Before the weights change: the lower layer's gradient needs those of the forward pass.
                further = torch.bmm(delta, descent.weights[layer])
                descent.step_weights(layer, delta, before)
                descent.step_biases(layer, delta)
                delta = self._bends[layer - 1].backward(further, before)
            first.backward(delta)

    def forward(self, descent: Descent, value: Tensor) -> list[Tensor]:
        """Returns the input of each layer but the first, followed by the output of the last."""
        values = []
        for layer, bend in enumerate(self._bends, start=1):
            values.append(bend.forward(value))
            value = torch.baddbmm(descent.biases[layer], values[-1], descent.turned[layer])
        return [*values, value]

    def deltas(self, descent: Descent, inputs: list[Tensor], delta: Tensor) -> list[Tensor]:
        """Returns the delta of each layer, given the inputs of all layers and the delta of the last."""
        found = [delta]
        for layer in reversed(range(1, len(descent.weights))):
            below = torch.bmm(found[0], descent.weights[layer])
            found.insert(0, self._bends[layer - 1].backward(below, inputs[layer]))
        return found

    @contextmanager
    def descent(self, models: Tensor, training: Training, rate: float, pull: Pull | None) -> Iterator[Descent]:
        """Yields the layers of a stack for training, and writes them back into the stack at the end."""
        weights, biases = self._unstack(models)
        # The stack keeps the start: it is written to at the end only.
        start = None if pull is None else Start(*self.views(models), pull)
        yield Descent(weights, biases, training, rate, start)
        self._restack(weights, biases, models)

    def _unstack(self, models: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Returns copies of the weights [k, out, in] and biases [k, 1, out] of each layer."""
        # Copies, because slices of a row are strided over the stack, and batched products are slow on those.
        weights, biases = self.views(models)
        return _copies(weights), _copies(biases)

    def views(self, models: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Returns views of the weights [k, out, in] and biases [k, 1, out] of each layer."""
        weights, biases, start = [], [], 0
        for inputs, outputs in zip(self._widths, self._widths[1:], strict=False):
            end = start + inputs * outputs
            weights.append(models[:, start:end].view(-1, outputs, inputs))
            biases.append(models[:, None, end : end + outputs])
            start = end + outputs
        return weights, biases

    def _restack(self, weights: list[Tensor], biases: list[Tensor], models: Tensor) -> None:
        """Writes the layers back into the rows of a stack."""
        start = 0
        for part in (part.flatten(1) for pair in zip(weights, biases, strict=True) for part in pair):
            models[:, start : start + part.shape[1]] = part
            start += part.shape[1]


def _copies(parts: list[Tensor]) -> list[Tensor]:
    return [part.clone(memory_format=torch.contiguous_format) for part in parts]


def is_dense(layer: nn.Module) -> bool:
    """Returns whether a layer is dense with biases."""
    return isinstance(layer, nn.Linear) and layer.bias is not None


def bend_of(layer: nn.Module) -> ActivationFunction | None:
    """Returns the activation of a layer, or None if it is not a supported one."""
    aten = torch.ops.aten
    if isinstance(layer, nn.ReLU):
        masked = aten.threshold_backward.grad_input
        return ActivationFunction(Tensor.relu_, lambda slope, out: masked(slope, out, 0, grad_input=slope))
    # A slope of 0 or below is left out: the output's sign would no longer tell the input's.
    if isinstance(layer, nn.LeakyReLU) and (leak := float(layer.negative_slope)) > 0:
        return ActivationFunction(
            lambda value: nn.functional.leaky_relu_(value, leak),
            lambda slope, out: aten.leaky_relu_backward(slope, out, leak, True),
        )
    if isinstance(layer, nn.Tanh):
        return ActivationFunction(Tensor.tanh_, lambda slope, out: aten.tanh_backward(slope, out))
    if isinstance(layer, nn.Sigmoid):
        return ActivationFunction(Tensor.sigmoid_, lambda slope, out: aten.sigmoid_backward(slope, out))
    return None
