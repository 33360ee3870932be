"""Receiver operating characteristic of scores: a larger score says "member" more strongly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """True and false positive rates at every threshold, from (0, 0) to (1, 1); equal scores go together."""

    fpr: Scores
    tpr: Scores

    def area(self) -> float:
        """Returns the area under the curve: the probability that a member outscores a non-member, ties half."""
        return float(np.trapezoid(self.tpr, self.fpr))

    def tpr_at(self, fpr: float) -> float:
        """Returns the largest true positive rate at a false positive rate of at most `fpr`, without interpolation.

        Below one over the number of non-members this is the rate with no false positive at all.
        """
        return float(self.tpr[self.fpr <= fpr].max())


def roc_of(members: Scores, others: Scores) -> Roc:
    """Returns the curve of the scores of members and of non-members; NaN scores count as lowest."""
    scores = np.nan_to_num(np.concatenate([members, others]), nan=-np.inf)
    is_member = np.arange(len(scores)) < len(members)
    order = np.argsort(-scores, kind="stable")
    # A threshold cannot separate equal scores, so the curve has a point only where the score changes.
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits = np.cumsum(is_member[order])[last]
    fpr, tpr = (last + 1 - hits) / len(others), hits / len(members)
    return Roc(np.concatenate([[0.0], fpr]), np.concatenate([[0.0], tpr]))


def best_threshold(members: Scores, others: Scores) -> float:
    """Returns the threshold with the best balanced accuracy of "member iff score > threshold"; the lowest of equals."""
    values = np.unique(np.concatenate([members, others]))
    # Between neighbouring scores, and below all of them.
    cuts = np.concatenate([[values[0] - 1.0], (values[1:] + values[:-1]) / 2.0])
    below_members = np.searchsorted(np.sort(members), cuts, side="right") / len(members)
    below_others = np.searchsorted(np.sort(others), cuts, side="right") / len(others)
    return float(cuts[np.argmax(below_others - below_members)])


def upper_half(scores: Scores) -> NDArray[np.bool_]:
    """Guesses "member" for the higher half of the scores: the rule of an adversary that knows only the coin's odds."""
    guessed = np.zeros(len(scores), dtype=np.bool_)
    # Stable, so that ties are broken by the order of records, which says nothing about membership.
    guessed[np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[: len(scores) // 2]] = True
    return guessed
