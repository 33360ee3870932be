"""Selective noise as printed: DP-FedASGP, and a surrogate of DP-FedSNLC. Neither protects what it leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from numpy.typing import NDArray

from privacy.calibration.claims import ClaimedRule
from privacy.papers.dp_fedasgp import SvtScales, divide_budget, rank_of, sigma_eq2
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
from privacy.stages.sparse import largest

if TYPE_CHECKING:
    from privacy.calibration.noise_plan import PlanContext

_EXACT = "coordinates below the threshold leave without noise (E-A01)"
_QUANTILE = "the threshold is a quantile of the client's own update (E-A03)"
_SMALL = "coordinates outside the chosen share leave without noise"
_OWN_CHOICE = "the noised coordinates and their share are chosen from the client's own update and losses"
_ONE_SENTENCE = "no formula is printed: the source describes DP-FedSNLC in one sentence (E-A10)"
_SENSITIVITY = "the sensitivity 2 eta C / n is an assumption: the paper states none, and with 2 C nothing trains"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asgp(PlainStage):
    """DP-FedASGP's adaptive selective noise, as printed (Algorithm 1): it is not differentially private.

    In round t of T a coordinate gets noise if it plus alpha reaches the order statistic number t d/T (at most 0.9 d)
    of the update plus beta; the others are sent as they are.

    Attributes:
        epsilon: claimed, divided among selection and values.
        value_fraction: part of epsilon for the values; the paper says much more than for the selection.
        q: the paper's q, which acts as a number of positives.
        select_on: `signed` as printed, so that large negative values are never noised (E-A02); or `abs`.
        alpha_mode: one alpha per update as printed, or one per coordinate.
        selection: scales of alpha and beta, as in the `text` or in `algorithm` 1 (E-A04).
        noise: on values, Laplace by the text, Laplace with the standard deviation of (2), or Gaussian by (2) (E-A05).
        sensitivity: Delta S; none takes 2 eta C / n.

    Guarantees:
        none: coordinates leave exactly, and the threshold is private.
    """

    gives: ClassVar[type | None] = Released
    publishes: ClassVar[bool] = True
    epsilon: Annotated[float, Gt(0)] = 1.0
    value_fraction: Annotated[float, Gt(0), Lt(1)] = 0.9
    q: Annotated[float, Gt(0)] = 1.0
    select_on: Literal["signed", "abs"] = "signed"
    alpha_mode: Literal["scalar", "per_coordinate"] = "scalar"
    selection: Literal["text", "algorithm"] = "algorithm"
    noise: Literal["laplace_text", "laplace_std_eq2", "gaussian_eq2"] = "laplace_text"
    sensitivity: Annotated[float, Gt(0)] | None = None

    def problems(self, before: Bounds) -> Iterator[Problem]:
        """Yields a missing bound, from which the sensitivity is taken."""
        if self.sensitivity is None and math.isinf(before.largest.l2):
            yield "sensitivity", "none", "needs a bound; put `{kind: clip}` before, or give a number"

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same."""
        return before

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares the claim, and that it is not proved."""
        notes = () if self.sensitivity is not None else (_SENSITIVITY,)
        claim = ClaimedRule(epsilon=self.epsilon, formula="DP-FedASGP, Theorem 1 (not composed over rounds)")
        after = replace(before, noised=True, published=claim, notes=(*before.notes, *notes))
        return after.reading(_QUANTILE).leaking(_EXACT)

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Released:
        """Adds noise to the selected coordinates of each row."""
        for index, (row, generator) in enumerate(zip(rows.rows, batch.generators, strict=True)):
            size = self._sensitivity(plan, batch, index)
            selected = self._select(row, size, batch, generator)
            row[selected] += self._draw(size, len(selected), generator)
        return Released(rows.rows)

    def _sensitivity(self, plan: Declared, batch: ReleaseBatch, index: int) -> float:
        if self.sensitivity is not None:
            return self.sensitivity
        return 2.0 * batch.rate * plan.bounds.of(int(batch.nodes[index])).l2 / max(float(batch.records[index]), 1.0)

    def _select(
        self, row: Matrix, size: float, batch: ReleaseBatch, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        values = np.abs(row) if self.select_on == "abs" else row
        rank = rank_of(len(row), batch.round_number, batch.rounds)
        # The order statistic itself is used, as printed: beta is all that hides it (E-A03).
        line = float(np.partition(values, rank - 1)[rank - 1])
        scales = self._scales(size)
        # One alpha for all coordinates, as printed, shifts all comparisons alike (E-A04).
        alpha = generator.laplace(0.0, scales.query, 1 if self.alpha_mode == "scalar" else len(row))
        beta = float(generator.laplace(0.0, scales.threshold))
        return np.flatnonzero(values + alpha >= line + beta)

    def _scales(self, size: float) -> SvtScales:
        budget = divide_budget(self.epsilon, self.value_fraction, self.q)
        return budget.as_text(size) if self.selection == "text" else budget.as_algorithm(size)

    def _draw(self, size: float, count: int, generator: np.random.Generator) -> Matrix:
        if self.noise == "laplace_text":
            drawn = generator.laplace(0.0, self._scales(size).value, count)
        elif self.noise == "laplace_std_eq2":
            # A Laplace number of scale b has the deviation b sqrt(2).
            drawn = generator.laplace(0.0, sigma_eq2(self.epsilon, size) / math.sqrt(2.0), count)
        else:
            drawn = generator.normal(0.0, sigma_eq2(self.epsilon, size), count)
        return drawn.astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snlc(PlainStage):
    """A surrogate of DP-FedSNLC, which its source describes in one sentence: noise where the loss changes most.

    The first-order change of the loss along coordinate j is |g_j dw_j|, with plain SGD proportional to the square of
    the update. A share omega of the coordinates gets Gaussian noise; it follows the change of the client's own loss
    from one of its rounds to the next, relative to the first such change, within [omega_min, omega].

    Attributes:
        sigma: standard deviation of the noise.
        omega: largest share of coordinates with noise.
        omega_min: smallest share.

    Guarantees:
        none: coordinates leave exactly, and their choice is private.
    """

    gives: ClassVar[type | None] = Released
    needs_loss: ClassVar[bool] = True
    sigma: Annotated[float, Gt(0)] = 0.01
    omega: Annotated[float, Gt(0), Le(1)] = 0.9
    omega_min: Annotated[float, Ge(0), Le(1)] = 0.1

    def __post_init__(self) -> None:
        if self.omega_min > self.omega:
            raise ValueError(f"omega_min = {self.omega_min:g}: must be <= omega, which is {self.omega:g}; lower it")

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the same."""
        return before

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Declares that nothing is proved; the source states no formula."""
        notes = (*before.notes, "a surrogate: the paper's own rule is not printed")
        after = replace(before, noised=True, unpublished=_ONE_SENTENCE, notes=notes)
        return after.reading(_OWN_CHOICE).leaking(_SMALL)

    def remembers(self, clients: int, rounds: int, shape: UpdateShape) -> dict[str, NDArray[Any]]:
        """Returns each client's last loss and first change of loss; NaN before there is one."""
        return {"snlc": np.full((clients, 2), np.nan)}

    def apply(self, rows: Update, plan: Declared, batch: ReleaseBatch) -> Released:
        """Adds noise to the chosen share of each row."""
        shares = self._shares(batch)
        for row, share, generator in zip(rows.rows, shares.tolist(), batch.generators, strict=True):
            # By the update's size alone: with plain SGD the loss changes along j by its square.
            chosen = largest(row, max(1, math.ceil(share * len(row))))
            row[chosen] += generator.standard_normal(len(chosen), dtype=np.float32) * np.float32(self.sigma)
        return Released(rows.rows)

    def _shares(self, batch: ReleaseBatch) -> Floats:
        """Returns omega of each row, and remembers its loss."""
        last, first = batch.memory["snlc"][batch.nodes].T
        losses = batch.needed_losses()
        change = np.abs(last - losses)
        # A client's first round has no change yet, its second sets the reference: both get the largest share.
        started = np.isfinite(first) & (first > 0.0)
        shares = np.where(started, self.omega * change / np.where(started, first, 1.0), self.omega)
        # Set once: the second round's change is the reference for all later ones.
        first = np.where(np.isfinite(first), first, change)
        batch.memory["snlc"][batch.nodes] = np.column_stack([losses, first])
        return np.asarray(np.clip(shares, self.omega_min, self.omega))
