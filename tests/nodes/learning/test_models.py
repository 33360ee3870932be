"""Recipes count their parameters without torch, and build every network of the papers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nodes.learning.model_kinds.models import MODELS, Cnn, Linear, Mlp
from p2p.config.errors import UserError

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
PAPERS = [
    (Mlp(hidden=(200, 200)), MNIST, 199_210),
    (Mlp(hidden=(32,)), MNIST, 25_450),
    (Mlp(hidden=(64,)), MNIST, 50_890),
    (Mlp(hidden=(1024, 1024, 1024)), CIFAR, 5_256_202),
    (Linear(), MNIST, 7_850),
    (Cnn(channels=(16, 32), dense=(512,)), CIFAR, 429_290),
    (Cnn(channels=(32, 64), dense=(50,)), MNIST, 103_856),
    (Cnn(channels=(16, 32), dense=(384, 192)), CIFAR, 397_482),
    (Cnn(channels=(64, 128, 256), kernel=3, padding="same", dense=(128, 256)), CIFAR, 930_826),
    (Cnn(channels=(8, 16), kernel=3, pool=1, padding="same", activation="leaky_relu"), CIFAR, 8_395_642),
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "shape", "expected"), PAPERS)
def test_parameters_are_those_of_the_module(model: Linear | Mlp | Cnn, shape: tuple[int, ...], expected: int) -> None:
    """The arithmetic count is the module's."""
    import torch

    with torch.device("meta"):
        module = model.build(shape, 10)
    assert model.parameters(shape, 10) == sum(part.numel() for part in module.parameters()) == expected


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_scores_every_class(kind: str) -> None:
    """A batch of images in, a row of scores for each out."""
    import torch

    assert MODELS[kind]().build(MNIST, 7)(torch.zeros(2, *MNIST)).shape == (2, 7)


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (Cnn(), (108,), "model.kind = cnn: needs records of shape channels x height x width, not [108]; use mlp"),
        (Cnn(), (1, 8, 8), "model.channels = [16, 32]: nothing is left of a 8 x 8 image"),
        (Cnn(kernel=4, padding="same"), CIFAR, "model.kernel = 4: padding `same` needs an odd kernel"),
    ],
)
def test_what_does_not_fit_is_a_users_error(model: Cnn, shape: tuple[int, ...], message: str) -> None:
    """Counting refuses what building would refuse."""
    for attempt in (model.build, model.parameters):
        with pytest.raises(UserError) as caught:
            attempt(shape, 10)
        assert message in str(caught.value)


@pytest.mark.slow
def test_describing_models_and_data_imports_nothing_heavy() -> None:
    """`peerveil check` stays quick."""
    code = (
        "import sys, nodes.learning.model_kinds.models, nodes.datasets.registry;"
        "import nodes.learning.training, nodes.learning.evaluation;"
        "nodes.learning.model_kinds.models.Mlp().parameters((4,), 2);"
        "print(sorted({'torch', 'sklearn', 'scipy', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
