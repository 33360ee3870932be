"""Stages that keep some coordinates only: the largest, or those of a mask that does not depend on private data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Le
from numpy.typing import NDArray

from privacy.stages.api import Bounds, Declared, Indices, PlainStage, ReleaseBatch, Released, Update, UpdateShape
from privacy.stages.sparse_wire import CommonMask, Sparse

if TYPE_CHECKING:
    from privacy.calibration.noise_plan import PlanContext

Rate = Annotated[float, Gt(0), Le(1)]
_INDICES = "the positions of a client's largest coordinates, which depend on its records"


def kept_of(rate: float, dimension: int) -> int:
    """Returns how many of the coordinates a rate keeps: at least one."""
    # The tolerance keeps a product such as 0.1 * 30 = 3.0000000000000004 from keeping one more.
    return max(1, math.ceil(rate * dimension - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(PlainStage):
    """Keeps each client's largest coordinates by absolute value; the others become zero and are not sent.

    Attributes:
        rate: share of the coordinates that is kept.

    Guarantees:
        Before noise, the positions leave without any, so nothing is proved. After noise it is post-processing and
        releases nothing more. Rate 1 changes nothing at all.
    """

    takes: ClassVar[tuple[type, ...]] = (Update, Released)
    rate: Rate = 0.1

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same L2 norm over fewer coordinates."""
        return before.within(kept_of(self.rate, shape.dimension))

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the positions, unless they come from what has noise already."""
        kept = min(kept_of(self.rate, context.shape.dimension), before.kept)
        if kept == before.kept:
            return before
        after = replace(before, kept=kept, wire=Sparse(kept))
        if before.noised:
            # Which coordinates are left depends on all of them, so the bounds stay those of all. And they are no linear
            # function of the release, so a sum of them hides nothing.
            return replace(after, linear=False)
        return replace(after, bounds=self.bounds(before.bounds, context.shape)).leaking(_INDICES)

    def apply(self, rows: Update | Released, plan: Declared, batch: ReleaseBatch) -> Update | Released:
        """Sets all but the largest coordinates of each row to zero."""
        # Where a mask has left no more than that already, a choice of its own would put noise outside the mask.
        if not isinstance(plan.wire, Sparse):
            return rows
        chosen = [largest(row, plan.kept) for row in rows.rows]
        for row, places in zip(rows.rows, chosen, strict=True):
            keep_only(row, places)
        if isinstance(rows, Update):
            rows.support = chosen
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask(PlainStage):
    """Keeps the coordinates of a mask that is common to all clients and depends on no private data.

    Attributes:
        rate: share of the coordinates that is kept.
        by: `random` draws a new mask in every round. `last_aggregate` takes the largest coordinates of the previous
            noised aggregate; they go with the model as a bitmap. The first round, and every `refresh`-th, send all.
        refresh: rounds from one full release to the next with `by: last_aggregate`; none has only the first, so that
            the mask of the second round stays, unless noise or momentum of the aggregator moves other coordinates.

    Guarantees:
        The mask is public or a function of earlier releases, so it costs nothing, and it is not sent with an update. A
        mask of everything changes nothing at all. With `last_aggregate` members may have different masks (a lost or
        damaged model), so an aggregate is not counted as hiding one release in the noise of others.
    """

    takes: ClassVar[tuple[type, ...]] = (Update, Released)
    rate: Rate = 0.1
    by: Literal["random", "last_aggregate"] = "random"
    refresh: Annotated[int, Gt(0)] | None = None

    @property
    def one_aggregator(self) -> str:
        """Returns why a mask of aggregates needs one model for all."""
        return "" if self.by == "random" else "the mask comes from an aggregate that all members have; use `by: random`"

    def masks_last(self, dimension: int) -> int | None:
        """Returns how many coordinates of the last aggregate are the mask; None if it is another one."""
        kept = kept_of(self.rate, dimension)
        return None if self.by == "random" or kept == dimension else kept

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same norms: a round may send everything."""
        return before.within(shape.dimension if self.by == "last_aggregate" else kept_of(self.rate, shape.dimension))

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the encoding; a mask releases nothing."""
        kept = min(kept_of(self.rate, context.shape.dimension), before.kept)
        if kept == before.kept:
            return before
        wire = CommonMask(kept, random=self.by == "random", refresh=self.refresh or 0)
        most = before.kept if self.by == "last_aggregate" else kept
        # A member that is stale, or whose mask was damaged on its way, has another one: where it sends, others may have
        # sent nothing, and so no noise.
        same = self.by == "random"
        return replace(
            before,
            bounds=self.bounds(before.bounds, context.shape),
            kept=most,
            wire=wire,
            linear=before.linear and same,
        )

    def remembers(self, clients: int, rounds: int, shape: UpdateShape) -> dict[str, NDArray[Any]]:
        """Returns room for each client's last mask, as bits; its encoding needs it."""
        if self.by == "random":
            return {}
        return {"mask": np.zeros((clients, -(-shape.dimension // 8)), dtype=np.uint8)}

    def apply(self, rows: Update | Released, plan: Declared, batch: ReleaseBatch) -> Update | Released:
        """Sets all coordinates outside the mask to zero."""
        dimension = rows.rows.shape[1]
        if not isinstance(plan.wire, CommonMask):
            return rows
        chosen = self._masks(plan.wire, dimension, batch)
        for row, places in zip(rows.rows, chosen, strict=True):
            if places is not None:
                keep_only(row, places)
        if isinstance(rows, Update):
            rows.support = chosen
        return rows

    def _masks(self, wire: CommonMask, dimension: int, batch: ReleaseBatch) -> Sequence[Indices | None]:
        """Returns each row's mask; None where everything is sent."""
        if self.by == "random":
            return [wire.drawn(batch.seed, batch.round_number, dimension)] * len(batch.nodes)
        if wire.sends_all(batch.round_number):
            return [None] * len(batch.nodes)
        if batch.masks is None:
            raise ValueError("a mask of the last aggregate without aggregates")
        # The stand-in of a member without a usable mask is the same for all of them and public.
        spare = wire.drawn(batch.seed, batch.round_number, dimension)
        chosen = [_places(batch.masks[node], spare) for node in batch.nodes.tolist()]
        for node, places in zip(batch.nodes.tolist(), chosen, strict=True):
            bits = np.zeros(dimension, dtype=np.bool_)
            bits[places] = True
            # Kept because the encoding is made later, from what is remembered alone.
            batch.memory["mask"][node] = np.packbits(bits)
        return chosen


def _places(mask: NDArray[np.float32], spare: Indices) -> Indices:
    """Returns the places of a mask; those of a public draw if there was no aggregate yet, or its mask was damaged."""
    places = np.flatnonzero(mask)
    return places if len(places) == len(spare) else spare


def largest(row: NDArray[np.float32], count: int) -> Indices:
    """Returns the places of the largest coordinates by absolute value, ascending."""
    # A partition is linear in the length; the few places found are sorted then, so that the encoding is unique.
    places = np.argpartition(np.abs(row), len(row) - count)[len(row) - count :]
    return np.sort(places).astype(np.int64)


def keep_only(row: NDArray[np.float32], places: Indices) -> None:
    """Sets all other coordinates to zero, in place."""
    # Saved before the row is cleared: fancy indexing copies.
    values = row[places]
    row[:] = 0.0
    row[places] = values
