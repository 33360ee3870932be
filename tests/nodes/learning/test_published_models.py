"""The papers' networks by name: their layers, their parameters, and the images they refuse."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from nodes.learning.kernels.cnn import CnnKernel
from nodes.learning.model_kinds.models import Mlp
from nodes.learning.model_kinds.published_models import PUBLISHED_MODELS, AsgpCnn, Cnn6, NissCnn, SigmoidLenet
from nodes.learning.trainer import choose_kernel
from p2p.config.errors import UserError

GREY, COLOUR = (1, 28, 28), (3, 32, 32)


@pytest.mark.parametrize(
    ("model", "shape", "count"),
    [
        # Stated in the papers: 199,210 and 25,450 parameters, and 3,200 inputs of CNN6's dense layer.
        (Mlp(hidden=(200, 200)), GREY, 199_210),
        (Mlp(hidden=(32,)), GREY, 25_450),
        (Cnn6(), COLOUR, 588 + 3924 + 2 * 11_700 + 20_800 + 73_856 + 3200 * 10 + 10),
        # Counted by hand: inputs times kernel plus bias, for each layer.
        (SigmoidLenet(), COLOUR, 912 + 2 * 3612 + 768 * 10 + 10),
        (SigmoidLenet(), GREY, 312 + 2 * 3612 + 588 * 10 + 10),
        (PUBLISHED_MODELS["fednore_cnn"](), GREY, 832 + 51_264 + 1024 * 10 + 10),
        (PUBLISHED_MODELS["fednore_cnn"](), COLOUR, 2432 + 51_264 + 1600 * 10 + 10),
        (NissCnn(), GREY, 260 + 5020 + 320 * 50 + 50 + 510),
        (NissCnn(), COLOUR, 760 + 5020 + 500 * 384 + 384 + 384 * 192 + 192 + 1930),
        (AsgpCnn(), GREY, 832 + 51_264 + 1024 * 512 + 512 + 5130),
        (AsgpCnn(), COLOUR, 2432 + 51_264 + 1600 * 512 + 512 + 512 * 128 + 128 + 1290),
    ],
)
def test_parameters(model: Any, shape: tuple[int, ...], count: int) -> None:
    """The declared number is the paper's and the module's, and the module scores ten classes."""
    module = model.build(shape, 10)
    assert model.parameters(shape, 10) == count == sum(part.numel() for part in module.parameters())
    assert module(torch.zeros(2, *shape)).shape == (2, 10)


def test_cnn6_is_the_table() -> None:
    """Kernel, stride and padding of each layer, and leaky ReLUs of slope 0.2."""
    layers = list(Cnn6().build(COLOUR, 10).children())
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    table = [(3, 4, 2, 2), (12, 3, 2, 1), (36, 3, 1, 1), (36, 3, 1, 1), (36, 3, 2, 1), (64, 3, 1, 1)]
    assert [(one.in_channels, one.kernel_size[0], one.stride[0], one.padding[0]) for one in convolutions] == table
    assert [layer.negative_slope for layer in layers if isinstance(layer, nn.LeakyReLU)] == [0.2] * 6
    assert isinstance(layers[-1], nn.Linear)
    assert layers[-1].in_features == 3200


@pytest.mark.parametrize("kind", PUBLISHED_MODELS)
def test_they_train_by_the_kernel_of_convolutions(kind: str) -> None:
    """None falls back to the slow kernels; numbers in place of images are refused with a cure."""
    model = PUBLISHED_MODELS[kind]()
    assert isinstance(choose_kernel(model.build(COLOUR, 10), torch.zeros(2, *COLOUR)), CnnKernel)
    with pytest.raises(UserError, match=rf"model.kind = {kind}: needs records of shape .* not \[64\]; use mlp"):
        model.parameters((64,), 10)


@pytest.mark.parametrize("kind", ["fednore_cnn", "niss_cnn", "asgp_cnn"])
def test_small_images_are_refused(kind: str) -> None:
    """16 x 16 is the smallest of which something is left."""
    assert PUBLISHED_MODELS[kind]().parameters((1, 16, 16), 10) > 0
    with pytest.raises(UserError, match=f"model.kind = {kind}: needs images of 16 x 16 or more, not 8 x 8; use `cnn`"):
        PUBLISHED_MODELS[kind]().parameters((1, 8, 8), 10)
