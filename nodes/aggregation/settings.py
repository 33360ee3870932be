"""The `aggregate` section of a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Lt

_AGAIN = "noise is added after momentum, so that a mean is released again later"
_WEIGHTS = "weights follow from who is in a mean, and sampling is counted for equal ones only"
Weights = Literal["uniform", "records", "records_of_all", "loss_and_records"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateNoise:
    """Gaussian noise that the aggregator adds; give `multiplier` or `sigma`.

    Attributes:
        multiplier: standard deviation in multiples of `scale`
        sigma: standard deviation on each coordinate
        scale: bound, the clip norm of updates; cohort_median, the median norm of the updates that arrived, to which a
            stage `clip_cohort_median` clips them (LCDP-FL as printed): it depends on all of them, so it is not charged
        on: mean adds it to the mean as LCDP-FL prints it; sum adds it to the sum, so the mean gets it divided by the
            number of updates
        when: before_momentum, so that momentum is computed from what is released; after_momentum as LCDP-FL prints it

    Guarantees:
        it hides a client from those who see aggregates only; all that get the updates, the aggregator included, see
        them without it.
    """

    multiplier: Annotated[float, Gt(0)] | None = None
    sigma: Annotated[float, Gt(0)] | None = None
    scale: Literal["bound", "cohort_median"] = "bound"
    on: Literal["mean", "sum"] = "mean"
    when: Literal["before_momentum", "after_momentum"] = "before_momentum"

    def __post_init__(self) -> None:
        if (self.multiplier is None) == (self.sigma is None):
            raise ValueError("needs exactly one of `multiplier` and `sigma`; remove or add one")
        if self.sigma is not None and self.by_median:
            raise ValueError("`scale` is about `multiplier`; give that, or drop it")

    @property
    def by_median(self) -> bool:
        """Whether its size follows from the updates of the round."""
        return self.scale == "cohort_median"

    def std(self, clip_norm: float) -> float:
        """Returns the standard deviation on the mean or on the sum."""
        return self.sigma if self.sigma is not None else (self.multiplier or 0.0) * clip_norm


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """From the updates of a round to the step of the model: W <- W - step_size (momentum of the weighted mean + noise).

    Attributes:
        weights: uniform; records, by clients' records among the updates that arrived; records_of_all, by their share of
            all clients' records as Wei et al. print it, so that weights sum to the share that arrived;
            loss_and_records, half by records and half by training loss summed over local epochs (DP-FedASGP), which
            clients send with the update
        momentum: beta of `V <- beta V + (1 - beta) mean`; 0 is the mean itself
        step_size: factor on the step
        noise: noise on the aggregate; none adds nothing
    """

    weights: Weights = "uniform"
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.0
    step_size: Annotated[float, Gt(0)] = 1.0
    noise: AggregateNoise | None = None

    @property
    def noise_after_momentum(self) -> bool:
        """Whether momentum is of means without the aggregator's noise, so that it must stay with the aggregator."""
        return self.noise is not None and self.noise.when == "after_momentum" and self.momentum > 0.0

    @property
    def why_not_amplified(self) -> str:
        """Why sampling of cohorts is not counted; empty if the section does not stand in the way."""
        if self.noise_after_momentum:
            return _AGAIN
        # Also where all weights of a round are equal: clients that were not drawn might have had others.
        return "" if self.weights == "uniform" else _WEIGHTS

    @property
    def sends_loss(self) -> bool:
        """Whether clients send their training loss with the update."""
        return self.weights == "loss_and_records"

    def unaccounted(self) -> tuple[str, ...]:
        """Returns what the section lets out without charging it, or releases in a way that is not proved."""
        found = []
        if self.sends_loss:
            found.append("training losses, which clients send with their updates (aggregate.weights: loss_and_records)")
        return tuple(found)
