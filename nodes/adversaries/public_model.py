"""The model that a run trains, rebuilt from what is public about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from nodes.learning.kernels.interface import Kernel
from nodes.learning.trainer import choose_kernel


def build_module(public: Mapping[str, Any]) -> nn.Module:
    """Returns the architecture; its weights are of no meaning."""
    # Torch initialises from its global generator, which the fork restores.
    with torch.random.fork_rng(devices=[]):
        module: nn.Module = public["model"].build(public["data_shape"], public["classes"])
    return module


def build_kernel(module: nn.Module, public: Mapping[str, Any]) -> Kernel:
    """Returns what scores stacks of flat models of this architecture."""
    return choose_kernel(module, torch.zeros(2, *public["data_shape"]))
