"""The schedule of a run, as processes see it, and the default one: as many rounds as the scenario says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTerms:
    """What a schedule knows before the first round.

    Attributes:
        rounds: T0, the most rounds that the run may have.
        clients: all clients, M.
        cohort: clients that train in a round, m.
        local_multiplier: noise of a release as a multiple of its published sensitivity; none if it is not given so.
        server_multiplier: noise of the aggregate in multiples of the clip norm; none if none is added.
    """

    rounds: int
    clients: int
    cohort: int
    local_multiplier: float | None = None
    server_multiplier: float | None = None


class RunSchedule(Protocol):
    """The rounds of one run, as far as they are known."""

    @property
    def reads(self) -> str:
        """What it is told of every round: `public_loss` of the newest model, members' `noisy_losses`, or nothing."""

    def why_over(self, round_number: int) -> str:
        """Returns why this round does not take place; empty if it does. Rounds count from 1."""

    def noise_factor(self, round_number: int) -> float:
        """Returns the factor on the noise of a round; of rounds to come, as planned now."""

    def planned_rounds(self) -> float:
        """Returns how many rounds are planned now."""

    def note(self, round_number: int, loss: float | None) -> None:
        """Ends a round; `loss` is what it reads, and none if that did not reach the proxy."""


@dataclass(frozen=True, slots=True)
class FixedRounds:
    """As many rounds as planned, with the same noise in each."""

    rounds: int
    reads: str = ""

    def why_over(self, round_number: int) -> str:
        """Returns an empty reason: the proxy counts the rounds itself."""
        return ""

    def noise_factor(self, round_number: int) -> float:
        """Returns 1."""
        return 1.0

    def planned_rounds(self) -> float:
        """Returns the rounds of the scenario."""
        return float(self.rounds)

    def note(self, round_number: int, loss: float | None) -> None:
        """Does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """As many rounds as the scenario says, unless too few clients have budget left."""

    @property
    def reads(self) -> str:
        """Reads nothing."""
        return ""

    def begin(self, terms: ScheduleTerms) -> FixedRounds:
        """Returns the rounds of a run."""
        return FixedRounds(terms.rounds)
