"""Small dense classifiers that attacks and scores train for themselves, reproducibly and without global randomness."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from nodes.learning.thread_pool import one_torch_thread

BATCH, RATE = 64, 5e-3


def train_network(
    hidden: tuple[int, ...],
    features: Tensor,
    labels: Tensor,
    classes: int,
    steps: int,
    rng: np.random.Generator,
    weight_decay: float = 0.0,
) -> nn.Module:
    """Returns a dense network trained by Adam on cross-entropy; batches are drawn with replacement from `rng`."""
    module = _initial([features.shape[1], *hidden, classes], rng)
    with one_torch_thread():
        _descend(module, features, labels, steps, rng, weight_decay)
    return module


def _descend(
    module: nn.Module, features: Tensor, labels: Tensor, steps: int, rng: np.random.Generator, weight_decay: float
) -> None:
    optimiser = torch.optim.Adam(module.parameters(), lr=RATE, weight_decay=weight_decay)
    for _ in range(steps):
        rows = torch.from_numpy(rng.integers(len(features), size=min(BATCH, len(features))))
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(module(features[rows]), labels[rows])
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def _initial(widths: list[int], rng: np.random.Generator) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        # On the meta device torch draws nothing, so its global generator stays as it is.
        layer = nn.Linear(before, after, device="meta").to_empty(device="cpu")
        drawn = rng.standard_normal((after, before), dtype=np.float32) * np.float32((2.0 / before) ** 0.5)
        layer.weight = nn.Parameter(torch.from_numpy(drawn))
        layer.bias = nn.Parameter(torch.zeros(after))
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
