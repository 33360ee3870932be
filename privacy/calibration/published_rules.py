"""Published accounting rules: epsilon as a function of the number of global rounds alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from privacy.accounting.curves.zcdp import zcdp_budget, zcdp_epsilon
from privacy.papers.adpdfl_noise_scale import Theorem8, shortcut_conditions

if TYPE_CHECKING:
    from privacy.calibration.noise_plan import PlanContext


NoiseFactor = Callable[[int], float]
"""The factor on the noise of a round, by its number."""

NO_REHASH = "not applicable: Theorem 8 presumes addresses that change every round"


def constant_noise(round_number: int) -> float:
    """Returns 1: all rounds have the same noise."""
    return 1.0


class PublishedRule(Protocol):
    """The accountant of a paper."""

    @property
    def delta(self) -> float: ...

    @property
    def formula(self) -> str:
        """Name of the rule in tables."""

    def epsilon_after(self, global_rounds: int) -> float:
        """Returns the paper's epsilon after that many rounds of the whole system."""

    def max_rounds(self, epsilon: float) -> int:
        """Returns the number of rounds the paper allows; a run calibrated for T rounds gets T."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem8Rule:
    """ADPDFL: Theorem 8 inverted for the sigma in use."""

    theorem: Theorem8
    sigma: float

    @property
    def formula(self) -> str:
        """Name of the rule in tables."""
        return "Theorem 8 of Weng 2025"

    @property
    def delta(self) -> float:
        """Delta of the claim."""
        return self.theorem.delta

    def epsilon_after(self, global_rounds: int) -> float:
        """Returns the epsilon that Theorem 8 claims for all clients after that many rounds."""
        return self.theorem.epsilon_after(global_rounds, self.sigma)

    def max_rounds(self, epsilon: float) -> int:
        """Returns the number of rounds allowed, with a relative slack of 1e-9."""
        return self.theorem.max_rounds(epsilon, self.sigma)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRule:
    """DP-FedAvg: a Poisson-sampled Gaussian on the sum, add or remove one client."""

    rate: float
    noise_multiplier: float
    delta: float
    accountant: Literal["rdp", "pld"] = "rdp"

    @property
    def formula(self) -> str:
        """Name of the rule in tables."""
        return f"sampled Gaussian, {self.accountant.upper()}"

    def epsilon_after(self, global_rounds: int) -> float:
        """Returns epsilon against an observer of all means, by the accountant that calibrated the noise."""
        from privacy.accounting.curves.poisson_sampling import SEARCH_GRID, poisson_epsilon, poisson_epsilon_pld

        if global_rounds <= 0:
            return 0.0
        if self.accountant == "pld":
            return poisson_epsilon_pld(self.rate, self.noise_multiplier, global_rounds, self.delta, SEARCH_GRID)
        return poisson_epsilon(self.rate, self.noise_multiplier, global_rounds, self.delta)[0]

    def max_rounds(self, epsilon: float) -> int:
        """Returns the number of rounds allowed, with a relative slack of 1e-9."""
        from privacy.accounting.curves.poisson_sampling import MOST_PLD_STEPS, max_poisson_steps, max_steps

        target = epsilon * (1.0 + 1e-9)  # a run calibrated for T rounds must get T in spite of rounding
        by_rdp = max_poisson_steps(self.rate, self.noise_multiplier, target, self.delta)
        if self.accountant == "rdp":
            return by_rdp
        # PLD is tighter than RDP, so the count by RDP is a close first guess. No run has more rounds than the limit.
        return max_steps(self.epsilon_after, target, by_rdp, MOST_PLD_STEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeiRule:
    """CDP of Wei et al. 2020: epsilon as Theorem 1 and (19) count it, or by the paper's own moments where corrected.

    Attributes:
        epsilon: what all planned rounds with the first round's noise spend.
        rounds: T, the rounds planned at first.
        corrected: whether the noise is Theorem 1's, or larger as its moments require (E-C06).
        noise_factor: of each round, in units of the first round's noise.
    """

    epsilon: float
    delta: float
    rounds: int
    corrected: bool
    noise_factor: NoiseFactor = constant_noise

    @property
    def formula(self) -> str:
        """Name of the rule in tables."""
        return "Theorem 1 of Wei et al., corrected" if self.corrected else "Theorem 1 of Wei et al."

    def epsilon_after(self, global_rounds: int) -> float:
        """Returns epsilon of the noise that the rounds so far had."""
        # Spending goes with 1 / sigma^2: a round with half the noise counts four times.
        spent = sum(self.noise_factor(number) ** -2 for number in range(1, global_rounds + 1)) / self.rounds
        if not self.corrected:
            # By Theorem 1 epsilon grows with the root of T, and `spent` is the share of T.
            return self.epsilon * math.sqrt(spent)
        return zcdp_epsilon(spent * zcdp_budget(self.epsilon, self.delta), self.delta)

    def max_rounds(self, epsilon: float) -> int:
        """Returns the rounds that epsilon allows with the first round's noise, with a relative slack of 1e-9."""
        # The inverse of the root by which epsilon grows.
        fraction = (epsilon / self.epsilon) ** 2
        if self.corrected:
            fraction = zcdp_budget(epsilon, self.delta) / zcdp_budget(self.epsilon, self.delta)
        return math.floor(self.rounds * fraction * (1.0 + 1e-9))


def theorem8_for(context: PlanContext, delta: float, m_reading: str = "M") -> Theorem8:
    """Returns the theorem with this run's sizes; a server counts like a leader."""
    return Theorem8(
        clients=context.clients,
        train_per_round=context.train_per_round,
        exchange_with=context.exchange_with if context.topology == "gossip" else None,
        delta=delta,
        m_reading=m_reading,
    )


def theorem8_notes(context: PlanContext, theorem: Theorem8, sigma: float, epsilon: float) -> tuple[str, ...]:
    """Returns the conditions of Theorem 8 that this run does not meet, one sentence each."""
    # Not `context.rate`: the conditions are about the theorem's own rate, also where selection is no sampling.
    rate = context.train_per_round / context.clients
    conditions = shortcut_conditions(rate, sigma**2, epsilon, theorem.delta)
    checks = [
        (context.rehash, f"published epsilon is {NO_REHASH}"),
        (context.topology != "central", "Theorem 8 knows no server: its pseudo-central form is used"),
        (context.selection == "uniform", "first-come selection is not the uniform sample Theorem 8 presumes"),
        (conditions.sigma2_ok, f"sigma^2 = {sigma**2:.3g} is below the 0.7 that Lemma 3 needs (E-T04)"),
        (
            conditions.alpha_ok,
            f"order {conditions.alpha:.3g} exceeds the {conditions.alpha_limit:.3g} that Lemma 3 allows (E-T04)",
        ),
        (conditions.rate_ok, f"at sampling rate {rate:.3g} Lemma 3 is worse than no sampling (E-T04)"),
    ]
    return tuple(text for holds, text in checks if not holds)
