"""What a torch module must be like to be trained by many clients at once."""

from __future__ import annotations

from itertools import groupby

import torch
from torch import Tensor, nn

from p2p.config.errors import UserError

_STATE = "model: keeps state beside its parameters (such as BatchNorm); use GroupNorm or LayerNorm"
_MIXES = "model: mixes the records of a batch (BatchNorm), which padding would change; use GroupNorm or LayerNorm"
_RANDOM = "model: draws random numbers of its own (Dropout), so no run could be repeated; leave it out"


def check_module(module: nn.Module, records: Tensor, classes: int) -> None:
    """Raises UserError unless all of a module is its parameters, and it maps records to one score per class each.

    Args:
        records: a few records of the shape of the data.
    """
    if any(isinstance(part, nn.modules.batchnorm._BatchNorm) and not _has_state(part) for part in module.modules()):
        raise UserError(_MIXES)
    if _has_state(module):
        raise UserError(_STATE)
    if not any(True for _ in module.parameters()):
        raise UserError("model: has no parameters, so nothing can be learned; assign layers in its constructor")
    # A module in evaluation mode would draw only later, so its layers are looked at too.
    if any(isinstance(part, nn.modules.dropout._DropoutNd) and part.p > 0 for part in module.modules()):
        raise UserError(_RANDOM)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        before = torch.get_rng_state()
        scores = module(records)
        draws = not torch.equal(before, torch.get_rng_state())
    # Random numbers drawn by a function leave no layer behind, but move torch's generator.
    if draws:
        raise UserError(_RANDOM)
    if scores.shape != (len(records), classes):
        raise UserError(
            f"model: gives {list(scores.shape)} for {len(records)} records; it must give {classes} scores each"
        )


def _has_state(module: nn.Module) -> bool:
    return any(True for _ in module.buffers())


def layer_sizes(module: nn.Module) -> tuple[int, ...]:
    """Returns the numbers of each layer in the order of a flat model: the parameters of one torch module together."""
    named = module.named_parameters()
    grouped = groupby(named, key=lambda item: item[0].rpartition(".")[0])
    return tuple(sum(part.numel() for _, part in parts) for _, parts in grouped)
