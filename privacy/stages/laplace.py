"""The Laplace stage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from privacy.accounting.curves.loss_events import LaplaceLoss
from privacy.stages.api import Bounds, Declared, PlainStage, Problem, ReleaseBatch, Released, Update, UpdateShape

if TYPE_CHECKING:
    from privacy.calibration.noise_plan import PlanContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(PlainStage):
    """Adds independent Laplace noise to every coordinate that is sent.

    Attributes:
        scale: scale b of the noise; its standard deviation is b sqrt(2). Give this or `epsilon`.
        epsilon: of one release against its receivers, pure; the scale is then 2 L1 / epsilon.

    Guarantees:
        With an L1 bound before it, one release is (2 L1 / b)-DP (client level, replace-one). An L2 bound C alone means
        an L1 bound of C times the square root of the coordinates sent.
    """

    gives: ClassVar[type | None] = Released
    scale: Annotated[float, Gt(0)] | None = None
    epsilon: Annotated[float, Gt(0)] | None = None

    def __post_init__(self) -> None:
        if (self.scale is None) == (self.epsilon is None):
            raise ValueError("needs exactly one of `scale` and `epsilon`; remove or add one")

    def problems(self, before: Bounds) -> Iterator[Problem]:
        """Yields a missing bound for a scale that follows from it."""
        if self.epsilon is not None and math.isinf(before.largest.l1):
            yield "epsilon", self.epsilon, "needs a bound; put a stage such as `{kind: clip}` before"

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same: noise does not depend on the data."""
        return before

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the noise and the loss of one release."""
        nodes = range(context.clients)
        scales = [self._scale(before, node) for node in nodes]
        losses: tuple[LaplaceLoss, ...] = ()
        if math.isfinite(before.bounds.largest.l1):
            # Replaced contents are at most twice the bound apart by L1, each within it of a public point.
            losses = tuple(LaplaceLoss(2.0 * before.bounds.of(node).l1 / scales[node]) for node in nodes)
        return replace(before, noised=True, losses=losses, coordinate_std=np.array(scales) * math.sqrt(2.0))

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Released:
        """Adds each client's noise to its row, from the row's own stream."""
        for index, (node, generator) in enumerate(zip(batch.nodes.tolist(), batch.generators, strict=True)):
            scale = self._scale(plan, node)
            # Drawn in float64, since the generator has no single-precision Laplace; rounded once.
            rows.add(index, generator.laplace(0.0, scale, rows.sent(index)).astype(np.float32))
        return Released(rows.rows)

    def _scale(self, known: Declared, node: int) -> float:
        return self.scale if self.scale is not None else 2.0 * known.bounds.of(node).l1 / (self.epsilon or 1.0)
