"""Training kernel for chains of convolutions, pooling and dense layers; it calls torch's backward operators directly.

Batched convolutions with separate weights per client are slow on CPUs, so models are trained one after the other.
The kernel is faster than a module with an optimiser for four reasons. Images are stored channels-last, where pooling
is an order of magnitude faster. Pooling precedes a monotone activation, which then has a quarter of the work. Dense
layers add the gradient to the weights within the matrix product. No state is shared, so cores train different clients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from nodes.learning.kernels.generic import layers, own_batches, unflatten
from nodes.learning.kernels.interface import SgdStep, StackTask
from nodes.learning.kernels.mlp import ActivationFunction, bend_of, is_dense
from nodes.learning.objectives import Terms
from nodes.learning.training import Training

LAST = torch.channels_last


class Layer(Protocol):
    """One layer of one model; `forward` stores the values that `backward` needs."""

    def forward(self, value: Tensor) -> Tensor:
        """Returns the layer's output."""

    def backward(self, delta: Tensor, update: ParameterUpdate, further: bool) -> Tensor:
        """Updates the layer's weights and returns the gradient of its input; computes that only if `further` is set."""


@dataclass(frozen=True, slots=True)
class ParameterUpdate:
    """SGD with momentum, weight decay and the objective's pull, in place.

    `speeds` holds the momentum buffer of each parameter, `pulls` the gradient of the pull in the current step.
    """

    rate: float
    training: Training
    terms: Terms
    speeds: dict[int, Tensor] = field(default_factory=dict)
    pulls: dict[int, Tensor] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        """Whether a step is the gradient of the loss on scores alone, with weight decay."""
        return not self.training.momentum and self.terms.pull is None

    def measure_pulls(self, chain: list[Layer], start: list[list[Tensor]]) -> None:
        """Computes the pull of all layers before a step changes any: it depends on weights and biases together."""
        if self.terms.pull is None:
            return
        for layer, first in zip(chain, start, strict=True):
            parts = _parameters(layer)
            away = [part - begun for part, begun in zip(parts, first, strict=True)]
            if away:
                squares = torch.stack([part.square().sum() for part in away]).sum(0, keepdim=True)
                factor = self.terms.pull(squares)
                self.pulls.update((id(part), each.mul_(factor)) for part, each in zip(parts, away, strict=True))

    def __call__(self, weight: Tensor, slope: Tensor) -> None:
        if self.terms.pull is not None:
            slope = slope + self.pulls[id(weight)]
        if self.training.weight_decay:
            slope = slope.add(weight, alpha=self.training.weight_decay)
        if self.training.momentum:
            # Keyed by identity: the layers keep every weight alive during the update's use, so no id is reused.
            speed = self.speeds.setdefault(id(weight), torch.zeros_like(slope))
            slope = speed.mul_(self.training.momentum).add_(slope)
        weight.sub_(slope, alpha=self.rate)


class Convolve:
    """A convolution with its own weights."""

    def __init__(self, weight: Tensor, bias: Tensor, stride: list[int], padding: list[int]) -> None:
        self.weight, self.bias = weight.contiguous(memory_format=LAST), bias
        self._stride, self._padding = stride, padding

    def forward(self, value: Tensor) -> Tensor:
        """Returns a channels-last output for a channels-last input."""
        self._value = value
        return torch.conv2d(value, self.weight, self.bias, self._stride, self._padding)

    def backward(self, delta: Tensor, update: ParameterUpdate, further: bool) -> Tensor:
        """Applies torch's gradient of a convolution."""
        # After padding: dilation, transposed, output padding, groups, and which of the three gradients to compute.
        below, weight, bias = torch.ops.aten.convolution_backward(
            delta, self._value, self.weight, [len(self.bias)], self._stride, self._padding,
            [1, 1], False, [0, 0], 1, [further, True, True],
        )  # fmt: skip
        update(self.weight, weight)
        update(self.bias, bias)
        return delta if below is None else below


class DenseLayer:
    """A dense layer with its own weights."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.weight, self.bias = weight, bias

    def forward(self, value: Tensor) -> Tensor:
        """Computes the layer as one matrix product."""
        self._value = value
        return torch.addmm(self.bias, value, self.weight.T)

    def backward(self, delta: Tensor, update: ParameterUpdate, further: bool) -> Tensor:
        """Updates the weights; without momentum and pull the gradient is added to them within the product."""
        # Before the update: the input's gradient needs the weights of the forward pass.
        below = delta @ self.weight if further else delta
        if not update.plain:
            update(self.weight, delta.T @ self._value)
        else:
            kept = 1 - update.rate * update.training.weight_decay
            self.weight.addmm_(delta.T, self._value, beta=kept, alpha=-update.rate)
        update(self.bias, delta.sum(0))
        return below


class Pool:
    """Max pooling."""

    def __init__(self, kernel: list[int], stride: list[int], padding: list[int]) -> None:
        self._window = (kernel, stride, padding)

    def forward(self, value: Tensor) -> Tensor:
        """Pools and stores the position of each window's maximum."""
        self._value = value
        pooled, self._where = torch.ops.aten.max_pool2d_with_indices(value, *self._window)
        return pooled  # type: ignore[no-any-return]

    def backward(self, delta: Tensor, update: ParameterUpdate, further: bool) -> Tensor:
        """Routes the gradient to the position of each window's maximum."""
        below = torch.ops.aten.max_pool2d_with_indices_backward
        return below(delta, self._value, *self._window, [1, 1], False, self._where)  # type: ignore[no-any-return]


class Activate:
    """An activation function."""

    def __init__(self, bend: ActivationFunction) -> None:
        self._bend = bend

    def forward(self, value: Tensor) -> Tensor:
        """Applies the activation in place."""
        self._value = self._bend.forward(value)
        return self._value

    def backward(self, delta: Tensor, update: ParameterUpdate, further: bool) -> Tensor:
        """Computes the gradient from the output alone."""
        return self._bend.backward(delta, self._value)


class Flatten:
    """Flattens images to rows, in the order channel, height, width."""

    def forward(self, value: Tensor) -> Tensor:
        """Returns a copy, since channels-last images are not contiguous in that order."""
        self._shape = value.shape
        return value.flatten(1)

    def backward(self, delta: Tensor, update: ParameterUpdate, further: bool) -> Tensor:
        """Restores the image shape."""
        return delta.view(self._shape).contiguous(memory_format=LAST) if len(self._shape) == 4 else delta


class CnnKernel:
    """Trains chains of supported layers, one model after the other."""

    parallel: ClassVar[bool] = True
    stacks: ClassVar[bool] = False

    def __init__(self, module: nn.Module, chain: list[nn.Module]) -> None:
        self._module = module
        self._chain = chain

    def train(self, models: Tensor, task: StackTask[SgdStep]) -> None:
        """Takes all steps of one model before starting the next."""
        samples = task.samples
        for i, model in enumerate(models):
            chain = self._build(model)
            update = ParameterUpdate(task.rate, task.training, task.objectives.terms(slice(i, i + 1)))
            # Copied only for an objective that pulls towards them.
            start = [[part.clone() for part in _parameters(layer)] for layer in chain if update.terms.pull]
            # Without padding, all records of a batch have the same weight.
            for rows in own_batches(task.steps, i):
                update.measure_pulls(chain, start)
                records, targets = (column.index_select(0, rows) for column in (samples.records, samples.targets))
                _step(chain, records, targets, update)
            model.copy_(torch.cat([part.flatten() for layer in chain for part in _parameters(layer)]))

    def scores(self, models: Tensor, records: Tensor) -> Tensor:
        """Scores one model after the other."""
        return torch.stack([_forward(self._build(model), records) for model in models])

    def _build(self, model: Tensor) -> list[Layer]:
        """Returns the chain of layers with its own copy of a flat model's weights."""
        parts = (part.clone() for part in unflatten(self._module, model).values())
        return [_layer(layer, parts) for layer in self._chain]


def recognise_cnn(module: nn.Module) -> CnnKernel | None:
    """Returns the kernel for `module`, or None unless it is a chain of supported layers starting with a convolution."""
    chain = list(layers(module))
    if not isinstance(chain[0], nn.Conv2d) or not all(_is_known(layer) for layer in chain):
        return None
    for i in range(1, len(chain)):
        # A monotone activation commutes with a maximum, and pooling first leaves fewer values to activate.
        if isinstance(chain[i], nn.MaxPool2d) and isinstance(chain[i - 1], nn.ReLU | nn.LeakyReLU):
            chain[i - 1], chain[i] = chain[i], chain[i - 1]
    return CnnKernel(module, chain)


def _is_known(layer: nn.Module) -> bool:
    if isinstance(layer, nn.Conv2d):
        plain = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
        return plain and layer.bias is not None and not isinstance(layer.padding, str)
    if isinstance(layer, nn.MaxPool2d):
        return layer.dilation == 1 and not layer.ceil_mode and not layer.return_indices
    if isinstance(layer, nn.Flatten):
        return (layer.start_dim, layer.end_dim) == (1, -1)
    return is_dense(layer) or bend_of(layer) is not None


def _layer(layer: nn.Module, parts: Iterator[Tensor]) -> Layer:
    if isinstance(layer, nn.Conv2d):
        return Convolve(next(parts), next(parts), list(layer.stride), [int(side) for side in layer.padding])
    if isinstance(layer, nn.MaxPool2d):
        return Pool(*(_pair(size) for size in (layer.kernel_size, layer.stride, layer.padding)))
    if isinstance(layer, nn.Linear):
        return DenseLayer(next(parts), next(parts))
    bend = bend_of(layer)
    return Flatten() if bend is None else Activate(bend)


def _pair(size: int | tuple[int, ...]) -> list[int]:
    return [size, size] if isinstance(size, int) else list(size)


def _parameters(layer: Layer) -> list[Tensor]:
    return [layer.weight, layer.bias] if isinstance(layer, Convolve | DenseLayer) else []


def _forward(chain: list[Layer], records: Tensor) -> Tensor:
    value = records.contiguous(memory_format=LAST)
    for layer in chain:
        value = layer.forward(value)
    return value


def _step(chain: list[Layer], records: Tensor, targets: Tensor, update: ParameterUpdate) -> None:
    """One SGD step on the mean loss of a batch."""
    delta = update.terms.noted_slope(_forward(chain, records)[None], targets[None])[0].div_(len(targets))
    for depth in reversed(range(len(chain))):
        delta = chain[depth].backward(delta, update, depth > 0)  # the records' own gradient is not needed
