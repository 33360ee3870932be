"""NISS: residual noise, collusion, doubled variances, average gain."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from privacy.calc import CALC
from scenarios.reproductions.formulas.refutation import number, refuted
from scenarios.reproductions.published_results import find_result
from scenarios.reproductions.verdict import Part, Verdict, judge


def residual_noise() -> Verdict:
    """S2-C2. The claim holds if the residual variance is nothing at tau = 0 and sigma_k^2 per client at tau = 1.

    By the paper's formula, and by drawing 4,000 exchanges of ten clients with seven partners each.
    """
    parts = []
    for tau, expected in ((0.0, 0.0), (1.0, 0.7)):
        basic = CALC["niss_basic"](m=10, sigma_k2=0.07, unit_variance=0.01, tau=tau, rho=0.0)
        stated = number(basic, "aggregate_variance")
        drawn = _drawn_residual(tau)
        near = abs(stated - expected) < 1e-9 and abs(drawn - expected) < 0.05
        parts.append(
            Part(f"tau {tau:g}: residual variance {expected:g}", near, f"formula {stated:.3g}, drawn {drawn:.3g}")
        )
    return judge(parts)


def _drawn_residual(tau: float) -> float:
    from p2p.random_streams import stream

    random, clients, partners = stream(1, "reproduction", "S2-C2"), 10, 7
    shares = 0.1 * random.standard_normal((4000, clients, partners))
    # The partner subtracts the share times a factor of mean one and deviation tau.
    factors = 1 + tau * random.standard_normal((4000, clients, partners))
    return float(np.var((shares * (1 - factors)).sum(axis=(1, 2))))


def colluding_partners() -> Verdict:
    """S2-C3. Refuted if a server that sees all uploads of a round at tau = 0 learns a client's update without noise.

    At tau = 0 every factor is one, the noises of all uploads sum to zero, and half of the partners need not collude.
    """
    clients, partners = 6, 3
    found = CALC["niss_joint_view"](
        graph="circulant",
        m=clients,
        v=partners,
        unit_variance=0.01,
        s=[1.0] * (clients * partners),
        sensitivity=1.0,
        independent_variance=0.0,
        client=0,
    )
    mu = number(found, "mu")
    finite = math.isfinite(mu)
    tail = CALC["niss_collusion_tail"](other_clients=99, colluders=40, v=7, at_least=4)
    parts = [
        Part("the server's view of all uploads is protected by noise", finite, f"mu {mu}"),
        Part(
            "with 40 of 99 colluding, more than half of a client's 7 partners do so with probability below 0.01",
            number(tail, "prob_at_least") < 0.01,
            f"probability {number(tail, 'prob_at_least'):.3g}",
        ),
    ]
    return refuted(
        parts, "the uploads' noises sum to zero, so the exact sum is released: epsilon is infinite without colluders"
    )


def doubled_noise() -> Verdict:
    """S2-C4. Refuted if doubling the variance divides epsilon by less than two, by the paper's own formula."""
    basic = CALC["niss_basic"](m=10, sigma_k2=0.07, unit_variance=0.01, tau=0.0, rho=0.0)
    factor = number(basic, "eps_factor_when_variance_doubles")
    part = Part("doubled variance halves epsilon", factor <= 0.5, f"factor {factor:.4f}")
    return refuted(
        [part], "epsilon is inversely proportional to the deviation, so a doubled variance divides it by sqrt 2"
    )


def average_gain() -> Verdict:
    """S2-C1. The claim holds if 19 is the mean of the middles of the ranges that Figure 3 is printed with, rounded."""
    ends: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in find_result("S2-F3").rows:
        ends[str(row["dataset"]), str(row["split"])].append(float(row["value"]))
    mean = sum(sum(pair) / len(pair) for pair in ends.values()) / len(ends)
    detail = f"mean {100 * mean:.1f} over {len(ends)} ranges"
    part = Part("the printed ranges have a mean of 19%", round(100 * mean) == 19, detail)
    return judge([part], ("averaged over the four ranges of Figure 3; the paper does not say over what",))
