"""DP-SGD on stacked models: the gradient of every record is clipped before they are summed, then noise is added.

Dense layers need no gradient of a single record: its norm follows from the layer's input h and delta d, since
`|d h^T| = |d| |h|` (Goodfellow 2015). With the factors of all records known, one batched product per layer gives the
sum. Other modules get each record's gradient by `torch.func`, some records at a time.

A record whose gradient is no finite number counts as zero: otherwise it alone could make the whole model infinite,
which no noise hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap

from nodes.learning.kernels.generic import OneByOne, descend, layer_columns, unflatten
from nodes.learning.kernels.interface import Kernel, Samples, StackTask
from nodes.learning.kernels.mlp import MlpKernel
from nodes.learning.kernels.stacked_sgd import Descent
from nodes.learning.objectives import Terms
from p2p.config.errors import UserError

# Floats of single records' gradients that are held at once (64 MiB).
NUMBERS_AT_ONCE = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class PrivateStep:
    """One step of the first `len(rows)` models.

    Attributes:
        rows: record indices [a, b]
        weights: factor of each record's clipped gradient [a, b]; 0 for padding
        noise_std: deviation of the noise in each coordinate [a]
        protected: which records are clipped [a, b]; None clips all. Generated records are used as they are
    """

    rows: Tensor
    weights: Tensor
    noise_std: list[float]
    protected: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RecordProtection:
    """The clipping norm, and the noise generator of each model of the stack."""

    clip: float
    generators: Sequence[torch.Generator]

    def factors(self, squares: Tensor, weights: Tensor, protected: Tensor | None) -> Tensor:
        """Returns the factor of each record's gradient, given the squared norms of all [a, b]."""
        # A norm of zero gives an infinite ratio, which is clamped like any other.
        kept = (self.clip / squares.sqrt()).clamp_(max=1.0)
        if protected is not None:
            kept.masked_fill_(~protected, 1.0)
        kept.mul_(weights)
        return torch.where(squares.isfinite(), kept, 0.0)

    def fill(self, noise: Tensor, step: PrivateStep) -> Tensor:
        """Draws the noise of a step into the first rows of `noise` and returns them."""
        used = noise[: len(step.rows)]
        for row, std, generator in zip(used, step.noise_std, self.generators, strict=False):
            # Without noise, as where no real record is used, nothing need be drawn.
            row.zero_() if std == 0.0 else row.normal_(0.0, std, generator=generator)
        return used


class PrivateKernel(Protocol):
    """Trains stacked models with protection of single records; several threads may use it if it is `parallel`."""

    parallel: ClassVar[bool]

    def train_private(self, models: Tensor, task: StackTask[PrivateStep], protection: RecordProtection) -> None:
        """Takes the steps in place; a model past its last step is unchanged."""


def choose_private_kernel(module: nn.Module, kernel: Kernel) -> PrivateKernel:
    """Returns the DP-SGD form of the kernel that was chosen for `module`."""
    if isinstance(kernel, MlpKernel):
        return PrivateMlp(kernel)
    if isinstance(kernel, OneByOne):
        # Chosen only where vmap failed.
        raise UserError(
            "training.per_sample: torch.func cannot vectorise this model, so no record's own gradient is known; "
            "use operations that vmap supports, or drop it"
        )
    return PrivateStack(module)


class PrivateMlp:
    """Dense layers: norms from inputs and deltas, sums by batched products."""

    parallel: ClassVar[bool] = True

    def __init__(self, kernel: MlpKernel) -> None:
        self._kernel = kernel

    def train_private(self, models: Tensor, task: StackTask[PrivateStep], protection: RecordProtection) -> None:
        """Takes each step as batched products over the models that still train."""
        terms, noise = task.objectives.terms(), torch.empty_like(models)
        with self._kernel.descent(models, task.training, task.rate, terms.pull) as descent:
            for step in task.steps:
                descent.narrow(len(step.rows))
                self._add_gradients(step, task.samples, descent, terms, protection)
                parts = self._kernel.views(protection.fill(noise, step))
                for layer, (to_weights, to_biases) in enumerate(zip(*parts, strict=True)):
                    descent.add_noise(layer, to_weights, to_biases)

    def _add_gradients(
        self, step: PrivateStep, samples: Samples, descent: Descent, terms: Terms, protection: RecordProtection
    ) -> None:
        size, rows = (*step.rows.shape, -1), step.rows.flatten()
        records = samples.records.flatten(1).index_select(0, rows).view(size)
        targets = samples.targets.index_select(0, rows).view(size)
        first = torch.baddbmm(descent.biases[0], records, descent.turned[0])
        inputs = [records, *self._kernel.forward(descent, first)]
        slope = terms.noted_slope(inputs.pop(), targets, step.weights)
        deltas = self._kernel.deltas(descent, inputs, slope)
        factors = _ghost_factors(inputs, deltas, step, protection)
        descent.measure_pulls()
        for layer, (before, delta) in enumerate(zip(inputs, deltas, strict=True)):
            delta.mul_(factors)
            descent.step_weights(layer, delta, before)
            descent.step_biases(layer, delta)


def _ghost_factors(
    inputs: list[Tensor], deltas: list[Tensor], step: PrivateStep, protection: RecordProtection
) -> Tensor:
    """Returns the factor of each record [a, b, 1]; zeroes what a record without a finite gradient would add."""
    squares = torch.zeros_like(step.weights)
    for before, delta in zip(inputs, deltas, strict=True):
        # A bias is a weight whose input is 1.
        squares.addcmul_(delta.square().sum(2), before.square().sum(2).add_(1.0))
    infinite = ~squares.isfinite()
    if infinite.any():
        # A factor of zero does not suffice: zero times infinity is no number.
        for part in (*inputs, *deltas):
            part.masked_fill_(infinite.unsqueeze(2), 0.0)
    return protection.factors(squares, step.weights, step.protected).unsqueeze(2)


class PrivateStack:
    """Any module that vmap supports: gradients of single records by `torch.func`, in stacks over clients."""

    parallel: ClassVar[bool] = False

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._columns = layer_columns(module)
        self._scores = vmap(vmap(self._score, in_dims=(None, 0)))
        self._gradients = vmap(vmap(self._gradient, in_dims=(None, 0, 0)))

    def train_private(self, models: Tensor, task: StackTask[PrivateStep], protection: RecordProtection) -> None:
        """Takes each step as one batched pass over models and records, in parts that bound the memory."""
        terms, noise = task.objectives.terms(), torch.empty_like(models)

        def gradients(stack: Tensor, step: PrivateStep) -> Tensor:
            return self._sums(stack, task.samples, step, terms, protection).add_(protection.fill(noise, step))

        descend(models, task, terms, self._columns, gradients)

    def _sums(
        self, stack: Tensor, samples: Samples, step: PrivateStep, terms: Terms, protection: RecordProtection
    ) -> Tensor:
        """Returns the weighted sum of the clipped gradients of each model's records, [a, d]."""
        total = torch.zeros_like(stack)
        parts = unflatten(self._module, stack)
        width = max(1, NUMBERS_AT_ONCE // stack.numel())
        for begin in range(0, step.rows.shape[1], width):
            rows = step.rows[:, begin : begin + width]
            records = samples.records[rows]
            weights = step.weights[:, begin : begin + width]
            slopes = terms.noted_slope(self._scores(parts, records), samples.targets[rows], weights)
            found: dict[str, Tensor] = self._gradients(parts, records, slopes)
            flat = torch.cat([part.flatten(2) for part in found.values()], dim=2)
            squares = flat.square().sum(2)
            infinite = ~squares.isfinite()
            if infinite.any():
                flat.masked_fill_(infinite.unsqueeze(2), 0.0)
            some = None if step.protected is None else step.protected[:, begin : begin + width]
            factors = protection.factors(squares, weights, some)
            total.add_(torch.bmm(factors.unsqueeze(1), flat).squeeze(1))
        return total

    def _score(self, weights: dict[str, Tensor], record: Tensor) -> Tensor:
        scores: Tensor = functional_call(self._module, weights, (record.unsqueeze(0),))
        return scores.squeeze(0)

    def _gradient(self, weights: dict[str, Tensor], record: Tensor, slope: Tensor) -> dict[str, Tensor]:
        found: Any = vjp(lambda parts: self._score(parts, record), weights)
        gradient: dict[str, Tensor] = found[1](slope)[0]
        return gradient
