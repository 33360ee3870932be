"""cpSGD's stage: stochastic quantisation, with an optional rotation before it, and binomial noise on the integers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from p2p.random_streams import stream
from privacy.accounting.curves.binomial_loss import BinomialLoss
from privacy.calibration.claims import CpsgdRule
from privacy.mechanisms.rotation import rotate, rotate_back
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
from privacy.stages.wire import Encoding, Row

if TYPE_CHECKING:
    from privacy.calibration.noise_plan import PlanContext

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binomial(PlainStage):
    """Rounds every coordinate at random to one of `levels` steps and adds `Bin(trials, 1/2) - trials/2` steps.

    Attributes:
        levels: k; steps lie evenly on [-limit, limit].
        trials: of each coordinate's binomial noise.
        limit: largest coordinate, others are cut off; none takes the bound on a coordinate, with `rotate` the size that
            rotated coordinates of a clipped update hardly ever exceed.
        rotate: multiply by random signs and a Hadamard matrix first, which evens the coordinates out.

    Guarantees:
        A Renyi curve computed for this noise, dimension and bound, not cpSGD's theorem (`privacy/accounting/
        binomial_loss.py` has the proof). `published` is Theorem 1 of Agarwal et al. 2018 for the sum of a cohort.
    """

    gives: ClassVar[type | None] = Released
    publishes: ClassVar[bool] = True
    levels: Annotated[int, Ge(2), Le(65_536)] = 16
    trials: Annotated[int, Ge(1), Le(10_000_000)] = 4096
    limit: Annotated[float, Gt(0)] | None = None
    rotate: bool = False

    def problems(self, before: Bounds) -> Iterator[Problem]:
        """Yields a missing bound."""
        if math.isinf(before.largest.l2):
            yield (
                "levels",
                self.levels,
                "needs a bounded update; put a stage such as `{kind: clip}` before",
            )

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same: rounding has a mean of zero, and noise does not depend on the data."""
        return before

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares noise, loss, encoding, and the paper's claim."""
        dimension = context.shape.dimension
        grid = self.grid(before.bounds, dimension)
        # A rotation keeps the L2 norm only; the grid cuts every coordinate off.
        known = Bounds(l2=before.bounds.l2) if self.rotate else before.bounds
        # One grid serves all clients, and so does the loss of the one with the largest bounds.
        cut = replace(known, linf=np.minimum(known.linf, grid.limit)).within(dimension).largest
        # In steps of the grid, in which the noise is integer; two contents are at most twice the bound apart.
        l1, l2, linf = (2.0 * norm / grid.step for norm in (cut.l1, cut.l2, cut.linf))
        loss = BinomialLoss(self.trials, dimension, l1, l2, linf)
        budget = context.budget
        claim = CpsgdRule(
            # Binomials of equal p add up to one binomial, whose trials are the sum.
            trials=self.trials * context.train_per_round,
            dimension=dimension,
            distance=2.0 * before.bounds.largest.l2 / grid.step,
            levels=self.levels,
            delta=1e-5 if budget is None else budget.delta,
        )
        return replace(
            before,
            noised=True,
            losses=(loss,) * context.clients,
            coordinate_std=np.full(context.clients, grid.step * math.sqrt(self.trials) / 2.0),
            kept=dimension,
            wire=grid,
            published=claim,
            notes=(*before.notes, *claim.notes()),
        )

    def grid(self, bounds: Bounds, dimension: int) -> Quantised:
        """Returns the grid of values for updates within these bounds."""
        limit = self.limit
        if limit is None:
            # A rotated coordinate is about normal with variance C^2/d; with probability 0.1 in total it exceeds this.
            norms = bounds.largest
            usual = norms.l2 * math.sqrt(2.0 * math.log(20.0 * dimension) / dimension)
            limit = min(usual, norms.l2) if self.rotate else norms.linf
        return Quantised(limit, self.levels, self.trials, self.rotate)

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Released:
        """Rotates, rounds and noises each row, and turns the integers back into an update."""
        # What this stage has declared itself.
        coding = cast("Quantised", plan.wire).of_round(batch.seed, batch.round_number)
        for row, generator in zip(rows.rows, batch.generators, strict=True):
            # Through the values that receivers compute, so that a row in memory and its bytes never differ.
            row[:] = coding.values(coding.noised(row, generator))
        return Released(rows.rows)


@dataclass(frozen=True, slots=True)
class Quantised:
    """Integers of few bits on a grid of `levels` steps on [-limit, limit], which noise of `trials` widens."""

    limit: float
    levels: int
    trials: int
    rotated: bool

    @property
    def step(self) -> float:
        """Distance of two values."""
        return 2.0 * self.limit / (self.levels - 1)

    @property
    def bits(self) -> int:
        """Bits of one integer: 0 to levels - 1 + trials."""
        return max(1, (self.levels - 1 + self.trials).bit_length())

    def size_bytes(self, dimension: int) -> int:
        """Returns the bytes of packed integers; grid and rotation are public."""
        return -(-dimension * self.bits // 8)

    def of_round(self, seed: int, round_number: int) -> RoundCoding:
        """Returns the coding with the round's public rotation."""
        return RoundCoding(self, seed, round_number)

    def bound(self, seed: int, round_number: int, node: int, memory: Mapping[str, NDArray[Any]]) -> Encoding:
        """Returns the coding of the release's round."""
        return self.of_round(seed, round_number)


@dataclass(frozen=True, slots=True)
class RoundCoding:
    """From updates to noisy integers and back, with the rotation of one round."""

    grid: Quantised
    seed: int
    round_number: int

    def noised(self, row: Row, generator: np.random.Generator) -> Integers:
        """Returns the noisy integers of an update."""
        grid = self.grid
        scaled = (self._turned(row).astype(np.float64) + grid.limit) / grid.step
        np.clip(scaled, 0.0, grid.levels - 1.0, out=scaled)
        # Adding a uniform number and cutting off rounds up with the probability of the fraction: the mean stays.
        scaled += generator.random(len(row))
        # A uniform number below 1 never lifts the top level, but rounding of the sum may.
        rounded = np.minimum(scaled.astype(np.int64), grid.levels - 1)
        return rounded + generator.binomial(grid.trials, 0.5, len(row))

    def values(self, integers: Integers) -> Matrix:
        """Returns the update that receivers compute."""
        grid = self.grid
        # The mean of the noise is taken off in float64, where whole numbers of this size are exact.
        row = ((integers - grid.trials / 2.0) * grid.step - grid.limit).astype(np.float32)
        return rotate_back(row, self._signs(len(row))) if grid.rotated else row

    def size_bytes(self, dimension: int) -> int:
        """Returns the bytes of packed integers."""
        return self.grid.size_bytes(dimension)

    def encode(self, row: Row) -> bytes:
        """Returns the integers that `row` stands for, packed."""
        grid = self.grid
        # Rotation has single precision, far finer than half a step, so the integers are found again.
        found = np.rint((self._turned(row).astype(np.float64) + grid.limit) / grid.step + grid.trials / 2.0)
        integers = np.clip(found, 0, grid.levels - 1 + grid.trials).astype(np.uint32)
        places = (integers[:, None] >> np.arange(grid.bits - 1, -1, -1, dtype=np.uint32)) & 1
        return np.packbits(places.astype(np.uint8).ravel()).tobytes()

    def decode(self, data: bytes, dimension: int) -> Row:
        """Returns the update; damaged integers stand for other updates."""
        places = np.unpackbits(np.frombuffer(data, np.uint8), count=dimension * self.grid.bits)
        # Most significant bit first, as `encode` writes them.
        weights = 1 << np.arange(self.grid.bits - 1, -1, -1, dtype=np.int64)
        return self.values(places.reshape(dimension, -1).astype(np.int64) @ weights)

    def _turned(self, row: Row) -> Matrix:
        return rotate(row, self._signs(len(row))) if self.grid.rotated else row

    def _signs(self, dimension: int) -> Matrix:
        return _rotation_signs(self.seed, self.round_number, dimension)


@lru_cache(maxsize=2)
def _rotation_signs(seed: int, round_number: int, dimension: int) -> Matrix:
    # Public: it hides nothing, it only evens coordinates out. Kept, since all rows of a round have the same.
    drawn = stream(seed, "rotation", round_number).integers(0, 2, dimension, dtype=np.int8)
    signs: Matrix = (2 * drawn - 1).astype(np.float32)
    signs.flags.writeable = False
    return signs
