"""The sound counterpart of selective noise: the sparse vector technique, and nothing but what it answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from p2p.random_streams import stream
from privacy.accounting.curves.loss_events import PureLoss
from privacy.papers.dp_fedasgp import SvtScales, divide_budget
from privacy.stages.api import (
    Bounds,
    Declared,
    Matrix,
    PlainStage,
    Problem,
    ReleaseBatch,
    Released,
    Update,
    UpdateShape,
)
from privacy.stages.sparse_wire import Sparse

if TYPE_CHECKING:
    from privacy.calibration.noise_plan import PlanContext

_OURS = "no formula is printed: this sound counterpart of DP-FedASGP is no paper's, and rigorous counts its proof"


@dataclass(frozen=True, slots=True, kw_only=True)
class AsgpSound(PlainStage):
    """Sends noisy values of coordinates whose noisy size passes a noisy threshold, at most `positives` of them.

    Coordinates are asked in a public random order of the round; all others count as zero.

    Attributes:
        epsilon: of one release against its receivers, pure.
        positives: c, after which the answers end.
        threshold: size that a coordinate must pass, as a share of the bound on a coordinate; it depends on no data.
        value_fraction: part of epsilon for the values sent.

    Guarantees:
        epsilon-DP per release (client level, replace-one): the standard sparse vector technique (Lyu, Su and Li 2017)
        with sensitivity linf, since sizes lie between 0 and linf, then Laplace noise on c values of sensitivity 2 linf.
        Where weights were clipped, sizes lie around those of the model before, and their sensitivity is 2 linf too.
    """

    gives: ClassVar[type | None] = Released
    epsilon: Annotated[float, Gt(0)] = 1.0
    positives: Annotated[int, Ge(1)] = 32
    threshold: Annotated[float, Gt(0), Le(1)] = 0.5
    value_fraction: Annotated[float, Gt(0), Lt(1)] = 0.9

    def problems(self, before: Bounds) -> Iterator[Problem]:
        """Yields a missing bound."""
        if math.isinf(before.largest.linf):
            yield "epsilon", self.epsilon, "needs bounded coordinates; put `{kind: clip_coordinates}` or a clip before"

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same norms over at most c coordinates."""
        return before.within(min(self.positives, shape.dimension))

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the pure loss of one release."""
        kept = min(self.positives, before.kept)
        return replace(
            before,
            noised=True,
            unpublished=_OURS,
            bounds=self.bounds(before.bounds, context.shape),
            losses=(PureLoss(self.epsilon),) * context.clients,
            coordinate_std=np.full(context.clients, self.laplace_scales(before.bounds).value * math.sqrt(2.0)),
            kept=kept,
            wire=Sparse(kept),
        )

    def laplace_scales(self, bounds: Bounds) -> SvtScales:
        """Returns the Laplace scales of query, threshold and value."""
        budget = divide_budget(self.epsilon, self.value_fraction, float(self.positives))
        if not bounds.centred:
            return budget.sound(2.0 * bounds.largest.linf)
        sound = budget.sound(bounds.largest.linf)
        # Sizes move by at most linf, but a value may change its sign.
        return replace(sound, value=2.0 * sound.value)

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Released:
        """Replaces each row by what the technique answers about it."""
        order = stream(batch.seed, "svt order", batch.round_number)
        # In a fixed order the first coordinates would use up the positives in every round.
        asked = order.permutation(rows.rows.shape[1])
        for row, generator in zip(rows.rows, batch.generators, strict=True):
            self._answer(row, asked, plan.bounds, generator)
        return Released(rows.rows)

    def _answer(
        self,
        row: Matrix,
        asked: np.ndarray[tuple[int], np.dtype[np.int64]],
        bounds: Bounds,
        generator: np.random.Generator,
    ) -> None:
        scales = self.laplace_scales(bounds)
        line = self.threshold * bounds.largest.linf + generator.laplace(0.0, scales.threshold)
        # All query noises are drawn at once; those after the last positive are not used, as if they had not been asked.
        noisy = np.abs(row[asked]) + generator.laplace(0.0, scales.query, len(row))
        # The same noisy threshold serves all answers, as in the standard technique; only values get fresh noise.
        positive = asked[np.flatnonzero(noisy >= line)[: self.positives]]
        # Fresh noise: the noise of the query has been used up by the comparison.
        values = row[positive] + generator.laplace(0.0, scales.value, len(positive))
        row[:] = 0.0
        row[positive] = values.astype(np.float32)
