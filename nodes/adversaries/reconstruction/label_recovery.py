"""Labels of a batch, read off the gradient of the last layer's biases (Zhao et al. 2020 for one image)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodes.adversaries.reconstruction.gradient_target import GradientTarget, to_records
from nodes.adversaries.reconstruction.inversion import random_start
from nodes.learning.kernels.generic import unflatten
from p2p.config.errors import UserError

# Random images whose mean output stands for the unknown images' mean output.
PROBES = 64


def recover_labels(target: GradientTarget, classes: int, seed: int, *name: str | int) -> Tensor:
    """Returns the most plausible labels [n], sorted.

    The gradient of the mean cross-entropy by the last bias is the mean predicted probability of each class minus the
    share of its records. For one image the only negative entry is its label. For several, the unknown mean prediction
    is replaced by that on random images, which is close early in training and degrades later.
    """
    if not _ends_in_biases(target.module, classes):
        raise UserError(
            "attack: labels cannot be read off a model whose last parameters are not one bias for each class;"
            " add `labels: true` to what the observer `knows`"
        )
    shares = _mean_prediction(target, seed, *name) - target.gradient[-classes:]
    return _round_to_labels(shares * target.count, target.count)


def _ends_in_biases(module: nn.Module, classes: int) -> bool:
    return list(module.parameters())[-1].shape == (classes,)


def _mean_prediction(target: GradientTarget, seed: int, *name: str | int) -> Tensor:
    starts = torch.cat([random_start(target, seed, *name, number) for number in range(-(-PROBES // target.count))])
    model = unflatten(target.module, target.weights.mean(0))
    with torch.no_grad():
        scores: Tensor = torch.func.functional_call(target.module, model, (to_records(starts, target.pixels),))
    return scores.softmax(1).mean(0)


def _round_to_labels(counts: Tensor, total: int) -> Tensor:
    """Returns `total` labels whose counts are nearest to `counts`: whole parts first, then the largest remainders."""
    held = counts.clamp(min=0.0)
    # Noise can make the estimates sum to anything; only their proportions are used.
    held = held * (total / held.sum().clamp(min=1e-12)) if held.sum() > 0 else torch.full_like(held, total / len(held))
    whole = held.floor()
    missing = total - int(whole.sum())
    whole[torch.argsort(held - whole, descending=True, stable=True)[:missing]] += 1
    return torch.repeat_interleave(torch.arange(len(whole)), whole.to(torch.int64))
