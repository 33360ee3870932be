"""The `privacy` section of a scenario: clip, noise, budget; and the stages of a release, in short form or as listed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from annotated_types import Gt, Lt

from p2p.config.choices import Choice
from p2p.config.units import Fraction
from privacy.calibration.strategies import PUBLISHED, Calibration, RigorousCalibration
from privacy.mechanisms.clip_and_noise import CLIPS, NOISES, FlatClip, GaussianNoise, NoClip, NoNoise
from privacy.mechanisms.scales import out_of_range
from privacy.stages.api import Released, Stage
from privacy.stages.clipping import Clip, ForeignClip
from privacy.stages.gaussian import ForeignNoise, Gaussian
from privacy.stages.order import final_bounds, stage_problems

By = Literal["published", "rigorous", "none"]


class ResolvedBudget(NamedTuple):
    """A budget with all defaults filled in; epsilon is infinite if the run is not limited."""

    by: By
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetClass:
    """Clients with their own budget: a random share of all clients, or those named.

    Attributes:
        epsilon: the most that such a client may spend.
        share: share of the clients that belong to it; all shares sum to 1.
        clients: instead of `share`, a client, a range such as 0-29, or a list of both.
    """

    epsilon: Annotated[float, Gt(0)]
    share: Fraction | None = None
    clients: int | str | tuple[int | str, ...] | None = None

    def __post_init__(self) -> None:
        if (self.share is None) == (self.clients is None):
            raise ValueError("needs exactly one of `share` and `clients`; remove or add one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a client stops taking part.

    Attributes:
        by: `published` counts global rounds by the paper's formula, `rigorous` the client's own releases exactly,
            `none` never stops; default follows the calibration.
        epsilon: the most that a client may spend; default the calibration's.
        classes: clients with their own budgets, by shares that sum to 1 or by name; others keep `epsilon`.
    """

    by: By | None = None
    epsilon: Annotated[float, Gt(0)] | None = None
    classes: tuple[BudgetClass, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """Protection of updates, and the privacy budget of clients.

    Attributes:
        clip: bounds the contribution of one client; short form of a first stage of `update`.
        noise: hides the contribution of one client; short form of a second stage of `update`.
        budget: when a client stops taking part.
        delta: failure probability of every reported epsilon; a calibration's own delta takes precedence.
        colluders: nodes that pool their observations, as a list or a share of the clients; none evaluates no collusion.
    """

    clip: Annotated[FlatClip | NoClip, Choice(CLIPS, needs=("clip",))] = field(default_factory=NoClip)
    noise: Annotated[GaussianNoise | NoNoise, Choice(NOISES)] = field(default_factory=NoNoise)
    budget: Budget = field(default_factory=Budget)
    delta: Annotated[float, Gt(0), Lt(1)] = 1e-5
    colluders: tuple[int, ...] | Fraction | None = None
    # The scenario's `update` list; set by the loader, and no key of this section.
    stages: tuple[Stage, ...] = field(default=(), repr=False, metadata={"key": False})

    @property
    def release_stages(self) -> tuple[Stage, ...]:
        """The stages of a release: those listed under `update`, or what `clip` and `noise` stand for."""
        return self.stages or tuple(self._short_form())

    def _short_form(self) -> Iterator[Stage]:
        if isinstance(self.clip, FlatClip):
            yield Clip(norm=self.clip.norm)
        elif not isinstance(self.clip, NoClip):
            yield ForeignClip(self.clip)
        if isinstance(self.noise, GaussianNoise):
            yield Gaussian(sigma=self.noise.sigma, calibrate=self.noise.calibrate)
        elif not isinstance(self.noise, NoNoise):
            yield ForeignNoise(self.noise)

    @property
    def noise_stage(self) -> Stage | None:
        """The stage that adds noise, if any."""
        return next((stage for stage in self.release_stages if stage.gives is Released), None)

    @property
    def calibration(self) -> Calibration | None:
        """Calibration in use, if any."""
        return getattr(self.noise_stage, "calibrate", None)

    @property
    def clip_norm(self) -> float:
        """L2 bound that the stages enforce; infinite if there is none, or a plug-in does not state it."""
        return final_bounds(self.release_stages).largest.l2

    def resolved_budget(self) -> ResolvedBudget:
        """Returns the budget with its defaults: `by` and epsilon from the calibration, `none` if nothing is limited.

        If only classes of clients have budgets, epsilon is the largest of theirs.
        """
        calibration = self.calibration
        own = max((group.epsilon for group in self.budget.classes), default=math.inf)
        epsilon = self.budget.epsilon or (calibration.epsilon if calibration else own)
        if math.isinf(epsilon):
            epsilon = own
        delta = calibration.delta if calibration else self.delta
        # An explicit `by` takes precedence; otherwise a paper's calibration implies the paper's accounting.
        if self.budget.by is not None:
            return ResolvedBudget(self.budget.by, epsilon, delta)
        implied: By = "published" if isinstance(calibration, PUBLISHED) else "rigorous"
        return ResolvedBudget(implied if math.isfinite(epsilon) else "none", epsilon, delta)

    def problems(self, path: str = "privacy") -> list[str]:
        """Returns all contradictions in this section as `path = value: rule; cure`; cheap, for `peerveil check`."""
        # A plug-in may replace the clipping, so its bound decides, not its class.
        by, epsilon, _ = self.resolved_budget()
        clipped, noised = math.isfinite(self.clip_norm), self.noise_stage is not None
        found = out_of_range((f"{path}.{key}", value) for key, value in self._scales())
        if self.stages:
            found += [*self._mixed_forms(path), *stage_problems(self.stages)]
        elif self.calibration is not None and not clipped:
            found.append(f"{path}.clip = none: calibrated noise needs a bound; set `clip: {{kind: flat, norm: 1.0}}`")
        claims = getattr(self.noise_stage, "publishes", False)
        if by == "rigorous" and not (clipped and noised):
            found.append(f"{path}.budget.by = rigorous: needs clipping and noise; add both, or set `by: none`")
        if by == "published" and not ((clipped and noised) or claims):
            found.append(f"{path}.budget.by = published: needs clipping and noise; add both, or set `by: none`")
        if by == "published" and isinstance(self.calibration, RigorousCalibration):
            found.append(f"{path}.budget.by = published: no paper charges `kind: rigorous`; set `by: rigorous`")
        if by == "none" and self.budget.classes:
            found.append(f"{path}.budget.classes: with `by: none` no client ever stops; remove one of them")
        if by != "none" and math.isinf(epsilon):
            found.append(f"{path}.budget.epsilon: required with `by: {by}` and a given sigma; set it, for example 8")
        return found

    def _mixed_forms(self, path: str) -> Iterator[str]:
        """Yields the parts of the short form that stand beside a list of stages."""
        cure = "stands beside `update`, which lists all stages of a release; move it there, or drop `update`"
        if not isinstance(self.clip, NoClip):
            yield f"{path}.clip: {cure}"
        if not isinstance(self.noise, NoNoise):
            yield f"{path}.noise: {cure}"

    def _scales(self) -> Iterator[tuple[str, float | None]]:
        if not self.stages:
            yield "clip.norm", self.clip_norm
            yield "noise.sigma", self.noise.sigma if isinstance(self.noise, GaussianNoise) else None
        yield "noise.calibrate.epsilon", None if self.calibration is None else self.calibration.epsilon
        yield "budget.epsilon", self.budget.epsilon
        for index, group in enumerate(self.budget.classes):
            yield f"budget.classes.{index}.epsilon", group.epsilon
