"""Networks of the papers by name: convolutions with the papers' sizes, and ours where a paper does not state them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, NamedTuple

from annotated_types import Len

from nodes.learning.model_kinds.models import Activation, Cnn, Width, make_activation
from p2p.config.errors import UserError

if TYPE_CHECKING:
    from torch import nn

Pair = Annotated[tuple[Width, ...], Len(2, 2)]


class Convolution(NamedTuple):
    """Output channels, side of the square kernel, stride and padding of a convolution."""

    channels: int
    kernel: int
    stride: int
    padding: int


CNN6 = (
    Convolution(12, 4, 2, 2),
    Convolution(36, 3, 2, 1),
    Convolution(36, 3, 1, 1),
    Convolution(36, 3, 1, 1),
    Convolution(64, 3, 2, 1),
    Convolution(128, 3, 1, 1),
)
LENET = (Convolution(12, 5, 2, 2), Convolution(12, 5, 2, 2), Convolution(12, 5, 1, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cnn6:
    """Six convolutions with leaky ReLU and one dense layer (Weng 2025, Table 4.2); 154,578 parameters on CIFAR-10."""

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns the convolutions with their activations, a flatten layer and a linear layer."""
        return _build("cnn6", CNN6, "leaky_relu", shape, classes)

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters."""
        return _count("cnn6", CNN6, shape, classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SigmoidLenet:
    """Three convolutions with sigmoids and one dense layer, on which gradients are inverted (Zhu et al. 2019)."""

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns the convolutions with their activations, a flatten layer and a linear layer."""
        return _build("sigmoid_lenet", LENET, "sigmoid", shape, classes)

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters."""
        return _count("sigmoid_lenet", LENET, shape, classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class FednoreCnn:
    """5x5 convolutions of 32 and 64 channels, each with 2x2 max pooling, and one dense layer (Weng 2025, 3.3.3)."""

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns the layers as `cnn` makes them."""
        return self._cnn(shape).build(shape, classes)

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters."""
        return self._cnn(shape).parameters(shape, classes)

    def _cnn(self, shape: tuple[int, ...]) -> Cnn:
        return _pooled("fednore_cnn", shape, (32, 64), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class NissCnn:
    """Two 5x5 convolutions with pooling, then 50 hidden units, or 384 and 192 for colours (Yang et al. 2021).

    Attributes:
        channels: output channels of both convolutions, which the paper does not state
    """

    channels: Pair = (10, 20)

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns the layers as `cnn` makes them."""
        return self._cnn(shape).build(shape, classes)

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters."""
        return self._cnn(shape).parameters(shape, classes)

    def _cnn(self, shape: tuple[int, ...]) -> Cnn:
        return _pooled("niss_cnn", shape, self.channels, (50,) if shape[0] == 1 else (384, 192))


@dataclass(frozen=True, slots=True, kw_only=True)
class AsgpCnn:
    """Two 5x5 convolutions with pooling and two dense layers, or three for colours (Zhang et al. 2024).

    Attributes:
        channels: output channels of both convolutions, which the paper does not state
        dense: widths of the hidden dense layers, which the paper does not state; the second is for colours only
    """

    channels: Pair = (32, 64)
    dense: Pair = (512, 128)

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns the layers as `cnn` makes them."""
        return self._cnn(shape).build(shape, classes)

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters."""
        return self._cnn(shape).parameters(shape, classes)

    def _cnn(self, shape: tuple[int, ...]) -> Cnn:
        return _pooled("asgp_cnn", shape, self.channels, self.dense[:1] if shape[0] == 1 else self.dense)


PUBLISHED_MODELS: dict[str, type] = {
    "cnn6": Cnn6,
    "sigmoid_lenet": SigmoidLenet,
    "fednore_cnn": FednoreCnn,
    "niss_cnn": NissCnn,
    "asgp_cnn": AsgpCnn,
}


def _pooled(kind: str, shape: tuple[int, ...], channels: tuple[int, ...], dense: tuple[int, ...]) -> Cnn:
    """Returns a network of 5x5 convolutions with 2x2 pooling, which needs images of 16 x 16 at least."""
    _check_image(kind, shape)
    # 16 is the smallest side of which two convolutions and poolings leave something.
    if min(shape[1:]) < 16:
        raise UserError(
            f"model.kind = {kind}: needs images of 16 x 16 or more, not {shape[1]} x {shape[2]}; use `cnn` with"
            " `padding: same`"
        )
    return Cnn(channels=channels, kernel=5, dense=dense)


def _check_image(kind: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 3:
        raise UserError(
            f"model.kind = {kind}: needs records of shape channels x height x width, not {list(shape)}; use mlp"
        )


def _build(
    kind: str, chain: tuple[Convolution, ...], activation: Activation, shape: tuple[int, ...], classes: int
) -> nn.Module:
    from torch import nn

    layers: list[nn.Module] = []
    for inputs, one in zip(_inputs(kind, chain, shape), chain, strict=True):
        layers += [nn.Conv2d(inputs, one.channels, one.kernel, one.stride, one.padding), make_activation(activation)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(_features(chain, shape), classes))


def _count(kind: str, chain: tuple[Convolution, ...], shape: tuple[int, ...], classes: int) -> int:
    pairs = zip(_inputs(kind, chain, shape), chain, strict=True)
    convolutions = sum((inputs * one.kernel**2 + 1) * one.channels for inputs, one in pairs)
    return convolutions + (_features(chain, shape) + 1) * classes


def _inputs(kind: str, chain: tuple[Convolution, ...], shape: tuple[int, ...]) -> list[int]:
    """Returns the input channels of each convolution; raises UserError unless records are images."""
    _check_image(kind, shape)
    return [shape[0], *(before.channels for before, _ in pairwise(chain))]


def _features(chain: tuple[Convolution, ...], shape: tuple[int, ...]) -> int:
    height, width = shape[1:]
    for one in chain:
        height, width = ((side + 2 * one.padding - one.kernel) // one.stride + 1 for side in (height, width))
    return chain[-1].channels * height * width
