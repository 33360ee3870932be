"""Stages that bound an update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Gt
from numpy.typing import NDArray

from privacy.mechanisms.clip_and_noise import clip_rows, row_norms
from privacy.mechanisms.layer_clipping import layered_sensitivity, split_bound
from privacy.stages.api import Bounds, Declared, Matrix, PlainStage, ReleaseBatch, Released, Update, UpdateShape

if TYPE_CHECKING:
    from privacy.calibration.noise_plan import PlanContext

Norm = Annotated[float, Gt(0)]
ClipObject = Literal["update", "gradient", "weights"]
_OWN_MEDIAN = "the clipping bound is the median of the client's own norms, which the noise scaled by it tells (E-T16)"
_COHORT_MEDIAN = "the clipping bound is the median norm of the round, which depends on other clients' records (E-T16)"
# A client that crashes may train twice in a round; norms beyond the room replace the last one.
_SPARE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip(PlainStage):
    """Scales an update down to a norm of at most `norm`, all layers as one vector.

    Attributes:
        norm: C, the largest L2 norm; or a list with one for each client, public and fixed before the run.
        clip_object: `update`, the change of the model; `gradient`, the update divided by the round's learning rate,
            released as such; `weights`, the trained model itself, so that models are averaged.

    Guarantees:
        The clipped vector has L2 norm at most C; one that is not finite becomes zero. A client that is replaced, or one
        record of it, moves the release by at most 2C.
    """

    with_shares: ClassVar[bool] = True
    norm: Norm | tuple[Norm, ...] = 1.0
    clip_object: ClipObject = "update"

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns an L2 norm of at most C."""
        return _scaled_down(before, self.norm, self.clip_object, shape)

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the bound; the norm is public, and nothing else leaves."""
        return replace(before, bounds=self.bounds(before.bounds, context.shape))

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Update:
        """Clips each row."""
        enter_object(rows.rows, self.clip_object, batch)
        clip_rows(rows.rows, np.array(self.norm)[batch.nodes] if isinstance(self.norm, tuple) else self.norm)
        leave_object(rows, self.clip_object, batch)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipLayers(PlainStage):
    """Scales every layer down by itself; a layer is the parameters of one torch module, weights with biases.

    Attributes:
        norm: C.
        of: what C bounds: the `whole` vector, so that each of L layers gets C / sqrt(L), or each `layer`.
        clip_object: as in `clip`.

    Guarantees:
        The whole vector has L2 norm at most C, or C sqrt(L).
    """

    with_shares: ClassVar[bool] = True
    by_layer: ClassVar[bool] = True
    norm: Annotated[float, Gt(0)] = 1.0
    of: Literal["whole", "layer"] = "whole"
    clip_object: ClipObject = "update"

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the bound of the whole vector."""
        layers = max(len(shape.layers), 1)
        norm = self.norm if self.of == "whole" else layered_sensitivity(self.norm, layers)
        return _scaled_down(before, norm, self.clip_object, shape)

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the bound; nothing else leaves."""
        return replace(before, bounds=self.bounds(before.bounds, context.shape))

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Update:
        """Clips each layer of each row."""
        enter_object(rows.rows, self.clip_object, batch)
        each = self.norm if self.of == "layer" else split_bound(self.norm, max(len(plan.layers), 1))
        for layer in layer_slices(plan.layers, rows.rows.shape[1]):
            clip_rows(rows.rows[:, layer], each)
        leave_object(rows, self.clip_object, batch)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipCoordinates(PlainStage):
    """Cuts every coordinate to [-bound, bound].

    Attributes:
        bound: zeta, the largest absolute value.
        clip_object: as in `clip`.

    Guarantees:
        The whole vector has L2 norm at most zeta times the square root of its coordinates; values that are not numbers
        become zero.
    """

    with_shares: ClassVar[bool] = True
    bound: Annotated[float, Gt(0)] = 0.01
    clip_object: ClipObject = "update"

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns a largest absolute value of at most zeta."""
        # Cutting coordinates off brings no two contents further apart, by any norm.
        known = _entered(before, self.clip_object)
        return replace(known, linf=np.minimum(known.linf, self.bound)).within(shape.dimension)

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the bound; nothing else leaves."""
        return replace(before, bounds=self.bounds(before.bounds, context.shape))

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Update:
        """Cuts each row."""
        enter_object(rows.rows, self.clip_object, batch)
        # The largest float32 number that is not above the bound: rounding must not exceed it.
        most = np.nextafter(np.float32(self.bound), np.float32(0.0))
        for row in rows.rows:
            np.clip(row, -most, most, out=row)
            np.nan_to_num(row, copy=False, nan=0.0)
        leave_object(rows, self.clip_object, batch)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipOwnMedian(PlainStage):
    """Scales an update down to the median of the client's own norms so far, as Weng's plain DPFL does.

    Attributes:
        layers: clip every layer to the median of its own norms, as printed; otherwise the whole vector.

    Guarantees:
        none: the median is private, and the noise that is scaled by it tells it (E-T16).
    """

    layers: bool = True

    @property
    def by_layer(self) -> bool:
        """Whether the lengths of layers are needed."""
        return self.layers

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns no public bound."""
        return replace(before, private=True)

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares that the bound is private."""
        return replace(before, bounds=self.bounds(before.bounds, context.shape)).reading(_OWN_MEDIAN)

    def remembers(self, clients: int, rounds: int, shape: UpdateShape) -> dict[str, NDArray[Any]]:
        """Returns room for the norms of every release of every client; NaN where there is none."""
        layers = len(shape.layers) if self.layers and shape.layers else 1
        return {"own_norms": np.full((clients, rounds + _SPARE, layers), np.nan, dtype=np.float32)}

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Update:
        """Clips each row to the median of its client's norms, this one included."""
        slices = layer_slices(plan.layers if self.layers else (), rows.rows.shape[1])
        kept = batch.memory["own_norms"]
        rows.scale = np.empty((len(rows.rows), len(slices)))
        for index, node in enumerate(batch.nodes.tolist()):
            norms = np.array([row_norms(rows.rows[index : index + 1, layer])[0] for layer in slices])
            # A diverged update has no norm; the clipping below sets it to zero.
            place = min(int(np.isfinite(kept[node, :, 0]).sum()), kept.shape[1] - 1)
            kept[node, place] = np.nan_to_num(norms, nan=0.0, posinf=0.0)
            # This release counts in its own median, as printed, so the first keeps its length.
            rows.scale[index] = np.median(kept[node, : place + 1], axis=0)
            for layer, bound in zip(slices, rows.scale[index].tolist(), strict=True):
                clip_rows(rows.rows[index : index + 1, layer], max(bound, 1e-30))
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipCohortMedian(PlainStage):
    """Lets the aggregator scale every update that it received down to the median of their norms (LCDP-FL, CDP-FL).

    Guarantees:
        After noise it is post-processing of what was released; the bound holds for the aggregator's sum alone. Before
        noise the bound depends on other clients' records, so nothing is proved.
    """

    takes: ClassVar[tuple[type, ...]] = (Update, Released)
    clips_to_median: ClassVar[bool] = True

    @property
    def one_aggregator(self) -> str:
        """Returns why it needs one place for all updates."""
        return "the median is over all updates of a round, which one place must see; use `clip`"

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same: what a client sends is not clipped."""
        return before

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares whose records the bound depends on."""
        # After noise it is a function of the releases, but no linear one; before, it reads other clients' records.
        return replace(before, linear=False) if before.noised else before.reading(_COHORT_MEDIAN)

    def apply(self, rows: Update | Released, plan: Declared, batch: ReleaseBatch) -> Update | Released:
        """Changes nothing: the aggregator clips."""
        return rows


def _entered(before: Bounds, clip_object: ClipObject) -> Bounds:
    """Returns what earlier bounds say of what is clipped."""
    if clip_object == "gradient":
        # Division by the learning rate carries an update out of every earlier bound.
        return Bounds(private=before.private)
    return replace(before, centred=False) if clip_object == "weights" else before


def _scaled_down(
    before: Bounds, norm: float | tuple[float, ...], clip_object: ClipObject, shape: UpdateShape
) -> Bounds:
    """Returns the bounds after scaling to an L2 norm."""
    known = _entered(before, clip_object)
    if not known.centred:
        # Two contents come no further apart by the L2 norm, but around a point other than zero they may by others.
        known = replace(known, l1=Bounds().l1, linf=Bounds().linf)
    norms = np.atleast_1d(norm)
    if len(norms) > 1 and len(known.l2) not in (1, len(norms)):
        norms = norms.max(keepdims=True)  # lists for different numbers of clients are refused elsewhere
    return replace(known, l2=np.minimum(known.l2, norms)).within(shape.dimension)


def layer_slices(layers: Sequence[int], dimension: int) -> list[slice]:
    """Returns the coordinates of each layer; of the whole vector if no lengths are known."""
    ends = np.cumsum(layers).tolist() if layers else [dimension]
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def enter_object(rows: Matrix, clip_object: ClipObject, batch: ReleaseBatch) -> None:
    """Turns updates into what is clipped, in place."""
    if clip_object == "gradient":
        rows /= np.float32(batch.rate)
    elif clip_object == "weights":
        _take_from_models(rows, batch)


def leave_object(rows: Update, clip_object: ClipObject, batch: ReleaseBatch) -> None:
    """Turns clipped weights into updates again, in place; a gradient stays one."""
    # The model that training started from is known to all who may learn anything, so the bound stays the weights'.
    if clip_object == "weights":
        _take_from_models(rows.rows, batch)
        # Scaled weights differ from the model everywhere, also where a mask sends nothing and so has no noise.
        rows.trim()


def _take_from_models(rows: Matrix, batch: ReleaseBatch) -> None:
    # Row by row: indexing the models by a list would copy a whole cohort.
    for row, node in zip(rows, batch.nodes.tolist(), strict=True):
        np.subtract(batch.models[node], row, out=row)


@dataclass(frozen=True, slots=True)
class ForeignClip(PlainStage):
    """The clipping of a plug-in in `privacy.clip`, which states its bound and nothing else."""

    plugin: object

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the bound that the plug-in states, if it does."""
        norm = float(getattr(self.plugin, "norm_bound", np.inf))
        return replace(before, l2=np.minimum(before.l2, norm)).within(shape.dimension)

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the bound; that the plug-in is undeclared is reported from the list of plug-ins."""
        return replace(before, bounds=self.bounds(before.bounds, context.shape))

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Update:
        """Lets the plug-in clip."""
        clipped, _ = self.plugin.clip(rows.rows)  # type: ignore[attr-defined]
        # Copied back: a plug-in may return another matrix, and the caller keeps this one.
        rows.rows[:] = clipped
        return rows
