"""The two kernels for any module: stacked, and one model at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap

from nodes.learning.kernels.interface import Samples, SgdStep, StackTask, Step
from nodes.learning.objectives import Pull, Terms


class OneByOne:
    """The reference kernel for any module: `torch.optim.SGD` on each model in turn."""

    parallel: ClassVar[bool] = False
    stacks: ClassVar[bool] = False

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def train(self, models: Tensor, task: StackTask[SgdStep]) -> None:
        """Trains one model after the other."""
        for i in range(len(models)):
            terms = task.objectives.terms(slice(i, i + 1))
            models[i] = self._train(models[i], own_batches(task.steps, i), task, terms)

    def scores(self, models: Tensor, records: Tensor) -> Tensor:
        """Scores one model after the other."""
        return torch.stack([functional_call(self._module, unflatten(self._module, row), (records,)) for row in models])

    @torch.enable_grad()
    def _train(self, model: Tensor, batches: Iterator[Tensor], task: StackTask[SgdStep], terms: Terms) -> Tensor:
        samples, training = task.samples, task.training
        weights = {name: part.clone().requires_grad_() for name, part in unflatten(self._module, model).items()}
        optimiser = torch.optim.SGD(
            weights.values(), lr=task.rate, momentum=training.momentum, weight_decay=training.weight_decay
        )
        for rows in batches:
            optimiser.zero_grad()
            scores = functional_call(self._module, weights, (samples.records[rows],))
            slope = terms.noted_slope(scores.detach()[None], samples.targets[rows][None])[0]
            scores.backward(slope.div_(len(rows)))
            if terms.pull is not None:
                self._add_pull(weights, model, terms.pull)
            optimiser.step()
        return _flat(weights)

    def _add_pull(self, weights: dict[str, Tensor], start: Tensor, pull: Pull) -> None:
        pulls = pull_back(_flat(weights)[None], start[None], layer_columns(self._module), pull)[0]
        for name, part in unflatten(self._module, pulls).items():
            own = weights[name].grad
            weights[name].grad = part.clone() if own is None else own + part


class Stacked:
    """Trains all models of a stack at once with `torch.func`, for any module that vmap supports."""

    parallel: ClassVar[bool] = False
    stacks: ClassVar[bool] = True

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        # The models differ in weights and batches when they train, in weights only when they are scored.
        self._forward_each = vmap(self._call)
        self._forward = vmap(self._call, in_dims=(0, None))
        self._columns = layer_columns(module)

    def train(self, models: Tensor, task: StackTask[SgdStep]) -> None:
        """Takes each step as one batched forward and backward pass over the models that still train."""
        terms = task.objectives.terms()
        descend(
            models, task, terms, self._columns, lambda stack, step: self._gradients(stack, task.samples, step, terms)
        )

    def scores(self, models: Tensor, records: Tensor) -> Tensor:
        """Scores all models in one batched forward pass."""
        scores: Tensor = self._forward(unflatten(self._module, models), records)
        return scores

    def _call(self, weights: dict[str, Tensor], records: Tensor) -> Tensor:
        scores: Tensor = functional_call(self._module, weights, (records,))
        return scores

    def _gradients(self, stack: Tensor, samples: Samples, step: SgdStep, terms: Terms) -> Tensor:
        """Returns the gradients of the losses on scores, [a, d]."""
        records = samples.records[step.rows]
        found: Any = vjp(lambda parts: self._forward_each(parts, records), unflatten(self._module, stack))
        scores, back = found
        targets = samples.targets[step.rows]
        slope = terms.noted_slope(scores, targets, step.weights).mul_(step.weights.unsqueeze(2))
        # `named_parameters` and `parameters` have one order, so the concatenation matches the stack's columns.
        (parts,) = back(slope)
        return torch.cat([part.flatten(1) for part in parts.values()], dim=1)


def descend(
    models: Tensor,
    task: StackTask[Step],
    terms: Terms,
    columns: list[slice],
    gradients: Callable[[Tensor, Step], Tensor],
) -> None:
    """Takes the steps of a stack by SGD, in place, given the gradients of the losses on scores.

    Args:
        gradients: of the models [a, d] that a step trains; may be overwritten.
    """
    training = task.training
    velocity = torch.zeros_like(models) if training.momentum else None
    start = models.clone() if terms.pull is not None else models
    for step in task.steps:
        stack = models[: len(step.rows)]
        slope = gradients(stack, step)
        if terms.pull is not None:
            slope.add_(pull_back(stack, start[: len(stack)], columns, terms.pull))
        if training.weight_decay:
            slope.add_(stack, alpha=training.weight_decay)
        if velocity is not None:
            slope = velocity[: len(stack)].mul_(training.momentum).add_(slope)
        stack.sub_(slope, alpha=task.rate)


def own_batches(steps: list[SgdStep], index: int) -> Iterator[Tensor]:
    """Yields the record indices of one model's steps, without the padding of short batches."""
    for step in steps:
        if index < len(step.rows):
            # Padding has weight 0 and follows the records.
            yield step.rows[index, : int(step.weights[index].count_nonzero())]


def layer_columns(module: nn.Module) -> list[slice]:
    """Returns the columns of each layer in a flat model; a layer is the parameters of one torch module."""
    sizes: dict[str, int] = {}
    # Parameters of one module follow each other in `named_parameters`.
    for name, part in module.named_parameters():
        owner = name.rpartition(".")[0]
        sizes[owner] = sizes.get(owner, 0) + part.numel()
    ends = list(accumulate(sizes.values()))
    return [slice(end - size, end) for end, size in zip(ends, sizes.values(), strict=True)]


def pull_back(models: Tensor, start: Tensor, columns: list[slice], pull: Pull) -> Tensor:
    """Returns the gradient of an objective's pull towards the start, for flat models [a, d]."""
    away = models - start
    for part in (away[:, layer] for layer in columns):
        part.mul_(pull(part.square().sum(1)).unsqueeze(1))
    return away


def unflatten(module: nn.Module, models: Tensor) -> dict[str, Tensor]:
    """Returns views of the parameters in flat models [..., d], by name."""
    names, shapes = zip(*((name, part.shape) for name, part in module.named_parameters()), strict=True)
    parts = torch.split(models, [shape.numel() for shape in shapes], dim=-1)
    return {name: part.view(*models.shape[:-1], *shape) for name, part, shape in zip(names, parts, shapes, strict=True)}


def _flat(weights: dict[str, Tensor]) -> Tensor:
    return torch.cat([part.detach().flatten() for part in weights.values()])


def layers(module: nn.Module) -> Iterator[nn.Module]:
    """Yields the layers of a sequential module, including nested ones."""
    for child in module.children() if isinstance(module, nn.Sequential) else [module]:
        if isinstance(child, nn.Sequential):
            yield from layers(child)
        else:
            yield child
