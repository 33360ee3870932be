"""Budgets by Weng's moments accountants, for clients and server: the first to run out ends the run (LCDP-FL)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

from annotated_types import Gt, Lt

from nodes.schedules.fixed import ScheduleTerms
from privacy.papers.lcdp_accounting import MomentsBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class LossBudget:
    """The budget of one moments accountant.

    Attributes:
        epsilon: the most that may be spent at `delta`.
        delta: failure probability.
        sigma: noise multiplier that the accountant counts with; default that of the noise it is about.
    """

    epsilon: Annotated[float, Gt(0)] = 8.0
    delta: Annotated[float, Gt(0), Lt(1)] = 1e-5
    sigma: Annotated[float, Gt(0)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Ends the run when the first of two budgets is spent, as Weng (2025, Alg. 3.1) counts; published figures only.

    Attributes:
        local: budget of clients' noise: rate 1/M, one step for every release of a round
        server: budget of the aggregator's noise: rate m/M, one step per round
        stop: before the round that would exceed a budget, or after it as printed, which includes that round
    """

    local: LossBudget | None = None
    server: LossBudget | None = None
    stop: Literal["before", "after"] = "before"

    def __post_init__(self) -> None:
        if self.local is None and self.server is None:
            raise ValueError(
                "needs `local`, `server` or both; add one, for example `server: {epsilon: 8, delta: 1e-5}`"
            )

    @property
    def reads(self) -> str:
        """Reads nothing: both accountants count rounds."""
        return ""

    def accountants(self, terms: ScheduleTerms) -> dict[str, MomentsBudget]:
        """Returns the accountants by name, with the rates and steps of Weng (2025)."""
        given = {
            # The rate of one client with the steps of all, as printed (E-T11).
            "local": (self.local, terms.local_multiplier, 1.0 / terms.clients, terms.cohort),
            "server": (self.server, terms.server_multiplier, terms.cohort / terms.clients, 1),
        }
        found = {}
        for name, (budget, multiplier, rate, steps) in given.items():
            if budget is not None:
                sigma = budget.sigma or multiplier
                if sigma is None:
                    raise ValueError(f"the sigma of the {name} budget is not known")
                found[name] = MomentsBudget(rate, sigma, steps, budget.epsilon, budget.delta)
        return found

    def begin(self, terms: ScheduleTerms) -> BudgetedRounds:
        """Returns the rounds of a run."""
        accountants = self.accountants(terms)
        # As printed, the budget is checked when a round is over: the one that exceeds it has taken place.
        extra = 1 if self.stop == "after" else 0
        lasts = {name: _rounds(accountant) + extra for name, accountant in accountants.items()}
        return BudgetedRounds(terms.rounds, lasts, accountants)


def local_multiplier(privacy: Any) -> float | None:
    """Returns the noise of clients as a multiple of its published sensitivity, if a stage gives it so."""
    stage = None if privacy is None else privacy.noise_stage
    found = getattr(stage, "multiplier", None)
    return None if found is None else float(found)


def server_multiplier(aggregate: Any) -> float | None:
    """Returns the noise of the aggregate in multiples of the clip norm, if it is given so."""
    return None if aggregate.noise is None else aggregate.noise.multiplier


# Plan, checks and run ask for the same budgets, and each answer is a search over moments.
_rounds = lru_cache(MomentsBudget.max_rounds)


@dataclass(frozen=True, slots=True)
class BudgetedRounds:
    """The rounds that all budgets allow, with the same noise in each."""

    rounds: int
    last: dict[str, int]
    accountants: dict[str, MomentsBudget]
    reads: str = ""

    def why_over(self, round_number: int) -> str:
        """Returns which budget is spent."""
        spent = [name for name, last in self.last.items() if last < round_number]
        return f"the {' and the '.join(spent)} budget of the schedule is spent" if spent else ""

    def noise_factor(self, round_number: int) -> float:
        """Returns 1."""
        return 1.0

    def planned_rounds(self) -> float:
        """Returns the rounds that all budgets allow."""
        # The first budget to run out ends the run for all.
        return float(min(self.rounds, *self.last.values()))

    def note(self, round_number: int, loss: float | None) -> None:
        """Does nothing."""
