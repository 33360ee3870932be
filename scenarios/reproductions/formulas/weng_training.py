"""Weng (2025), chapter 3: accountants, sparsity, Fed-nore."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privacy.calc import CALC
from scenarios.reproductions.formulas.refutation import number, refuted
from scenarios.reproductions.verdict import Part, Verdict, judge


def central_accountant_stops_first() -> Verdict:
    """S0-C3.2. The claim holds if the local epsilon is within 8 when the central one passes 8, at both sizes.

    Readings are the paper's own: local q = 1/M, one step per participant; central q = m/M, one step per round.
    The local budget of LCDP-FL is not stated and is taken as the central one.
    """
    parts = []
    for clients, cohort, sigma_cdp, delta in ((100, 50, 1.18, 1e-3), (1000, 220, 1.43, 1e-5)):
        rounds = 1
        while _thesis_epsilon(cohort / clients, sigma_cdp, rounds, 1, delta) <= 8 and rounds < 200:
            rounds += 1
        local = _thesis_epsilon(1 / clients, 2.0, rounds, cohort, delta)
        statement = f"with {clients} clients the central accountant ends first"
        parts.append(
            Part(statement, local <= 8, f"central passes 8 in round {rounds}, the local epsilon then is {local:.3g}")
        )
    return judge(parts, ("local budget of LCDP-FL: that of the server",))


def _thesis_epsilon(q: float, sigma: float, rounds: int, each: int, delta: float) -> float:
    found = CALC["thesis_moments_accountant"](
        mode="eps", q=q, sigma=sigma, rounds=rounds, releases_per_round=each, steps=rounds * each, delta=delta
    )
    return number(found, "eps")


def sparsity_saves_nine_tenths() -> Verdict:
    """S0-C3.1. The claim is about traffic: it holds if an upload of the largest tenth takes a tenth of the bytes.

    Values take 4 bytes; which values they are must be said, by a bit for each place or by a number for each value kept.
    """
    dimension, kept = 199_210, 19_921
    bitmap, numbers = dimension, kept * math.ceil(math.log2(dimension))
    share = (32 * kept + min(bitmap, numbers)) / (32 * dimension)
    values = Part("a tenth of the values is sent", kept / dimension <= 0.1, f"{kept} of {dimension}")
    sent = Part(
        "an upload takes at most a tenth of the bytes", share <= 0.1, f"{share:.3f} with a bitmap of the places"
    )
    return judge([values, sent])


def budgets_of_table_3_1() -> Verdict:
    """S0-T3.1, its budgets. The claim holds if the printed rounds are within each printed (epsilon, delta).

    The accountant is the thesis's own: rate 1/M and one step per participant for the local budget, rate m/M and one
    step per round for the central one. A hundredth more than the printed delta counts as within it.
    """
    parts = []
    for name, rate, sigma, rounds, each, epsilon, delta in _BUDGETS:
        found = CALC["thesis_moments_accountant"](
            mode="delta", q=rate, sigma=sigma, rounds=rounds, releases_per_round=each, epsilon=epsilon
        )
        exponent = number(found, "log10_delta")
        held = exponent <= math.log10(1.01 * delta)
        detail = f"delta {10.0**exponent:.3g} at epsilon {epsilon:g}, printed {delta:g}"
        parts.append(Part(f"{name}: {rounds} rounds are within the budget", held, detail))
    return judge(parts, ("rates and steps of the thesis's accountants",))


_BUDGETS = (
    ("LDP-FL, 100 clients", 1 / 100, 8.0, 52, 50, 0.5, 1e-6),
    ("LDP-FL, 1000 clients", 1 / 1000, 2.0, 63, 220, 0.5, 1e-6),
    ("LCDP-FL, 100 clients, local", 1 / 100, 2.0, 11, 50, 8.0, 1.07e-107),
    ("LCDP-FL, 1000 clients, local", 1 / 1000, 2.0, 54, 220, 8.0, 4e-111),
    ("LCDP-FL, 100 clients, central", 0.5, 1.18, 11, 1, 8.0, 1e-3),
    ("LCDP-FL, 1000 clients, central", 0.22, 1.43, 54, 1, 8.0, 1e-5),
)
"""Name, rate, sigma, rounds, steps per round, epsilon and delta as printed in Table 3.1."""


def noise_floor_of_fednore() -> Verdict:
    """S0-C3.4. Refuted if a norm is bounded by a negative number, or if the printed Fed-nore-2 trains as plain does.

    (3.28): E||N|| <= q1 = sigma / sqrt(n) (lambda sigma n^1.5 - beta), and the floor of (3.26) is
    beta q1 (1 - l1 rho) + rho q1^2 / 2. With sigma 8, n 600 of the thesis, gradient bound beta = 1, rho = 1, and a
    first loss of ln 10, that of guessing among ten classes.
    """
    plain, chosen = _noise_bound(0.0), _noise_bound(1.0)
    floor = chosen**2 / 2
    weights: Any = CALC["fednore2_loss"](a_p=[0.1, 0.5, 0.9], lam=0.1, sigma=8, n=600)["printed_gradient_weight"]
    same = all(weight == 1.0 for weight in weights)
    parts = [
        Part("the bound on the norm of the noise is not negative at lambda 0", plain >= 0, f"q1 = {plain:.3g}"),
        Part("the floor at lambda 1 is below the first loss", floor < math.log(10), f"{floor:.3g} against 2.3"),
        Part("Fed-nore-2 as printed changes the gradient", not same, "its factor is 1 for every sample"),
    ]
    return refuted(parts, "at lambda = 0 the norm of the noise is bounded by a negative number", ("beta 1, rho 1",))


def _noise_bound(factor: float, sigma: float = 8.0, records: int = 600, gradient: float = 1.0) -> float:
    return sigma / math.sqrt(records) * (factor * sigma * math.pow(records, 1.5) - gradient)


def drop_outs_by_budget() -> Verdict:
    """S0-C3.6. Refuted if, with two budgets, those that remain are not a fair sample of all clients.

    Of 100 clients half may take part 5 times and half 10 times; 50 of those that remain are drawn in each round. Fair:
    the share of the first half among the remaining stays within 0.1 of a half while at least 20 remain.
    """
    parts = []
    for name, budgets in (("one budget", (10, 10)), ("two budgets", (5, 10))):
        worst = _least_share(budgets)
        statement = f"{name}: the remaining clients are a fair sample"
        parts.append(Part(statement, abs(worst - 0.5) <= 0.1, f"share of the first half at worst {worst:.2f}"))
    return refuted(parts, "with budgets of 5 and 10 rounds one half of the clients is gone while the other remains")


def _least_share(budgets: tuple[int, int]) -> float:
    from p2p.random_streams import stream

    random = stream(1, "reproduction", "S0-C3.6")
    left = np.repeat(budgets, 50)
    worst = 0.5
    while (left > 0).sum() >= 50:
        left[random.choice(np.flatnonzero(left), size=50, replace=False)] -= 1
        remaining = np.flatnonzero(left)
        if len(remaining) >= 20:
            worst = min(worst, float((remaining < 50).mean()))
    return worst
