"""The most any membership inference can achieve against an (epsilon, delta)-DP training."""

from __future__ import annotations

import math


def max_balanced_accuracy(epsilon: float, delta: float) -> float:
    """`(e^eps + delta) / (1 + e^eps)`, members and non-members equally likely.

    Guarantees:
        a measured accuracy above it refutes the epsilon (Kairouz, Oh & Viswanath 2015).
    """
    shrink = math.exp(-epsilon)
    return (1.0 + delta * shrink) / (1.0 + shrink)


def max_advantage(epsilon: float, delta: float) -> float:
    """The largest true positive rate minus false positive rate: `(e^eps - 1 + 2 delta) / (e^eps + 1)`."""
    shrink = math.exp(-epsilon)
    return (-math.expm1(-epsilon) + 2.0 * delta * shrink) / (1.0 + shrink)
