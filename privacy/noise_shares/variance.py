"""Noise split among peers so that it cancels in the sum (NISS): variances, drop-outs, and the server's view.

A share is noise with variance `unit_variance` that one client adds and sends, negated, to a peer. The peer adds it
multiplied by s, drawn with mean 1 and standard deviation tau. With tau = 0 everything cancels: a masking scheme, not
differential privacy (E-N04). Only the residual noise gives differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Share = tuple[int, int]
"""A share's sender and receiver."""


def share_count(total_variance: float, unit_variance: float, cohort: int) -> int:
    """Returns the shares a client sends: `round(sigma_k^2/sigma^2)`, at least one, at most one per other member."""
    # Receivers must be distinct members (E-N09), so more shares than others cannot be sent.
    return min(max(1, round(total_variance / unit_variance)), cohort - 1)


def circulant_shares(cohort: int, count: int) -> list[Share]:
    """Returns the shares of a circulant graph: client k sends to k+1..k+count, modulo the cohort."""
    # Every client sends and takes `count` shares, which Theorem 2 needs.
    return [(k, (k + j) % cohort) for k in range(cohort) for j in range(1, count + 1)]


def marginal_variance(total_variance: float, tau: float) -> float:
    """Marginal noise variance of one upload: `(2 + tau^2) sigma_k^2`; it does not determine privacy (E-N04)."""
    return (2.0 + tau**2) * total_variance


def colluding_variance(total_variance: float, tau: float, colluding: float) -> float:
    """Marginal variance unknown to a colluding fraction of the peers (Theorem 3): `(tau^2 + 2(1-rho)) sigma_k^2`."""
    return (tau**2 + 2.0 * (1.0 - colluding)) * total_variance


def least_tau2(colluding: float) -> float:
    """The least tau^2 that Theorem 3 requires: `max(2 rho - 1, 0)`."""
    # Solves tau^2 + 2 (1 - rho) >= 1: below half of the peers the other shares suffice.
    return max(2.0 * colluding - 1.0, 0.0)


def residual_variance(shares: Sequence[Share], lost: Collection[int], unit_variance: float, tau: float) -> float:
    """Returns the variance of the sum of all uploads if the `lost` clients drop out after the exchange.

    Per share, in units: tau^2 if both ends upload, 1 + tau^2 if only the receiver does, 1 if only the sender, else 0.
    """
    gone = set(lost)
    units = 0.0
    for sender, receiver in shares:
        # A half that lost its counterpart stays with its whole variance.
        units += (sender not in gone) != (receiver not in gone)
        # The factor's spread is in the receiver's upload, whether the sender's half arrived or not.
        units += tau**2 * (receiver not in gone)
    return unit_variance * units


def expected_residual_variance(cohort: int, count: int, unit_variance: float, tau: float, lost: int) -> float:
    """Returns the expected residual variance over uniformly drawn receivers if `lost` of the cohort drop out."""
    kept = cohort - lost
    # Counts ordered pairs: both ends kept, then receiver only, then sender only.
    both, one = kept * (kept - 1) * tau**2, lost * kept * (1.0 + tau**2) + kept * lost
    return unit_variance * count * (both + one) / (cohort - 1)


def upload_covariance(
    shares: Sequence[Share], multipliers: Sequence[float], cohort: int, unit_variance: float, independent: float
) -> NDArray[np.float64]:
    """Returns the covariance of the noise in all uploads given the multipliers, plus `independent` variance on each."""
    rows = np.zeros((len(shares), cohort))
    for index, ((sender, receiver), multiplier) in enumerate(zip(shares, multipliers, strict=True)):
        rows[index, sender] += 1.0
        rows[index, receiver] -= multiplier
    covariance: NDArray[np.float64] = unit_variance * rows.T @ rows + independent * np.eye(cohort)
    return covariance


def joint_mu(covariance: NDArray[np.float64], sensitivity: float, client: int) -> float:
    """Returns mu of a client against an observer of all uploads who knows the others' updates and all multipliers.

    `sensitivity sqrt(e_k' cov^-1 e_k)`; infinite if some combination of uploads reveals the client without noise.

    Guarantees:
        exact given the multipliers; revealing them is conservative, since they do not depend on data.
    """
    values, vectors = np.linalg.eigh(covariance)
    # Squared weights of the client's unit vector on each principal direction; they sum to 1.
    parts = np.square(vectors[client])
    # Relative to the largest eigenvalue: `eigh` gives a zero eigenvalue only up to rounding. A client with weight in
    # that null space is visible without noise.
    null = values <= values[-1] * len(values) * 1e-13
    if parts[null].sum() > 1e-12:
        return math.inf
    return sensitivity * math.sqrt(float((parts[~null] / values[~null]).sum()))


def collusion_tail(others: int, colluders: int, count: int, at_least: int) -> float:
    """Returns the probability that at least `at_least` of a client's `count` random peers collude (hypergeometric)."""
    from scipy.stats import hypergeom

    # `sf(k)` is the probability of more than k.
    return float(hypergeom.sf(at_least - 1, others, colluders, count))


def collusion_quantile(others: int, colluders: int, count: int, quantile: float) -> int:
    """Returns the quantile of the number of colluders among `count` distinct random peers (E-N07)."""
    from scipy.stats import hypergeom

    return int(hypergeom.ppf(quantile, others, colluders, count))
