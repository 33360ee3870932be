"""The interface of training kernels, and the two generic kernels: stacked, and one model at a time.

A stack is a [k, d] tensor, one flat model per row in the order of `module.parameters()`. All kernels take the same
steps on the same batches and agree within float tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from nodes.learning.training import Training


@dataclass(frozen=True, slots=True, eq=False)
class SgdStep:
    """One SGD step of the first `len(rows)` models: record indices [a, b] and their weights in the loss [a, b]."""

    rows: Tensor
    weights: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Records [n, ...], labels [n], and the labels one-hot as float32 [n, classes]."""

    records: Tensor
    labels: Tensor
    targets: Tensor


class Kernel(Protocol):
    """Trains and scores stacked models.

    Attributes:
        parallel: several threads may use the kernel at once
        stacks: a stack takes less time than its models one after the other
    """

    parallel: ClassVar[bool]
    stacks: ClassVar[bool]

    def train(self, models: Tensor, samples: Samples, steps: list[SgdStep], training: Training, rate: float) -> None:
        """Takes the steps in place; a model past its last step is unchanged."""

    def scores(self, models: Tensor, records: Tensor) -> Tensor:
        """Returns the score of each class, [k, n, classes]."""


class OneByOne:
    """The reference kernel for any module: `torch.optim.SGD` on each model in turn."""

    parallel: ClassVar[bool] = False
    stacks: ClassVar[bool] = False

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def train(self, models: Tensor, samples: Samples, steps: list[SgdStep], training: Training, rate: float) -> None:
        """Trains one model after the other."""
        for i in range(len(models)):
            models[i] = self._train(models, i, samples, steps, training, rate)

    def scores(self, models: Tensor, records: Tensor) -> Tensor:
        """Scores one model after the other."""
        return torch.stack([functional_call(self._module, unflatten(self._module, row), (records,)) for row in models])

    @torch.enable_grad()
    def _train(
        self, models: Tensor, index: int, samples: Samples, steps: list[SgdStep], training: Training, rate: float
    ) -> Tensor:
        weights = {name: part.clone().requires_grad_() for name, part in unflatten(self._module, models[index]).items()}
        optimiser = torch.optim.SGD(
            weights.values(), lr=rate, momentum=training.momentum, weight_decay=training.weight_decay
        )
        for step in steps:
            if index < len(step.rows):
                kept = step.weights[index] > 0  # drops the padding of short batches
                rows = step.rows[index][kept]
                optimiser.zero_grad()
                scores = functional_call(self._module, weights, (samples.records[rows],))
                nn.functional.cross_entropy(scores, samples.labels[rows]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        return torch.cat([part.detach().flatten() for part in weights.values()])


class Stacked:
    """Trains all models of a stack at once with `torch.func`, for any module that vmap supports."""

    parallel: ClassVar[bool] = False
    stacks: ClassVar[bool] = True

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        # The models differ in weights and batches when they train, in weights only when they are scored.
        self._gradients = vmap(grad(self._loss))
        self._forward = vmap(self._call, in_dims=(0, None))

    def train(self, models: Tensor, samples: Samples, steps: list[SgdStep], training: Training, rate: float) -> None:
        """Takes each step as one batched forward and backward pass over the models that still train."""
        velocity = torch.zeros_like(models) if training.momentum else None
        for step in steps:
            stack = models[: len(step.rows)]
            parts = self._gradients(
                unflatten(self._module, stack), samples.records[step.rows], samples.labels[step.rows], step.weights
            )
            # `named_parameters` and `parameters` have one order, so the concatenation matches the stack's columns.
            slope = torch.cat([part.flatten(1) for part in parts.values()], dim=1)
            if training.weight_decay:
                slope.add_(stack, alpha=training.weight_decay)
            if velocity is not None:
                slope = velocity[: len(step.rows)].mul_(training.momentum).add_(slope)
            stack.sub_(slope, alpha=rate)

    def scores(self, models: Tensor, records: Tensor) -> Tensor:
        """Scores all models in one batched forward pass."""
        scores: Tensor = self._forward(unflatten(self._module, models), records)
        return scores

    def _call(self, weights: dict[str, Tensor], records: Tensor) -> Tensor:
        scores: Tensor = functional_call(self._module, weights, (records,))
        return scores

    def _loss(self, weights: dict[str, Tensor], records: Tensor, labels: Tensor, shares: Tensor) -> Tensor:
        losses = nn.functional.cross_entropy(self._call(weights, records), labels, reduction="none")
        return (losses * shares).sum()


def unflatten(module: nn.Module, models: Tensor) -> dict[str, Tensor]:
    """Returns views of the parameters in flat models [..., d], by name."""
    names, shapes = zip(*((name, part.shape) for name, part in module.named_parameters()), strict=True)
    parts = torch.split(models, [shape.numel() for shape in shapes], dim=-1)
    return {name: part.view(*models.shape[:-1], *shape) for name, part, shape in zip(names, parts, shapes, strict=True)}


def layers(module: nn.Module) -> Iterator[nn.Module]:
    """Yields the layers of a sequential module, including nested ones."""
    for child in module.children() if isinstance(module, nn.Sequential) else [module]:
        if isinstance(child, nn.Sequential):
            yield from layers(child)
        else:
            yield child
