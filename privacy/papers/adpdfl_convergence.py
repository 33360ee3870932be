"""Convergence bounds of ADPDFL (Theorem 9), as published and as in its appendix; neither is verified."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem9:
    """The setting of the bound on the mean squared gradient norm.

    Attributes:
        gap: F(W0) - F*.
        rounds: T.
        smoothness: L; the proof needs 1 <= L < 2 and step size 1.
        heterogeneity: zeta^2.
        sigma2: the noise scale squared, from Theorem 8.
        clip_norm, records: C and n; the noise added is 2 C sigma / n.
        averaged: number of updates in a mean, m_e (gossip) or m_tcs (leader).
        population: number they are drawn from, m_tcs (gossip) or M (leader).
        rho2: second eigenvalue modulus of the round's mixing matrix; 0 for a leader.
    """

    gap: float
    rounds: int
    smoothness: float
    heterogeneity: float
    sigma2: float
    clip_norm: float
    records: int
    averaged: int
    population: int
    rho2: float = 0.0

    def published(self) -> float:
        """Returns (5.8)/(5.9) literally; may be negative, which a bound on a squared norm cannot be (E-T09)."""
        denominator = self.rho2 + self.rho2 * self.smoothness - self.smoothness + 2.0
        return (2.0 * self.gap / self.rounds - self.heterogeneity + self._sampling() + self._noise()) / denominator

    def rederived(self, dimension: int) -> float:
        """Returns the bound from (A.65)/(A.66).

        Heterogeneity is added, the noise is multiplied by the model's dimension, and the denominator differs.
        """
        denominator = 2.0 - self.smoothness + self.rho2 * self.smoothness - self.rho2
        # The expected squared norm of a Gaussian vector is d times its variance; the printed bound has no d (E-T09).
        noise = dimension * self._noise()
        return (2.0 * self.gap / self.rounds + self.heterogeneity + self._sampling() + noise) / denominator

    def _sampling(self) -> float:
        # Finite-population correction: a mean over the whole population has no sampling variance.
        missing = (
            (self.population - self.averaged) / (self.averaged * (self.population - 1)) if self.population > 1 else 0.0
        )
        return self.heterogeneity * (self.smoothness - 1.0) * (1.0 - self.rho2) * missing

    def _noise(self) -> float:
        scale = 4.0 * self.smoothness * self.clip_norm**2 * self.sigma2
        return scale * (1.0 - self.rho2) / (self.records**2 * self.averaged)
