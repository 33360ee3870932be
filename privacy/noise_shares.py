"""Noise split among peers so that it cancels in the sum (NISS): variances, drop-outs, and what the server can see.

A share is noise with variance `unit_variance` that one client adds and sends, negated, to a peer; the peer adds it
multiplied by s, drawn with mean 1 and standard deviation tau. With tau = 0 everything cancels: a masking scheme,
not differential privacy (E-N04). What protects is the noise that is left.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Share = tuple[int, int]
"""A share's sender and receiver."""


def share_count(total_variance: float, unit_variance: float, cohort: int) -> int:
    """How many shares a client sends: `round(sigma_k^2/sigma^2)`, at least one, at most one to each other member."""
    return min(max(1, round(total_variance / unit_variance)), cohort - 1)


def circulant_shares(cohort: int, count: int) -> list[Share]:
    """Client k sends to k+1..k+count, modulo the cohort: every in-degree equals every out-degree."""
    return [(k, (k + j) % cohort) for k in range(cohort) for j in range(1, count + 1)]


def marginal_variance(total_variance: float, tau: float) -> float:
    """Noise of one upload seen alone: `(2 + tau^2) sigma_k^2`. It is not the noise that protects (E-N04)."""
    return (2.0 + tau**2) * total_variance


def colluding_variance(total_variance: float, tau: float, colluding: float) -> float:
    """What is left of it when that fraction of the peers collude (Theorem 3): `(tau^2 + 2(1-rho)) sigma_k^2`."""
    return (tau**2 + 2.0 * (1.0 - colluding)) * total_variance


def least_tau2(colluding: float) -> float:
    """The least tau^2 that Theorem 3 asks for: `max(2 rho - 1, 0)`."""
    return max(2.0 * colluding - 1.0, 0.0)


def residual_variance(shares: Sequence[Share], lost: Collection[int], unit_variance: float, tau: float) -> float:
    """Variance of all uploads summed, when the `lost` clients vanish after the exchange.

    Per share: both ends upload tau^2, only the receiver 1 + tau^2, only the sender 1, neither 0.
    """
    gone = set(lost)
    left = 0.0
    for sender, receiver in shares:
        left += (sender not in gone) != (receiver not in gone)
        left += tau**2 * (receiver not in gone)
    return unit_variance * left


def expected_residual_variance(cohort: int, count: int, unit_variance: float, tau: float, lost: int) -> float:
    """The same in expectation over receivers drawn uniformly, when `lost` of the cohort vanish."""
    kept = cohort - lost
    both, one = kept * (kept - 1) * tau**2, lost * kept * (1.0 + tau**2) + kept * lost
    return unit_variance * count * (both + one) / (cohort - 1)


def upload_covariance(
    shares: Sequence[Share], multipliers: Sequence[float], cohort: int, unit_variance: float, independent: float
) -> NDArray[np.float64]:
    """Covariance of the noise in all uploads, multipliers known, with `independent` noise variance on each."""
    rows = np.zeros((len(shares), cohort))
    for index, ((sender, receiver), multiplier) in enumerate(zip(shares, multipliers, strict=True)):
        rows[index, sender] += 1.0
        rows[index, receiver] -= multiplier
    covariance: NDArray[np.float64] = unit_variance * rows.T @ rows + independent * np.eye(cohort)
    return covariance


def joint_mu(covariance: NDArray[np.float64], sensitivity: float, client: int) -> float:
    """mu about a client for one who sees every upload and knows the others' updates and all multipliers.

    `sensitivity sqrt(e_k' cov^-1 e_k)`; infinite when some combination of uploads shows the client without noise.

    Guarantees:
        revealing the multipliers is conservative, since they do not depend on data; exact given them.
    """
    values, vectors = np.linalg.eigh(covariance)
    parts = np.square(vectors[client])
    silent = values <= values[-1] * len(values) * 1e-13
    if parts[silent].sum() > 1e-12:
        return math.inf
    return sensitivity * math.sqrt(float((parts[~silent] / values[~silent]).sum()))


def collusion_tail(others: int, colluders: int, count: int, at_least: int) -> float:
    """Probability that at least so many of a client's `count` distinct random peers collude (hypergeometric)."""
    from scipy.stats import hypergeom

    return float(hypergeom.sf(at_least - 1, others, colluders, count))


def collusion_quantile(others: int, colluders: int, count: int, quantile: float) -> int:
    """How many of `count` distinct random peers collude at most, with that probability (E-N07)."""
    from scipy.stats import hypergeom

    return int(hypergeom.ppf(quantile, others, colluders, count))
