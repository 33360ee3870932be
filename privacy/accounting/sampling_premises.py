"""Amplification by sampling in the model view: its premises, checked round by round, and its figure."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privacy.accounting.content_log import RoundContents
from privacy.accounting.curves.fixed_size_sampling import model_epsilon
from privacy.accounting.figures import EpsilonFigure

_SAMPLED = "a bound for secret uniform cohorts of fixed size (Wang, Balle and Kasiviswanathan 2019, Theorem 27)"


@dataclass(frozen=True, slots=True)
class Draw:
    """How a round's cohort was drawn.

    Attributes:
        rate: cohort / clients it was drawn from.
        cohort: how many clients were chosen.
        failed: the premise that did not hold, as a sentence; empty if all did.
    """

    rate: float
    cohort: int
    failed: str = ""


@dataclass(slots=True)
class Amplification:
    """The rounds of a run in which an outsider sees one mean of a secret sample each.

    Guarantees:
        amplifies only if in every round the cohort was a fresh secret uniform sample, all of it and nothing else
        entered one mean, and sensitivity, noise and size of the means never differed: then the mechanism of each round
        is the sampled Gaussian mechanism for replaced clients, and nothing tells who was sampled.
    """

    why_not: str = ""
    _rates: list[float] = field(default_factory=list)
    _zs: list[float] = field(default_factory=list)

    def add(self, contents: RoundContents, draw: Draw) -> None:
        """Adds a round; the first premise that fails ends all amplification, and is kept."""
        failed = draw.failed or _failed(contents, draw.cohort)
        if not failed and (noise := _noise_of_mean(contents)) > 0.0:
            z = float(np.sqrt(noise) / contents.sensitivity[0])
            if self._zs and not np.isclose(z, self._zs[0], rtol=1e-9):
                failed = "the noise of the means differs between rounds"
            self._rates.append(draw.rate)
            self._zs.append(z)
        if failed and not self.why_not:
            self.why_not = f"{failed} (round {contents.round_number})"

    def amplified(self, model: EpsilonFigure, delta: float) -> EpsilonFigure:
        """Returns the model view's figure, amplified if the premises hold."""
        if self.why_not or not self._zs or model.how == "inf":
            return model
        epsilon = model_epsilon(self._rates, self._zs, delta)
        # A difference of rounding is no amplification.
        return EpsilonFigure(epsilon, "bound", _SAMPLED) if epsilon < model.epsilon * (1.0 - 1e-9) else model


def _noise_of_mean(contents: RoundContents) -> float:
    """Returns the variance of the one aggregate, to which every release contributes alike."""
    own = 0.0 if contents.sum_variance is None else float(contents.sum_variance[0])
    return float(contents.variance.sum()) + own


def _failed(contents: RoundContents, cohort: int) -> str:
    """Returns the premise that the contents of a round violate, or nothing."""
    if contents.losses:
        return "noise that is not Gaussian is charged in full"
    if contents.shares is not None:
        return "noise shares tie the updates of a round to each other"
    if len(contents.sums) != 1 or len(contents.opened):
        return "the round has no mean or several"
    if len(contents.clients) != cohort or not contents.sums.all():
        return "an update of the cohort is missing from the mean"
    unequal = np.ptp(contents.sums[0]) > 0.0 or contents.sums[0, 0] != 1.0
    if unequal or np.ptp(contents.variance) > 0.0 or np.ptp(contents.sensitivity) > 0.0:
        return "noise or weights differ between clients"
    return ""
