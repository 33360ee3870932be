"""Lower bounds on epsilon from samples of a mechanism's output under two neighbouring inputs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from tests.privacy.accounting.oracle import Form, Members, Round, weights_of

Scores = NDArray[np.float64]
FAMILY_ERROR = 1e-3
"""Probability that any audit of the suite refutes a true figure."""
AUDITS = 40
"""How many audits share that error, at most."""


LEVELS = np.concatenate([np.linspace(0.01, 0.99, 80), 1.0 - np.logspace(-2.1, -4.5, 40)])
"""Quantiles of the scores that are tried as thresholds."""


def lower_epsilon(without: Scores, with_it: Scores, delta: float) -> float:
    """The epsilon that these scores refute: thresholds are chosen on one half and tested on the other.

    Clopper-Pearson limits on both error rates at the family's level, in the better of the two directions.
    """
    half = len(without) // 2
    level = FAMILY_ERROR / AUDITS / 4
    best = 0.0
    for out, inside in ((without, with_it), (with_it, without)):
        for sign in (1.0, -1.0):
            threshold = _threshold(sign * out[:half], sign * inside[:half], delta)
            false = _upper(int(np.count_nonzero(sign * out[half:] > threshold)), len(out) - half, level)
            missed = _upper(int(np.count_nonzero(sign * inside[half:] <= threshold)), len(inside) - half, level)
            if 1.0 - missed - delta > 0.0:
                best = max(best, math.log((1.0 - missed - delta) / false))
    return best


def _threshold(out: Scores, inside: Scores, delta: float) -> float:
    candidates = np.quantile(np.concatenate([out, inside]), LEVELS)
    false = np.array([(out > one).mean() for one in candidates]) + 5.0 / len(out)
    found = np.array([(inside > one).mean() for one in candidates]) - 5.0 / len(out) - delta
    return float(candidates[np.argmax(np.where(found > 0, found, 1e-12) / false)])


def _upper(count: int, trials: int, level: float) -> float:
    return 1.0 if count == trials else float(beta.ppf(1.0 - level, count + 1, trials - count))


def observed_scores(
    one: Round, rows: list[int], team: set[int], target: int, *, sums: bool, trials: int, rng: np.random.Generator
) -> tuple[Scores, Scores]:
    """Scores of an observer of one round, without and with the target's move; noise is drawn, not computed.

    One coordinate is enough: the noise of others is independent of it. The score projects what is seen on the
    difference of the two inputs, whitened by the covariance of a sample of noise.
    """
    names = list(one.variances)
    hidden = np.array([not any((node, name) in one.known for node in team) for name in names])
    drawn = rng.standard_normal((2, trials, len(names))) * np.sqrt([one.variances[name] for name in names]) * hidden
    forms: list[tuple[Members, Form]] = [*(([row], {}) for row in rows), *(one.sums if sums else [])]
    seen = np.zeros((2, trials, len(forms)))
    moves = np.zeros(len(forms))
    for place, (members, extra) in enumerate(forms):
        factors = np.array([extra.get(name, 0.0) for name in names])
        for row, weight in weights_of(members).items():
            factors = factors + weight * np.array([one.releases[row].noise.get(name, 0.0) for name in names])
            moves[place] += weight * one.releases[row].sensitivity * (one.releases[row].client == target)
        seen[:, :, place] = drawn @ factors
    covariance = np.cov(seen[0], rowvar=False).reshape(len(forms), -1)
    weights = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ moves
    return seen[0] @ weights, seen[1] @ weights + float(moves @ weights)
