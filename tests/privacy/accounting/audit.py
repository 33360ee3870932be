"""Lower bounds on epsilon from samples of a mechanism's output under two neighbouring inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy.audits.repeated_runs import repeated_epsilon
from tests.privacy.accounting.oracle import Form, Members, Round, weights_of

Scores = NDArray[np.float64]
FAMILY_ERROR = 1e-6
"""Probability that any audit of the suite refutes a true figure."""
AUDITS = 200
"""How many audits share that error, at most: two for each scenario of the catalog, and some dozens."""


def lower_epsilon(without: Scores, with_it: Scores, delta: float) -> float:
    """The epsilon that these scores refute, at the family's level."""
    return repeated_epsilon(without, with_it, delta, FAMILY_ERROR / AUDITS)


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
