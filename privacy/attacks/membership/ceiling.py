"""What a stated epsilon allows a membership attack to reach, and whether a measurement contradicts it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from privacy.audits.one_run import p_value
from privacy.papers.membership_bounds import max_balanced_accuracy

Verdict = Literal["within the ceiling", "exceeds the ceiling in this run", "falsified"]
LEVEL = 0.05
"""Probability of calling any true epsilon of a run falsified."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A stated guarantee: (epsilon, delta), and what says so."""

    name: str
    epsilon: float
    delta: float

    def accuracy(self) -> float:
        """Returns the largest expected balanced accuracy; 1 for an infinite epsilon."""
        return max_balanced_accuracy(self.epsilon, self.delta) if math.isfinite(self.epsilon) else 1.0

    def tpr_at(self, fpr: float) -> float:
        """Returns the largest expected true positive rate at a false positive rate."""
        if not math.isfinite(self.epsilon):
            return 1.0
        # Both sides of the hypothesis test: members may be missed, or non-members accused.
        by_false = math.exp(min(self.epsilon, 700.0)) * fpr + self.delta
        by_missed = 1.0 - math.exp(-self.epsilon) * (1.0 - self.delta - fpr)
        return min(1.0, by_false, by_missed)


def judge(claim: Claim, accuracy: float, right: int, pairs: int, before: int, comparisons: int) -> Verdict:
    """Returns what a measurement says about a claim.

    An accuracy above the ceiling may be luck. The claim is falsified if so many right guesses of fair coins have a
    small probability under it (Steinke, Nasr & Jagielski 2023), corrected for everything tried on the run.

    Args:
        accuracy: balanced accuracy.
        right: in how many of `pairs` the member was guessed; a coin had picked it.
        before: comparisons that were made on this run earlier.
        comparisons: comparisons that are made now, this one included.
    """
    if p_value(pairs, pairs, right, claim.epsilon, claim.delta) < level_of(before, comparisons):
        return "falsified"
    return "exceeds the ceiling in this run" if accuracy > claim.accuracy() else "within the ceiling"


def level_of(before: int, comparisons: int) -> float:
    """Returns the level of each of the next comparisons, however many may follow.

    Comparison n gets `LEVEL / (n (n+1))`, which sums to LEVEL over all n; those made together share theirs equally.
    """
    return LEVEL / ((before + 1) * (before + comparisons + 1))
