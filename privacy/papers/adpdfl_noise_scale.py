"""The published noise scale of ADPDFL (Theorem 8 of Weng (2025)), its inversions and its side conditions.

Implemented literally, so that results can be compared. The theorem claims more than is proved: the division by m^2
for anonymity has no proof, and the shortcut behind it is used outside its range (`shortcut_conditions`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem8:
    """The published rule for one system.

    Attributes:
        clients: M, all clients.
        train_per_round: m_tcs, the cohort.
        exchange_with: m_e for gossip; None for a leader.
        delta: the failure probability.
        m_reading: meaning of the theorem's m, `M` or `m_tcs`; Weng (2025) uses it for both.
    """

    clients: int
    train_per_round: int
    exchange_with: int | None
    delta: float
    m_reading: str = "M"

    @property
    def m(self) -> int:
        """m of the formula under the chosen reading."""
        return self.clients if self.m_reading == "M" else self.train_per_round

    @property
    def s1(self) -> float:
        """`r_tcs^2` for a leader, `r_tcs^2 m_e` for gossip."""
        # The factor m_e is the paper's; copies of one noisy vector are one release and cost nothing (E-T08).
        return (self.train_per_round / self.clients) ** 2 * (self.exchange_with or 1)

    @property
    def epsilon_limit(self) -> float:
        """Upper limit of epsilon in the theorem: `2 ln(1/delta)`."""
        return 2.0 * math.log(1.0 / self.delta)

    def sigma(self, rounds: float, epsilon: float) -> float:
        """Returns the noise scale for that many global rounds: `sigma^2 = 7 s1 T (eps + 2L) / (m^2 eps^2)`."""
        return math.sqrt(7.0 * self.s1 * rounds * (epsilon + self.epsilon_limit)) / (self.m * epsilon)

    def epsilon_after(self, rounds: float, sigma: float) -> float:
        """Returns the epsilon claimed after that many global rounds: the positive root of the same equation."""
        if rounds <= 0:
            return 0.0
        # The limit of the formula; as a float it would divide by zero.
        if sigma == 0.0:
            return math.inf
        # With k = 7 s1 T / (m sigma)^2 the equation is eps^2 = k (eps + 2L).
        k = 7.0 * self.s1 * rounds / (self.m * sigma) ** 2
        return 0.5 * (k + math.sqrt(k * k + 4.0 * k * self.epsilon_limit))

    def max_rounds(self, epsilon: float, sigma: float) -> int:
        """Returns the largest number of global rounds within epsilon, with a relative slack of 1e-9.

        The slack ensures that a run calibrated for T rounds gets T rounds.
        """
        exact = (sigma * self.m * epsilon) ** 2 / (7.0 * self.s1 * (epsilon + self.epsilon_limit))
        return math.floor(exact * (1.0 + SLACK))


@dataclass(frozen=True, slots=True)
class ShortcutConditions:
    """The conditions under which `3.5 r^2 alpha / sigma^2` (Lemma 3), on which Theorem 8 rests, is valid."""

    alpha: float
    r_alpha_1_plus_sigma2: float
    alpha_limit: float
    sigma2_ok: bool
    alpha_ok: bool
    rate_ok: bool

    @property
    def shortcut_valid(self) -> bool:
        """Whether both published conditions hold."""
        return self.sigma2_ok and self.alpha_ok


def shortcut_conditions(rate: float, sigma2: float, epsilon: float, delta: float) -> ShortcutConditions:
    """Evaluates the side conditions that Weng (2025) leaves unchecked (erratum E-T04).

    `rate_ok` is false above rate 0.378, where the shortcut is worse than no sampling.
    """
    alpha = 1.0 + 2.0 * math.log(1.0 / delta) / epsilon
    product = rate * alpha * (1.0 + sigma2)
    limit = 1.0 + 2.0 / 3.0 * sigma2 * math.log(1.0 / product)
    # 3.5 r^2 alpha / sigma^2 exceeds the unsampled RDP alpha / (2 sigma^2) once 3.5 r^2 > 0.5.
    return ShortcutConditions(alpha, product, limit, sigma2 >= 0.7, alpha <= limit, 3.5 * rate**2 <= 0.5)
