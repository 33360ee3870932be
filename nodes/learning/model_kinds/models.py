"""Models available to scenarios, each a specification of a torch module.

A specification knows its number of parameters without importing torch, so that scenarios are checked and planned
quickly. A user-defined model is a dataclass with `build(shape, classes)`, where `parameters` is optional, or a torch
module class.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, prod
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from annotated_types import Ge, Len

from p2p.config.errors import UserError
from p2p.config.units import Unit

if TYPE_CHECKING:
    from torch import nn

Width = Annotated[int, Ge(1)]
Activation = Literal["relu", "leaky_relu", "tanh", "sigmoid"]
# Slope of leaky_relu for negative inputs.
LEAK = 0.2


class Model(Protocol):
    """A specification of a module that maps records of `shape` to one score per class."""

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns a new module with torch's default random initialisation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Softmax regression: one layer of weights and biases."""

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns a flatten layer and one linear layer."""
        return Mlp(hidden=()).build(shape, classes)

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters."""
        return Mlp(hidden=()).parameters(shape, classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlp:
    """Multilayer perceptron: a chain of dense layers.

    Attributes:
        hidden: width of each hidden layer
        activation: activation after each hidden layer
    """

    hidden: tuple[Width, ...] = (32,)
    activation: Activation = "relu"

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns a flatten layer, then linear layers with activations in between."""
        from torch import nn

        return nn.Sequential(nn.Flatten(), *_dense([prod(shape), *self.hidden, classes], self.activation))

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters."""
        return _count_dense([prod(shape), *self.hidden, classes])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cnn:
    """Convolutions, each with activation and max pooling, then dense layers.

    Attributes:
        channels: output channels of each convolution
        kernel: side of the square kernels
        pool: side of the pooling windows; 1 does not pool
        padding: valid shrinks the image by kernel - 1, same keeps its size (odd kernels)
        dense: width of each hidden dense layer
        activation: activation after each layer but the last
    """

    channels: Annotated[tuple[Width, ...], Len(1)] = (16, 32)
    kernel: Width = 5
    pool: Width = 2
    padding: Literal["valid", "same"] = "valid"
    dense: tuple[Width, ...] = (512,)
    activation: Activation = "relu"

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns convolution blocks, a flatten layer and dense layers."""
        from torch import nn

        widths = [self._features(shape), *self.dense, classes]
        layers: list[nn.Module] = []
        # Pairs of input and output channels; the first list has one element more.
        for inputs, outputs in zip([shape[0], *self.channels], self.channels, strict=False):
            layers += [nn.Conv2d(inputs, outputs, self.kernel, padding=self._pad()), make_activation(self.activation)]
            if self.pool > 1:
                layers.append(nn.MaxPool2d(self.pool))
        return nn.Sequential(*layers, nn.Flatten(), *_dense(widths, self.activation))

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters."""
        pairs = zip([shape[0], *self.channels], self.channels, strict=False)
        convolutions = sum((inputs * self.kernel**2 + 1) * outputs for inputs, outputs in pairs)
        return convolutions + _count_dense([self._features(shape), *self.dense, classes])

    def _pad(self) -> int:
        return self.kernel // 2 if self.padding == "same" else 0

    def _features(self, shape: tuple[int, ...]) -> int:
        """Returns the features of one record after the last pooling; raises UserError if the shape does not fit."""
        if len(shape) != 3:
            raise UserError(
                f"model.kind = cnn: needs records of shape channels x height x width, not {list(shape)}; use mlp"
            )
        if self.padding == "same" and self.kernel % 2 == 0:
            raise UserError(f"model.kernel = {self.kernel}: padding `same` needs an odd kernel; add or take one")
        height, width = shape[1:]
        for _ in self.channels:
            height, width = ((side + 2 * self._pad() - self.kernel + 1) // self.pool for side in (height, width))
        if min(height, width) < 1:
            raise UserError(
                f"model.channels = {list(self.channels)}: nothing is left of a {shape[1]} x {shape[2]} image;"
                " use fewer convolutions, a smaller kernel or padding `same`"
            )
        return self.channels[-1] * height * width


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteCount:
    """A model of which only the size is known, for runs without learning: its traffic is simulated, nothing else.

    Attributes:
        size: bytes of one model or update as float32 numbers, before sealing; rounded up to whole numbers
    """

    size: Annotated[float, Unit("bytes", low=4.0, high=1e12)]

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Raises a UserError: there is nothing to train."""
        raise UserError("model.kind = bytes: has no layers to train; set `learning: none`, or give another model")

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of float32 numbers that take these bytes."""
        return ceil(self.size / 4)


MODELS: dict[str, type] = {"linear": Linear, "mlp": Mlp, "cnn": Cnn}
SIZE_ONLY: dict[str, type] = {"bytes": ByteCount}
"""Models that cannot be trained, for runs without learning."""


def adapt_module(plugin: type) -> type:
    """Returns the model of a torch module class, and any other class as it is."""
    torch = sys.modules.get("torch")
    # A class that derives from a torch module has imported torch.
    if torch is None or not issubclass(plugin, torch.nn.Module):
        return plugin
    from nodes.learning.model_kinds.module_models import model_class

    return model_class(plugin)


def make_activation(name: Activation) -> nn.Module:
    """Returns a new activation layer."""
    from torch import nn

    if name == "leaky_relu":
        return nn.LeakyReLU(LEAK)
    kinds: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}
    return kinds[name]()


def _dense(widths: list[int], activation: Activation) -> list[nn.Module]:
    from torch import nn

    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), make_activation(activation)]
    return layers[:-1]  # the last layer gives scores, without an activation


def _count_dense(widths: list[int]) -> int:
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))
