"""What papers claim about the noise of stages: their own accounting, literally."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt, Lt

from privacy.calibration.noise_plan import NoisePlan, PlanContext

Delta = Annotated[float, Gt(0), Lt(1)]
# The most rounds that a scenario may have; searches for a number of rounds end there.
_MOST_ROUNDS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsClaim:
    """Weng's moments accountant of LDP-FL and Fed-nore: rate 1/M, and a step for every client of every round.

    Attributes:
        delta: failure probability of the claim.
        rate: `one_client` takes 1/M and adds up all clients' steps, as printed (E-T11); `cohort` takes the share of
            clients in a round, one step per round.
    """

    delta: Delta = 1e-6
    rate: Literal["one_client", "cohort"] = "one_client"

    def rule(self, multiplier: float, context: PlanContext) -> MomentsRule:
        """Returns the rule for a run."""
        cohort = context.train_per_round
        # As printed, the rate of one client goes with the steps of all: the two slips partly cancel (E-T11).
        rate, steps = (cohort / context.clients, 1) if self.rate == "cohort" else (1.0 / context.clients, cohort)
        return MomentsRule(rate=rate, multiplier=multiplier, delta=self.delta, steps_per_round=steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsRule:
    """The moments accountant (Abadi et al. 2016), orders 1 to 32."""

    rate: float
    multiplier: float
    delta: float
    steps_per_round: int

    @property
    def formula(self) -> str:
        """Name of the rule in tables."""
        return f"moments accountant, q = {self.rate:.3g}, {self.steps_per_round} steps a round"

    def epsilon_after(self, global_rounds: int) -> float:
        """Returns the paper's epsilon after that many rounds of the whole system."""
        from privacy.accounting.curves.moments import log_moments

        if global_rounds <= 0:
            return 0.0
        moments = log_moments(self.rate, self.multiplier)
        # Log moments of equal steps add up, so a run of many rounds is one product.
        return moments.epsilon(global_rounds * self.steps_per_round, self.delta)[0]

    def max_rounds(self, epsilon: float) -> int:
        """Returns the number of rounds whose epsilon is at most this one."""
        from privacy.accounting.curves.poisson_sampling import max_steps

        # The slack lets a run that was calibrated for T rounds have all T in spite of rounding.
        return max_steps(self.epsilon_after, epsilon * (1.0 + 1e-9), 1, _MOST_ROUNDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FedSmpCalibration:
    """Fed-SMP's closed form: `z^2 = 7 q^2 T (epsilon + 2 ln(1/delta)) / epsilon^2`, `z C / sqrt(m)` at each client.

    Attributes:
        epsilon: claimed for an observer of the sums, by a shortcut with side conditions (E-T04).
        delta: failure probability.
    """

    epsilon: Annotated[float, Gt(0)] = 8.0
    delta: Delta = 1e-5

    def plan(self, clip_norm: float, context: PlanContext) -> NoisePlan:
        """Returns the noise by the closed form, divided over the cohort."""
        rate, budget = context.rate, 2.0 * math.log(1.0 / self.delta)
        # Solved for z; `epsilon_after` below solves the same equation for epsilon.
        z = rate * math.sqrt(7.0 * context.rounds * (self.epsilon + budget)) / self.epsilon
        return NoisePlan(
            # Independent noises of the cohort add up to the z C of the sum that the form is about.
            noise_std=np.full(context.clients, z * clip_norm / math.sqrt(context.train_per_round)),
            clip_norm=clip_norm,
            sensitivity=2.0 * clip_norm,
            published=FedSmpRule(rate=rate, multiplier=z, delta=self.delta),
            notes=("the closed form has the side conditions of a shortcut (E-T04); compare `kind: dp_fedavg`",),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FedSmpRule:
    """The closed form of Fed-SMP solved for epsilon."""

    rate: float
    multiplier: float
    delta: float

    @property
    def formula(self) -> str:
        """Name of the rule in tables."""
        return "Fed-SMP's closed form"

    def epsilon_after(self, global_rounds: int) -> float:
        """Returns the positive root of `z^2 eps^2 = 7 q^2 T (eps + 2 ln(1/delta))`."""
        # Divided by z^2 it is eps^2 = k eps + 2 k ln(1/delta), whose other root is negative.
        k = 7.0 * self.rate**2 * global_rounds / self.multiplier**2
        return 0.5 * (k + math.sqrt(k * k + 8.0 * k * math.log(1.0 / self.delta)))

    def max_rounds(self, epsilon: float) -> int:
        """Returns the number of rounds the closed form allows."""
        per_round = 7.0 * self.rate**2 * (epsilon + 2.0 * math.log(1.0 / self.delta))
        return math.floor(self.multiplier**2 * epsilon**2 / per_round * (1.0 + 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRule:
    """A paper that states one epsilon and does not say how rounds add up: it stays what was claimed."""

    epsilon: float
    formula: str
    delta: float = 0.0

    def epsilon_after(self, global_rounds: int) -> float:
        """Returns the claim, once something was released."""
        return self.epsilon if global_rounds > 0 else 0.0

    def max_rounds(self, epsilon: float) -> int:
        """Returns all rounds or none."""
        return _MOST_ROUNDS if self.epsilon <= epsilon else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CpsgdRule:
    """cpSGD: Theorem 1 of Agarwal et al. 2018 for the sum of a cohort's releases, rounds added up.

    Attributes:
        trials: of the sum's binomial noise.
        dimension: coordinates.
        distance: D/s, how far a client's vector can move by L2, in steps of the grid.
        levels: k.
    """

    trials: int
    dimension: int
    distance: float
    levels: int
    delta: float

    @property
    def formula(self) -> str:
        """Name of the rule in tables."""
        return "cpSGD, Theorem 1 for the sum, rounds added up"

    def epsilon_after(self, global_rounds: int) -> float:
        """Returns so many times the epsilon of one round."""
        from privacy.mechanisms.binomial import BinomialNoise

        noise = BinomialNoise(trials=self.trials, p=0.5, dimension=self.dimension)
        log, spread = math.log(2.0 / self.delta), math.sqrt(self.dimension) * self.distance
        # Sensitivities of the rounded vectors, each with probability 1 - delta.
        l1 = spread + math.sqrt(2.0 * spread * log) + 4.0 / 3.0 * log
        l2 = self.distance + math.sqrt(l1 + math.sqrt(2.0 * spread * log))
        # The theorem is about one sum, and basic composition is what it leaves for several.
        return global_rounds * noise.epsilon(self.delta, l1, l2, self.levels + 1.0)

    def max_rounds(self, epsilon: float) -> int:
        """Returns the rounds that fit."""
        return math.floor(epsilon / self.epsilon_after(1) * (1.0 + 1e-9))

    def notes(self) -> tuple[str, ...]:
        """Returns the condition of the theorem, if it is not met."""
        from privacy.mechanisms.binomial import BinomialNoise

        noise = BinomialNoise(trials=self.trials, p=0.5, dimension=self.dimension)
        needed = noise.variance_needed(self.delta, self.levels + 1.0)
        if noise.variance >= needed:
            return ()
        return (f"cpSGD's Theorem 1 needs a variance of {needed:.4g} in the sum; it is {noise.variance:.4g}",)


CLAIMS: dict[str, type] = {"moments": MomentsClaim}
