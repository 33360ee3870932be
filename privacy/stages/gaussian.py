"""The Gaussian stage, which enters the accountant's formula."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from p2p.config.choices import Choice
from privacy.calibration.claims import CLAIMS, MomentsClaim
from privacy.calibration.noise_plan import NoisePlan, PlanContext, given_plan
from privacy.calibration.strategies import CALIBRATIONS, PUBLISHED, Calibration
from privacy.mechanisms.clip_and_noise import row_norms
from privacy.stages.api import (
    Bounds,
    Declared,
    Floats,
    Matrix,
    PlainStage,
    Problem,
    ReleaseBatch,
    Released,
    Update,
    UpdateShape,
)

_NO_CLAIM = "the multiplier of this noise comes without `claim`, the accounting of a paper"
_OWN_NORM = "the noise is scaled by the norm of the client's own update, which nothing bounds and its size tells"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(PlainStage):
    """Adds independent normal noise to every coordinate that is sent.

    Attributes:
        sigma: standard deviation on each coordinate; give this, `calibrate` or `multiplier`.
        calibrate: calibration of sigma from an epsilon.
        multiplier: standard deviation as a multiple of `scale`.
        scale: what `multiplier` multiplies: the `bound` of the clipping before, or `own_norm`, the norm of the client's
            own update.
        per_record: whether `scale` is divided by the client's number of records, as the papers do (E-T06).
        claim: the paper's accounting of `multiplier`.

    Guarantees:
        With an L2 bound C before it, one release has mu = 2C/std against its receivers (client level, replace-one).
        A scale that is private proves nothing. Attacks on floating-point rounding (Mironov 2012) are outside the model.
    """

    gives: ClassVar[type | None] = Released
    scales: ClassVar[bool] = True
    with_shares: ClassVar[bool] = True
    sigma: Annotated[float, Ge(0)] | None = None
    calibrate: Annotated[Calibration, Choice(CALIBRATIONS)] | None = None
    multiplier: Annotated[float, Gt(0)] | None = None
    scale: Literal["bound", "own_norm"] = "bound"
    per_record: bool = False
    claim: Annotated[MomentsClaim, Choice(CLAIMS)] | None = None

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.sigma, self.calibrate, self.multiplier)) != 1:
            raise ValueError("needs exactly one of `sigma`, `calibrate` and `multiplier`; remove or add one")
        if self.multiplier is None and (self.claim is not None or self.per_record or self.scale != "bound"):
            raise ValueError("`scale`, `per_record` and `claim` are about `multiplier`; give that, or drop them")

    @property
    def publishes(self) -> bool:
        """Whether a paper's claim comes with the noise."""
        return self.claim is not None

    def problems(self, before: Bounds) -> Iterator[Problem]:
        """Yields a missing bound for noise that follows from it."""
        cure = "needs a bound; put a stage such as `{kind: clip}` before"
        unbounded = math.isinf(before.largest.l2)
        if self.calibrate is not None and unbounded:
            yield "calibrate", type(self.calibrate).__name__, cure
        elif isinstance(self.calibrate, PUBLISHED) and not before.equal:
            rule = "is a paper's formula for one bound of all clients; give one number, or use `kind: rigorous`"
            yield "calibrate", type(self.calibrate).__name__, rule
        if self.multiplier is not None and self.scale == "bound" and unbounded and not before.private:
            yield "multiplier", self.multiplier, f"{cure}, or set `scale: own_norm`"

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same: noise does not depend on the data."""
        return before

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the noise of each client, calibrated or given; of a private scale, only that it is one."""
        if self.multiplier is not None and (self.scale == "own_norm" or math.isinf(before.bounds.largest.l2)):
            claimed = self.claim.rule(self.multiplier, context) if self.claim else None
            after = replace(before, noised=True, published=claimed, unpublished="" if claimed else _NO_CLAIM)
            return after.reading(_OWN_NORM) if self.scale == "own_norm" else after
        plan = self._plan(before.bounds, context)
        return replace(
            before,
            noised=True,
            std=plan.noise_std,
            coordinate_std=plan.noise_std,
            published=plan.published,
            unpublished=plan.unpublished,
            view_share=plan.view_share,
            notes=(*before.notes, *plan.notes),
        )

    def _plan(self, bounds: Bounds, context: PlanContext) -> NoisePlan:
        """Returns the plan for the largest bound; noise that follows from bounds has each client's own size."""
        norm = bounds.largest.l2
        if self.calibrate is None and self.multiplier is None:
            return given_plan(self.sigma or 0.0, norm, context)
        # Noise in proportion to the bound gives every client the same mu.
        own = np.broadcast_to(bounds.l2 / norm, context.clients)
        if self.calibrate is not None:
            plan = self.calibrate.plan(norm, context)
            return replace(plan, noise_std=plan.noise_std * own)
        # A multiple of a public bound is a fixed noise, so it is accounted for like a given sigma.
        plan = given_plan((self.multiplier or 0.0) * norm, norm, context)
        stds = plan.noise_std * own
        # The 1 keeps the division defined for a client without records.
        stds = stds / np.maximum(context.records, 1) if self.per_record else stds
        claimed = self.claim.rule(self.multiplier or 0.0, context) if self.claim else plan.published
        return replace(plan, noise_std=stds, published=claimed)

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Released:
        """Adds each client's noise to its row, from the row's own stream."""
        private = self._private_scales(rows)
        planned = (plan.std[batch.nodes] * batch.noise_factor).astype(np.float32)
        for index, generator in enumerate(batch.generators):
            if private is None:
                std: Matrix | np.float32 = planned[index]
            else:
                divisor = max(float(batch.records[index]), 1.0) if self.per_record else 1.0
                std = rows.by_coordinate(index, (self.multiplier or 0.0) * private[index] / divisor, plan.layers)
            # Nothing is drawn without noise, but each row has its own stream, so no other row's draws move.
            if (std > 0.0).any():
                noise = generator.standard_normal(rows.sent(index), dtype=np.float32)
                # In place and in float32, as the release: a float64 copy would double the memory of the largest array.
                noise *= std
                rows.add(index, noise)
        return Released(rows.rows)

    def _private_scales(self, rows: Update) -> Floats | None:
        """Returns [k, layers] where the noise is scaled by what is private; None where it was planned."""
        if self.multiplier is None:
            return None
        return row_norms(rows.rows)[:, None] if self.scale == "own_norm" else rows.scale


@dataclass(frozen=True, slots=True)
class ForeignNoise(PlainStage):
    """The noise of a plug-in in `privacy.noise`; nothing is known of it, so nothing is accounted for."""

    gives: ClassVar[type | None] = Released
    plugin: object

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same."""
        return before

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares nothing; that the plug-in is undeclared is reported from the list of plug-ins."""
        return before

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Released:
        """Lets the plug-in add its noise."""
        self.plugin.add(rows.rows, plan.std[batch.nodes], batch.generators)  # type: ignore[attr-defined]
        return Released(rows.rows)
