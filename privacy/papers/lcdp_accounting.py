"""The accountants of LCDP-FL (Weng 2025, section 3.2): log moments of order 1 to 32 of a sampled Gaussian.

Neither is a guarantee: 1/M is no sampling rate, clients' losses are added over disjoint data, sensitivities depend on
data, and the server knows who was sampled (E-T11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from privacy.accounting.curves.moments import LogMoments, log_moments

_MOST_ROUNDS = 1 << 40  # with large noise no number of rounds exceeds the budget


@dataclass(frozen=True, slots=True)
class MomentsBudget:
    """One accountant: rate q, multiplier sigma, steps per round, and the (epsilon, delta) that may be spent."""

    rate: float
    sigma: float
    steps: int
    epsilon: float
    delta: float

    def epsilon_after(self, rounds: int) -> float:
        """Returns epsilon at the budget's delta after that many rounds."""
        # Without rounds the formula would still charge ln(1/delta) over the largest moment.
        return self._moments().epsilon(self.steps * rounds, self.delta)[0] if rounds else 0.0

    def log10_delta_after(self, rounds: int) -> float:
        """Returns log10 of delta at the budget's epsilon after that many rounds."""
        return self._moments().log10_delta(self.steps * rounds, self.epsilon)[0]

    def max_rounds(self) -> int:
        """Returns the most rounds whose epsilon is within the budget."""
        moments = self._moments()
        # Epsilon grows with rounds: doubling finds an interval, bisection the last round within the budget.
        least, most = 0, 1
        while most < _MOST_ROUNDS and moments.epsilon(self.steps * most, self.delta)[0] <= self.epsilon:
            least, most = most, 2 * most
        while most - least > 1:
            middle = (least + most) // 2
            if moments.epsilon(self.steps * middle, self.delta)[0] <= self.epsilon:
                least = middle
            else:
                most = middle
        return least

    def _moments(self) -> LogMoments:
        return log_moments(self.rate, self.sigma)


@dataclass(frozen=True, slots=True)
class MomentsAccountants:
    """The accountants of a run by name; the published epsilon is the largest of theirs, each at its own delta."""

    accountants: Mapping[str, MomentsBudget]

    @property
    def formula(self) -> str:
        """Name of the rule in tables."""
        return f"moments accountant, {' and '.join(self.accountants)}"

    @property
    def delta(self) -> float:
        """The largest of the accountants' deltas."""
        # Tables have one column for delta, and what holds at a smaller one holds at a larger one too.
        return max(accountant.delta for accountant in self.accountants.values())

    def epsilon_after(self, global_rounds: int) -> float:
        """Returns the largest epsilon after that many rounds."""
        return max(accountant.epsilon_after(global_rounds) for accountant in self.accountants.values())

    def max_rounds(self, epsilon: float) -> int:
        """Returns the rounds that all accountants allow."""
        return min(replace(accountant, epsilon=epsilon).max_rounds() for accountant in self.accountants.values())

    def details(self, global_rounds: int) -> dict[str, dict[str, float]]:
        """Returns what each accountant says after that many rounds: epsilon at its delta, and delta at its epsilon."""
        return {
            name: {
                "epsilon": accountant.epsilon_after(global_rounds),
                "delta": accountant.delta,
                "log10_delta_at_budget": accountant.log10_delta_after(global_rounds),
                "budget": accountant.epsilon,
            }
            for name, accountant in self.accountants.items()
        }
