"""Zero-concentrated differential privacy, and filters: budgets that hold although what is spent depends on outputs."""

from __future__ import annotations

import math


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Returns epsilon of a rho-zCDP mechanism, `rho + 2 sqrt(rho ln(1/delta))` (Bun & Steinke 2016)."""
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def zcdp_budget(epsilon: float, delta: float) -> float:
    """Returns the rho whose `zcdp_epsilon` is epsilon: `(sqrt(L + epsilon) - sqrt(L))^2` with L = ln(1/delta).

    Guarantees:
        A filter that stops before the sum of rho passes this, with noise chosen from earlier outputs, is
        (epsilon, delta)-DP (Feldman & Zrnic 2021). The sum that was realised is no such bound, since it is an output.
    """
    log = math.log(1.0 / delta)
    # Rationalised: the difference of square roots would cancel for small epsilon.
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2
