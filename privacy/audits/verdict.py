"""From scores of canaries to lower bounds on epsilon, each with what this number of canaries can reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.curves.gaussian import epsilon_of
from privacy.audits.one_run import one_run_epsilon, one_run_mu
from privacy.audits.repeated_runs import repeated_ceiling, repeated_epsilon

Scores = NDArray[np.float64]
SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
"""Shares of the canaries that are guessed, those with the largest scores; tried side by side, and paid for."""
METHODS = 3
LEAST_RUNS = 8
"""Runs below which repeated runs prove nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryScores:
    """Scores of one view: a row for each run, a column for each canary.

    Attributes:
        scores: larger for +v; NaN where the view got nothing of a canary
        coins: +1 or -1
    """

    scores: Scores
    coins: Scores


def lower_bounds(found: CanaryScores, delta: float, error: float, *, gaussian: bool) -> dict[str, Any]:
    """Returns the bound of each method, and the best; together they are wrong with probability at most `error`.

    Args:
        gaussian: whether the view is proved to be dominated by a Gaussian mechanism.
    """
    # Divided even where a method is not tried, so that the bound of one does not depend on the others.
    each = error / METHODS
    methods = {"one run": _one_run(found, delta, each, gaussian=False)}
    if gaussian:
        methods["one run, Gaussian"] = _one_run(found, delta, each, gaussian=True)
    if len(found.scores) >= LEAST_RUNS:
        methods["repeated runs"] = _repeated(found, delta, each)
    best = max(methods, key=lambda name: methods[name]["epsilon"])
    return {
        "epsilon": methods[best]["epsilon"],
        "by": best,
        "ceiling": max(one["ceiling"] for one in methods.values()),
        "methods": methods,
        "estimate": _estimate(found, delta),
    }


def _one_run(found: CanaryScores, delta: float, error: float, *, gaussian: bool) -> dict[str, Any]:
    """Returns the best bound over the shares of canaries that are guessed."""
    seen = ~np.isnan(found.scores)
    total = int(seen.sum())
    if not total:
        return {"epsilon": 0.0, "canaries": 0, "guesses": 0, "right": 0, "ceiling": 0.0}
    bounds = []
    for share in SHARES:
        guesses, right = _guess(found, seen, share)
        bound = _bound(total, guesses, right, delta, error / len(SHARES), gaussian)
        # Canaries that are not guessed count too: delta may fall on any of them.
        bounds.append({"epsilon": bound, "canaries": total, "guesses": guesses, "right": right})
    # All coins guessed right is the most that this number of canaries can show.
    ceiling = _bound(total, total, total, delta, error / len(SHARES), gaussian)
    return {**max(bounds, key=lambda one: one["epsilon"]), "ceiling": ceiling}


def _bound(canaries: int, guesses: int, right: int, delta: float, error: float, gaussian: bool) -> float:
    if not guesses:
        return 0.0
    if gaussian:
        mu = one_run_mu(canaries, guesses, right, error)
        return epsilon_of(mu, delta) if mu > 0.0 else 0.0
    return one_run_epsilon(canaries, guesses, right, delta, error)


def _guess(found: CanaryScores, seen: NDArray[np.bool_], share: float) -> tuple[int, int]:
    """Returns how many coins are guessed, a fixed number in each run, and how many of the guesses are right."""
    guesses, right = 0, 0
    for scores, coins, there in zip(found.scores, found.coins, seen, strict=True):
        number = int(np.ceil(share * np.count_nonzero(there)))
        places = np.flatnonzero(there)
        # The largest absolute scores are the surest; how many are guessed is fixed beforehand, as the proof asks.
        chosen = places[np.argsort(-np.abs(scores[places]), kind="stable")[:number]]
        guesses += number
        right += int(np.count_nonzero(np.sign(scores[chosen]) == coins[chosen]))
    return guesses, right


def _repeated(found: CanaryScores, delta: float, error: float) -> dict[str, Any]:
    """Returns the bound from one canary's scores over all runs; canaries of one run are not independent."""
    # Which canaries the view sees does not depend on coins: no event does.
    always = np.flatnonzero(~np.isnan(found.scores).any(axis=0))
    if not len(always):
        return {"epsilon": 0.0, "runs": len(found.scores), "ceiling": 0.0}
    scores, coins = found.scores[:, always[0]], found.coins[:, always[0]]
    without, with_it = scores[coins < 0], scores[coins > 0]
    epsilon = repeated_epsilon(without, with_it, delta, error)
    ceiling = repeated_ceiling(len(without), len(with_it), delta, error)
    return {"epsilon": epsilon, "runs": len(scores), "ceiling": ceiling}


def _estimate(found: CanaryScores, delta: float) -> float | None:
    """Estimates epsilon from client canaries as Andrew et al. 2024 do: scores are taken as normal. No bound.

    They compare sent with unsent canaries, which is adding a client. Here +v is compared with -v, as in all figures of
    this product, so that means are two apart instead of one.
    """
    # Times its coin, a right score is positive whichever side was sent.
    right = (found.scores * found.coins)[~np.isnan(found.scores)]
    if len(right) < 3 or not np.std(right, ddof=1) > 0.0:
        return None
    mu = 2.0 * float(np.mean(right)) / float(np.std(right, ddof=1))
    return epsilon_of(mu, delta) if mu > 0.0 else 0.0
