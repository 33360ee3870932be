"""Upper bounds on membership inference against (epsilon, delta)-DP training."""

from __future__ import annotations

import math


def max_balanced_accuracy(epsilon: float, delta: float) -> float:
    """`(e^eps + delta) / (1 + e^eps)`, members and non-members equally likely.

    Guarantees:
        a measured accuracy above it refutes the epsilon (Kairouz, Oh & Viswanath 2015).
    """
    exp_neg = math.exp(-epsilon)  # with the negative exponent a large epsilon cannot overflow
    return (1.0 + delta * exp_neg) / (1.0 + exp_neg)


def max_advantage(epsilon: float, delta: float) -> float:
    """The largest true positive rate minus false positive rate: `(e^eps - 1 + 2 delta) / (e^eps + 1)`."""
    exp_neg = math.exp(-epsilon)
    return (-math.expm1(-epsilon) + 2.0 * delta * exp_neg) / (1.0 + exp_neg)
