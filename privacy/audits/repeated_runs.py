"""Lower bounds on epsilon from repeated runs, each with one of two neighbouring inputs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privacy.audits.exact_limits import upper_limit

Scores = NDArray[np.float64]
LEVELS = np.concatenate([np.linspace(0.01, 0.99, 80), 1.0 - np.logspace(-2.1, -4.5, 40)])
"""Quantiles of the scores that are tried as thresholds."""
_DIRECTIONS = 4
"""Thresholds that are tested: either side, above or below."""


def repeated_epsilon(without: Scores, with_it: Scores, delta: float, error: float) -> float:
    """Returns the epsilon that scores of two neighbouring inputs refute, each score from a run of its own.

    Thresholds are chosen on one half and tested on the other, by Clopper-Pearson limits on both error rates:
    epsilon >= ln((1 - delta - FNR)/FPR). Wrong with probability at most `error`.
    """
    half_out, half_in = len(without) // 2, len(with_it) // 2
    if not half_out or not half_in:
        return 0.0
    best = 0.0
    for out, inside, first, second in (
        (without, with_it, half_out, half_in),
        (with_it, without, half_in, half_out),
    ):
        for sign in (1.0, -1.0):
            # Chosen on the first half only: on the same scores that test it, its error rates would look too small.
            threshold = _threshold(sign * out[:first], sign * inside[:second], delta)
            level = error / _DIRECTIONS / 2
            false = upper_limit(int(np.count_nonzero(sign * out[first:] > threshold)), len(out) - first, level)
            missed = upper_limit(
                int(np.count_nonzero(sign * inside[second:] <= threshold)), len(inside) - second, level
            )
            if 1.0 - missed - delta > 0.0:
                best = max(best, math.log((1.0 - missed - delta) / false))
    return best


def repeated_ceiling(without: int, with_it: int, delta: float, error: float) -> float:
    """Returns what so many runs with each input can prove at most; coins hardly ever divide them equally."""
    level = error / _DIRECTIONS / 2
    # A half of each chooses thresholds, the other tests them.
    one, other = (upper_limit(0, count - count // 2, level) if count > 1 else 1.0 for count in (without, with_it))
    # Either input may be the one whose runs are never taken for the other's.
    found = ((1.0 - missed - delta, false) for missed, false in ((one, other), (other, one)))
    return max(math.log(hit / false) if hit > false else 0.0 for hit, false in found)


def _threshold(out: Scores, inside: Scores, delta: float) -> float:
    candidates = np.quantile(np.concatenate([out, inside]), LEVELS)
    # Five runs of slack on each rate: a threshold that only one score has passed seldom holds on the other half.
    false = np.array([(out > one).mean() for one in candidates]) + 5.0 / len(out)
    found = np.array([(inside > one).mean() for one in candidates]) - 5.0 / len(out) - delta
    return float(candidates[np.argmax(np.where(found > 0, found, 1e-12) / false)])
