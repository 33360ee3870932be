"""Communication-rounds discounting (Wei et al. 2020, Algorithm 2): fewer, less noisy rounds when the loss stalls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Gt, Interval

from nodes.schedules.fixed import ScheduleTerms
from p2p.config.choices import Choice
from privacy.papers.cdp_discounting import Rounding, RoundsDiscounting


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicLoss:
    """The loss of the newest aggregate on records that belong to no client; the aggregator reports it to the proxy.

    Attributes:
        share: share of the test records that serves as public validation set; accuracy is measured on the others.
    """

    share: Annotated[float, Interval(gt=0, lt=1)] = 0.5

    @property
    def reads(self) -> str:
        """Reads the aggregate's loss."""
        return "public_loss"

    @property
    def mu2(self) -> float:
        """Costs nothing: the aggregate is released anyway."""
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLosses:
    """The mean of members' losses on their own records, each clipped, noised and charged; reported with their part.

    A member measures the model that it trains from, so the mean tells of the model before the round.

    Attributes:
        bound: a loss counts as at most this.
        sigma: standard deviation of the noise on each loss.
    """

    bound: Annotated[float, Gt(0)] = 3.0
    sigma: Annotated[float, Gt(0)] = 30.0

    @property
    def reads(self) -> str:
        """Reads members' losses."""
        return "noisy_losses"

    @property
    def mu2(self) -> float:
        """What one report costs its client: a loss in [0, bound] moves by at most the bound."""
        return (self.bound / self.sigma) ** 2


LOSSES: dict[str, type] = {"public_loss": PublicLoss, "noisy_losses": NoisyLosses}


@dataclass(frozen=True, slots=True, kw_only=True)
class Discounting:
    """Whenever the loss did not fall in round t, the rounds left shrink by beta^2, and their noise with them.

    Attributes:
        beta: discount; 1 never discounts. The paper finds 0.9 best.
        rounding: floor and ceil make the planned rounds whole; literal keeps them real as printed, and overspends in
            the last round
        driven_by: the loss that decides

    Guarantees:
        with floor and ceil the rounds together spend at most what `rounds` rounds with the first round's noise would:
        a zCDP filter with that preset budget, which is the rigorous figure, whatever the losses were.
    """

    beta: Annotated[float, Interval(gt=0, le=1)] = 0.9
    rounding: Rounding = "floor"
    driven_by: Annotated[PublicLoss | NoisyLosses, Choice(LOSSES)] = field(default_factory=PublicLoss)

    @property
    def reads(self) -> str:
        """What the schedule is told of every round."""
        return self.driven_by.reads

    def unaccounted(self) -> tuple[str, ...]:
        """Returns what the filter does not cover."""
        overspends = "the last round, whose noise spends more than is left (schedule.rounding: literal, E-C09)"
        return (overspends,) if self.rounding == "literal" else ()

    def begin(self, terms: ScheduleTerms) -> DiscountedRounds:
        """Returns the rounds of a run."""
        # In units of the first round's noise: a budget of T0 then gives sigma 1, whatever the formula behind it.
        budget = float(terms.rounds)
        return DiscountedRounds(RoundsDiscounting(budget, budget, self.beta, self.rounding), self.reads)


@dataclass(slots=True)
class DiscountedRounds:
    """The state of one run's discounting."""

    _run: RoundsDiscounting
    reads: str
    _factors: list[float] = field(default_factory=list)
    _last_loss: float | None = None

    def why_over(self, round_number: int) -> str:
        """Returns that the planned rounds are over, if they are."""
        return "" if not self._run.over else f"the schedule discounted the rounds to {self._run.done}"

    def noise_factor(self, round_number: int) -> float:
        """Returns sigma of a round in units of the first round's."""
        return self._factors[round_number - 1] if 0 < round_number <= len(self._factors) else self._run.sigma

    def planned_rounds(self) -> float:
        """Returns T."""
        return self._run.planned

    def note(self, round_number: int, loss: float | None) -> None:
        """Ends a round, and discounts those left if the loss did not fall. Round 0 only states the first loss."""
        known, last = loss is not None, self._last_loss
        if round_number > 0:
            # Before `finish`, which may change it: this is the noise that the round had.
            self._factors.append(self._run.sigma)
            # A loss that did not reach the proxy decides nothing.
            self._run.finish(discounts=known and last is not None and not (loss or 0.0) < last)
        if known:
            # Only a known one: the next loss is compared with the last that arrived.
            self._last_loss = loss


def driven_by(schedule: object) -> PublicLoss | NoisyLosses | None:
    """Returns the loss that a schedule reads, if it reads one."""
    return schedule.driven_by if isinstance(schedule, Discounting) else None


def public_share(schedule: object) -> float:
    """Returns the share of the test records that is a public validation set."""
    driver = driven_by(schedule)
    return driver.share if isinstance(driver, PublicLoss) else 0.0


def loss_bound(schedule: object) -> float | None:
    """Returns the bound on members' losses, if they report them."""
    driver = driven_by(schedule)
    return driver.bound if isinstance(driver, NoisyLosses) else None


def report_mu2(schedule: object) -> float:
    """Returns what a client spends with every report of a loss."""
    driver = driven_by(schedule)
    return 0.0 if driver is None else driver.mu2
