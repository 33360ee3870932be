"""Wei et al. (2020): the moment bound, the noise for a budget, the number of rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privacy.calc import CALC
from scenarios.reproductions.formulas.refutation import number, refuted
from scenarios.reproductions.verdict import Part, Verdict, judge


def moment_bound() -> Verdict:
    """S1-F3. Refuted if the exact moment exceeds bound (39) at a point of the figure, for a norm that may be meant.

    The clip norm is not stated: 1 and 0.04 are tried. Exact: the log moment of the sampled Gaussian at integer orders,
    by its binomial sum.
    """
    parts = []
    for norm in (1.0, 0.04):
        for panel, q, records in (("a and d", 0.9, 128), ("b", 0.1, 128), ("c", 0.9, 64)):
            ratio = 2.0 * norm / records / 0.01
            above = sum(
                _exact_moment(order, q, ratio) > q * order * (order + 1) * ratio**2 / 2 + 1e-12
                for order in range(1, 101, 5)
            )
            statement = f"C {norm:g}, panel {panel}: the bound is above the exact moment"
            parts.append(Part(statement, above == 0, f"exceeded at {above} of 20 orders"))
    verdict = refuted(parts, "with C = 1 the exact moment exceeds the bound at 19 or 20 of 20 orders of every panel")
    return replace(verdict, readings=("C = 1", "C = 0.04, for which it holds"))


def _exact_moment(order: int, q: float, ratio: float) -> float:
    from scipy.special import gammaln, logsumexp

    alpha = order + 1
    k = np.arange(alpha + 1)
    choose = gammaln(alpha + 1) - gammaln(k + 1) - gammaln(alpha - k + 1)
    terms = choose + (alpha - k) * math.log1p(-q) + k * math.log(q) + k * (k - 1) * ratio**2 / 2
    return float(logsumexp(terms))


def noise_for_a_budget() -> Verdict:
    """S1-C1. Refuted if the exact epsilon of T releases with the printed sigma exceeds the target.

    A client that is drawn in all rounds releases T times, and the server knows who is drawn.
    """
    parts = []
    for q, epsilon in ((1.0, 4.0), (0.6, 4.0), (0.6, 8.0), (0.6, 10.0)):
        found = CALC["cdp_sigma"](q=q, Delta=2 / 128, T=200, epsilon=epsilon, delta=0.01)
        exact = number(found, "eps_exact_T_releases")
        detail = f"q {q:g}, epsilon {epsilon:g}: exact {exact:.3g}"
        parts.append(Part("T releases are within the target", exact <= epsilon, detail))
    failed = [part.measured for part in parts if not part.holds]
    return refuted(parts, f"a client that is drawn in every round spends more: {failed[0]}") if failed else judge(parts)


def unchanged_rounds_keep_sigma() -> Verdict:
    """S1-C3. The claim holds if sigma stays as it is while the loss falls, and changes with T."""
    falling = _crd([2.0 - 0.1 * step for step in range(12)])
    rising = _crd([2.0, 1.9, 2.1, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3, 1.2, 1.1, 1.0])
    steady = len({round(value, 12) for value in falling}) == 1
    parts = [
        Part("an unchanged T leaves sigma unchanged", steady, f"{len(falling)} rounds at sigma {falling[0]:.4g}"),
        Part("a discounted T changes sigma", rising[-1] < rising[0], f"from {rising[0]:.4g} to {rising[-1]:.4g}"),
    ]
    return judge(parts)


def _crd(losses: Sequence[float]) -> list[float]:
    found = CALC["crd_sequence"](
        rounding="literal", epsilon=4.0, delta=0.01, q=1.0, Delta=2 / 128, T0=10, beta=0.9, losses=list(losses)
    )
    sigmas: Any = found["sigma"]
    return [float(value) for value in sigmas]


def order_of_divergences() -> Verdict:
    """S1-C4. The claim holds if D(mixture || base) >= D(base || mixture) at every point of a grid.

    Grid: orders 2 to 32, q 0.01 to 0.9, deviations 0.5 to 4; integrals by the trapezoid rule. A grid is no proof; the
    statement is proved by Mironov, Talwar and Zhang (2019).
    """
    least = math.inf
    for q in (0.01, 0.1, 0.5, 0.9):
        for sigma in (0.5, 1.0, 2.0, 4.0):
            for order in (2, 4, 8, 16, 32):
                least = min(least, _divergence(q, sigma, order, True) - _divergence(q, sigma, order, False))
    return judge(
        [Part("the moment of the mixture dominates on the grid", least >= -1e-9, f"least difference {least:.2g}")]
    )


def _divergence(q: float, sigma: float, order: int, of_mixture: bool) -> float:
    from scipy.special import logsumexp

    z = np.linspace(-40 * sigma - 40, 40 * sigma + 40, 40_001)
    base = -(z**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
    shifted = -((z - 1) ** 2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
    mixture = np.logaddexp(math.log1p(-q) + base, math.log(q) + shifted)
    top, bottom = (mixture, base) if of_mixture else (base, mixture)
    return float(logsumexp(order * top - (order - 1) * bottom) + math.log(z[1] - z[0])) / (order - 1)


def optimal_rounds_of_the_bound() -> Verdict:
    """S1-C2. The claim holds if the bound of Theorem 2 is least at a finite T above one, and convex up to there.

    A^T X + (1 - A^T)(a T + b) with A 0.95 or 0.99, X = ln 10, b = 0 (all clients), a = kappa0 K / (U^2 eps^2) as
    printed, or kappa0 d / (U eps^2) with the d that is missing there; kappa0 = (2/128)^2, U = K = 50, d = 25,450,
    epsilon 4, 8, 16. The constants of the paper are not stated. T up to 10,000 is searched; one reading suffices.
    """
    parts = [
        _rounds_part(reading, decay, epsilon, (2 / 128) ** 2 * slope / epsilon**2)
        for reading, slope in (("as printed", 1 / 50), ("with d", 25_450 / 50))
        for decay in (0.95, 0.99)
        for epsilon in (4.0, 8.0, 16.0)
    ]
    return judge(parts, ("as printed", "with the dimension that the noise has"))


def _rounds_part(reading: str, decay: float, epsilon: float, slope: float) -> Part:
    rounds = np.arange(1, 10_001)
    value = decay**rounds * math.log(10) + (1 - decay**rounds) * slope * rounds
    best = int(rounds[np.argmin(value)])
    bend = float(np.diff(value[: best + 1], 2).min()) if best > 1 else math.nan
    statement = f"A {decay:g}, epsilon {epsilon:g}: a finite best T, convex up to it"
    detail = f"least at T {best}, least second difference up to there {bend:.2g}"
    return Part(statement, 1 < best < 10_000 and bend > 0, detail, reading=reading)
