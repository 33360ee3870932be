"""The Gaussian stage, which enters the accountant's formula."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from annotated_types import Ge

from p2p.config.choices import Choice
from privacy.calibration.noise_plan import PlanContext, given_plan
from privacy.calibration.strategies import CALIBRATIONS, Calibration
from privacy.mechanisms.clip_and_noise import add_normal
from privacy.stages.api import Batch, Bounds, Declared, PlainStage, Problem, Released, Shape, Update


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(PlainStage):
    """Adds independent normal noise to every coordinate that is sent.

    Attributes:
        sigma: standard deviation on each coordinate; give this or `calibrate`.
        calibrate: calibration of sigma from an epsilon.

    Guarantees:
        With an L2 bound C before it, one release has mu = 2C/std against its receivers (client level, replace-one).
        Attacks on floating-point rounding (Mironov 2012) are outside the model.
    """

    gives: ClassVar[type | None] = Released
    scales: ClassVar[bool] = True
    sigma: Annotated[float, Ge(0)] | None = None
    calibrate: Annotated[Calibration, Choice(CALIBRATIONS)] | None = None

    def __post_init__(self) -> None:
        if (self.sigma is None) == (self.calibrate is None):
            raise ValueError("needs exactly one of `sigma` and `calibrate`; remove or add one")

    def problems(self, before: Bounds) -> Iterator[Problem]:
        """Yields a missing bound for calibrated noise."""
        if self.calibrate is not None and math.isinf(before.l2):
            yield "calibrate", type(self.calibrate).__name__, "needs a bound; put a stage such as `{kind: clip}` before"

    def bounds(self, before: Bounds, shape: Shape) -> Bounds:
        """Returns the same: noise does not depend on the data."""
        return before

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the noise of each client, calibrated or given."""
        if self.calibrate is not None:
            plan = self.calibrate.plan(before.bounds.l2, context)
        else:
            plan = given_plan(self.sigma or 0.0, before.bounds.l2, context)
        return replace(
            before,
            noised=True,
            std=plan.noise_std,
            published=plan.published,
            view_share=plan.view_share,
            notes=(*before.notes, *plan.notes),
        )

    def apply(self, rows: Update, plan: Declared, batch: Batch) -> Released:
        """Adds each client's noise to its row, from the row's own stream."""
        add_normal(rows.rows, plan.std[batch.nodes] * batch.noise_factor, batch.generators)
        return Released(rows.rows)


@dataclass(frozen=True, slots=True)
class ForeignNoise(PlainStage):
    """The noise of a plug-in in `privacy.noise`; nothing is known of it, so nothing is accounted for."""

    gives: ClassVar[type | None] = Released
    plugin: object

    def bounds(self, before: Bounds, shape: Shape) -> Bounds:
        """Returns the same."""
        return before

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares nothing; that the plug-in is undeclared is reported from the list of plug-ins."""
        return before

    def apply(self, rows: Update, plan: Declared, batch: Batch) -> Released:
        """Lets the plug-in add its noise."""
        self.plugin.add(rows.rows, plan.std[batch.nodes], batch.generators)  # type: ignore[attr-defined]
        return Released(rows.rows)
