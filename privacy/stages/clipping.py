"""Stages that bound an update."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Gt

from privacy.mechanisms.clip_and_noise import clip_rows
from privacy.stages.api import Batch, Bounds, Declared, Matrix, PlainStage, Shape, Update

if TYPE_CHECKING:
    from privacy.calibration.noise_plan import PlanContext

ClipObject = Literal["update", "gradient", "weights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip(PlainStage):
    """Scales an update down to a norm of at most `norm`, all layers as one vector.

    Attributes:
        norm: C, the largest L2 norm.
        clip_object: `update`, the change of the model; `gradient`, the update divided by the round's learning rate,
            released as such; `weights`, the trained model itself, so that models are averaged.

    Guarantees:
        The clipped vector has L2 norm at most C; one that is not finite becomes zero. A client that is replaced, or one
        record of it, moves the release by at most 2C.
    """

    norm: Annotated[float, Gt(0)] = 1.0
    clip_object: ClipObject = "update"

    def bounds(self, before: Bounds, shape: Shape) -> Bounds:
        """Returns an L2 norm of at most C."""
        return replace(before, l2=min(before.l2, self.norm)).within(shape.dimension)

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the bound; the norm is public, and nothing else leaves."""
        return replace(before, bounds=self.bounds(before.bounds, context.shape))

    def apply(self, rows: Update, plan: Declared, batch: Batch) -> Update:
        """Clips each row."""
        enter_object(rows.rows, self.clip_object, batch)
        clip_rows(rows.rows, self.norm)
        leave_object(rows.rows, self.clip_object, batch)
        return rows


def enter_object(rows: Matrix, clip_object: ClipObject, batch: Batch) -> None:
    """Turns updates into what is clipped, in place."""
    if clip_object == "gradient":
        rows /= np.float32(batch.rate)
    elif clip_object == "weights":
        _take_from_models(rows, batch)


def leave_object(rows: Matrix, clip_object: ClipObject, batch: Batch) -> None:
    """Turns clipped weights into updates again, in place; a gradient stays one."""
    # The model that training started from is known to all who may learn anything, so the bound stays the weights'.
    if clip_object == "weights":
        _take_from_models(rows, batch)


def _take_from_models(rows: Matrix, batch: Batch) -> None:
    # Row by row: indexing the models by a list would copy a whole cohort.
    for row, node in zip(rows, batch.nodes.tolist(), strict=True):
        np.subtract(batch.models[node], row, out=row)


@dataclass(frozen=True, slots=True)
class ForeignClip(PlainStage):
    """The clipping of a plug-in in `privacy.clip`, which states its bound and nothing else."""

    plugin: object

    def bounds(self, before: Bounds, shape: Shape) -> Bounds:
        """Returns the bound that the plug-in states, if it does."""
        norm = float(getattr(self.plugin, "norm_bound", np.inf))
        return replace(before, l2=min(before.l2, norm)).within(shape.dimension)

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the bound; that the plug-in is undeclared is reported from the list of plug-ins."""
        return replace(before, bounds=self.bounds(before.bounds, context.shape))

    def apply(self, rows: Update, plan: Declared, batch: Batch) -> Update:
        """Lets the plug-in clip."""
        clipped, _ = self.plugin.clip(rows.rows)  # type: ignore[attr-defined]
        rows.rows[:] = clipped
        return rows
