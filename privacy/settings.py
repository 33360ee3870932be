"""The `privacy` section of a scenario: clip, noise, budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from annotated_types import Gt, Lt

from p2p.choices import Choice
from p2p.units import Share
from privacy.calibrations import AdpdflCalibration, DpFedAvgCalibration, RigorousCalibration
from privacy.mechanisms import CLIPS, NOISES, FlatClip, GaussianNoise, NoClip, NoNoise

By = Literal["published", "rigorous", "none"]


class ResolvedBudget(NamedTuple):
    """A budget with every default filled in; epsilon is infinite when nothing limits the run."""

    by: By
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetClass:
    """Clients with a budget of their own: a share of all, drawn by chance, or those named.

    Attributes:
        epsilon: the most such a client may spend.
        share: share of the clients that belong to it; all shares sum to 1.
        clients: instead of `share`, a client, a range such as 0-29, or a list of both.
    """

    epsilon: Annotated[float, Gt(0)]
    share: Share | None = None
    clients: int | str | tuple[int | str, ...] | None = None

    def __post_init__(self) -> None:
        if (self.share is None) == (self.clients is None):
            raise ValueError("needs exactly one of `share` and `clients`; remove or add one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a client stops taking part.

    Attributes:
        by: `published` counts global rounds by the paper's formula, `rigorous` the client's own releases exactly,
            `none` never stops; default what the calibration speaks of.
        epsilon: the most a client may spend; default the calibration's.
        classes: clients with budgets of their own, by shares that sum to 1 or by name; others keep `epsilon`.
    """

    by: By | None = None
    epsilon: Annotated[float, Gt(0)] | None = None
    classes: tuple[BudgetClass, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """How updates are protected, and how much a client may give away.

    Attributes:
        clip: bounds what one client can contribute.
        noise: hides what it contributed.
        budget: when a client refuses to go on.
        delta: failure probability of every epsilon reported; a calibration's own delta wins.
        colluders: nodes that put together what they see, as a list or as a share of the clients; none asks for none.
    """

    clip: Annotated[FlatClip | NoClip, Choice(CLIPS)] = field(default_factory=NoClip)
    noise: Annotated[GaussianNoise | NoNoise, Choice(NOISES)] = field(default_factory=NoNoise)
    budget: Budget = field(default_factory=Budget)
    delta: Annotated[float, Gt(0), Lt(1)] = 1e-5
    colluders: tuple[int, ...] | Share | None = None

    @property
    def calibration(self) -> AdpdflCalibration | DpFedAvgCalibration | RigorousCalibration | None:
        """The calibration in use, if any."""
        return self.noise.calibrate if isinstance(self.noise, GaussianNoise) else None

    @property
    def clip_norm(self) -> float:
        """The bound that clipping enforces; infinite if there is none, or a plug-in does not state it."""
        return float(getattr(self.clip, "norm_bound", math.inf))

    @property
    def noise_std(self) -> float | None:
        """The standard deviation given in the scenario, if any."""
        return self.noise.sigma if isinstance(self.noise, GaussianNoise) else None

    def resolved_budget(self) -> ResolvedBudget:
        """The budget with its defaults: by and epsilon from the calibration, `none` if there is nothing to count.

        Where clients have budgets of their own and nothing else is given, epsilon is the largest of theirs.
        """
        calibration = self.calibration
        own = max((group.epsilon for group in self.budget.classes), default=math.inf)
        epsilon = self.budget.epsilon or (calibration.epsilon if calibration else own)
        delta = calibration.delta if calibration else self.delta
        if self.budget.by is not None:
            return ResolvedBudget(self.budget.by, epsilon, delta)
        if isinstance(calibration, AdpdflCalibration | DpFedAvgCalibration):
            return ResolvedBudget("published", epsilon, delta)
        return ResolvedBudget("rigorous" if math.isfinite(epsilon) else "none", epsilon, delta)

    def problems(self, path: str = "privacy") -> list[str]:
        """Every contradiction in this section as `path = value: rule; cure`; cheap, for `peerveil check`."""
        by, epsilon, _ = self.resolved_budget()
        clipped, noised = math.isfinite(self.clip_norm), isinstance(self.noise, GaussianNoise)
        found = []
        if self.calibration is not None and not clipped:
            found.append(f"{path}.clip = none: calibrated noise needs a bound; set `clip: {{kind: flat, norm: 1.0}}`")
        if by == "rigorous" and not (clipped and noised):
            found.append(f"{path}.budget.by = rigorous: needs clipping and noise; add both, or set `by: none`")
        if by == "published" and not (clipped and noised):
            found.append(f"{path}.budget.by = published: needs clipping and noise; add both, or set `by: none`")
        if by == "published" and isinstance(self.calibration, RigorousCalibration):
            found.append(f"{path}.budget.by = published: no paper charges `kind: rigorous`; set `by: rigorous`")
        if by == "none" and self.budget.classes:
            found.append(f"{path}.budget.classes: with `by: none` nobody ever stops; remove one of them")
        if by != "none" and math.isinf(epsilon):
            found.append(f"{path}.budget.epsilon: required with `by: {by}` and a given sigma; set it, for example 8")
        return found
