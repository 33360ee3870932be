"""Verdicts on results that are formulas, bounds or arithmetic with printed values; each takes at most seconds.

A rule is the function itself: what is computed, and what counts as reproduced, stands in its docstring.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from privacy.calc import CALC
from scenarios.reproductions.published_results import find_result
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
    return _number(found, "eps")


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


def base_noise_one_is_epsilon_eight() -> Verdict:
    """S0-C4.1. The claim holds if one of the readings gives epsilon 8 within a tenth, for noise one and delta 1e-5.

    The sampling rate is not stated. Readings: 15 whole rounds without sampling; 375 steps of batches of 20 among 100
    images; one in 40 clients in each of 15 rounds.
    """
    whole = _number(CALC["gaussian_composition_eps"](noise_multiplier=1.0, releases=15, delta=1e-5), "eps_exact")
    batches = _sampled(0.2, 375)
    clients = _sampled(1 / 40, 15)
    found = {"no sampling, 15 rounds": whole, "batches, q 0.2, 375 steps": batches, "q 1/40, 15 rounds": clients}
    close = any(abs(value - 8) <= 0.8 for value in found.values())
    told = ", ".join(f"{name}: {value:.3g}" for name, value in found.items())
    return judge([Part("epsilon is 8 under a reading that the text allows", close, told)], tuple(found))


def _sampled(q: float, steps: int) -> float:
    found = CALC["poisson_sampled_gaussian_eps"](q=q, noise_multiplier=1.0, steps=steps, delta=1e-5)
    return _number(found, "eps_rdp")


def attack_theory() -> Verdict:
    """S0-C4.3. Refuted if the factor k1 of Lemma 7 is below one for a setting of Weng's own tables.

    The theory needs 1/k1 < 1. With clipping active and little noise k1 < 1, so k2 < 0 and the bound has no meaning.
    """
    found = CALC["lemma7_k1"](C=0.1, g_norm=1.0, sigma=0.001, n=100, d=1_000_000)
    k1, k2 = _number(found, "k1_published"), _number(found, "k2_published")
    part = Part(
        "k1 exceeds one, so that 1/k1 < 1", k1 > 1, f"C 0.1, gradient norm 1, sigma 0.001: k1 {k1:.3g}, k2 {k2:.3g}"
    )
    return _refuted([part], f"at C = 0.1 and sigma = 0.001 clipping alone makes k1 = {k1:.3g} < 1")


def anonymous_noise_scale() -> Verdict:
    """S0-C5.1. Refuted if the noise of Theorem 8 has a larger exact epsilon than it is calibrated for.

    The exact epsilon is that of the Gaussian releases of a client that takes part in round(0.7 T) rounds, seen as they
    are: by a leader, or by each neighbour. No assumption about anonymity changes what is seen.
    """
    given: dict[str, Any] = {
        "topology": "pseudo_central",
        "M": 100,
        "m_tcs": 70,
        "T": 50,
        "epsilon": 8.0,
        "delta": 1e-5,
    }
    noise = CALC["t8_sigma"](**given, n=600)
    sigma2, exact = _number(noise, "sigma2"), _number(noise, "rigorous_eps_participations")
    premise = CALC["t8_shortcut_conditions"](r=0.7, sigma2=sigma2, epsilon=8.0, delta=1e-5)
    parts = [
        Part("the shortcut's premises hold", bool(premise["shortcut_valid"]), f"sigma^2 {sigma2:.4f}, needed 0.7"),
        Part("the releases are (8, 1e-5)-DP", exact <= 8, f"exact epsilon of 35 releases {exact:.0f}"),
    ]
    return _refuted(parts, f"the exact epsilon of what a client releases is {exact:.0f}, not 8")


def optimum_of_theorem_nine() -> Verdict:
    """S0-C5.2. The claim holds if, for a reading of m, the printed bound has its minimum inside 10..100 clients.

    The constants are not stated: L 0.5, 1, 1.5 and epsilon 0.5, 2, 8 are tried, with T 50, zeta^2 0.07, F0 - F* = 2.
    One combination suffices. Both readings of m in Theorem 8 are tried.
    """
    found = {}
    for reading in ("M", "m_tcs"):
        grid = [(smooth, epsilon) for smooth in (0.5, 1.0, 1.5) for epsilon in (0.5, 2.0, 8.0)]
        best = {pair: _best_cohort(reading, *pair) for pair in grid}
        found[reading] = {pair: size for pair, size in best.items() if 10 < size < 100}
    inside = {reading: len(places) for reading, places in found.items()}
    told = ", ".join(f"m read as {reading}: interior in {count} of 9 combinations" for reading, count in inside.items())
    part = Part("the printed bound has an interior minimum for some reading and constants", any(inside.values()), told)
    return judge([part], ("m = all clients", "m = training clients"))


def _best_cohort(reading: str, smooth: float, epsilon: float) -> int:
    sizes = list(range(10, 101, 10))
    return sizes[int(np.argmin([_theorem9(size, reading, smooth, epsilon) for size in sizes]))]


def _theorem9(m_tcs: int, reading: str, smooth: float, epsilon: float) -> float:
    found = CALC["t9_bound"](
        topology="pseudo_central",
        F0_minus_Fstar=2.0,
        T=50,
        L=smooth,
        zeta2=0.07,
        m_tcs=m_tcs,
        M=100,
        C=1.0,
        n=600,
        d=199_210,
        epsilon=epsilon,
        delta=1e-5,
        m_reading=reading,
    )
    return _number(found, "as_published")


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
    verdict = _refuted(parts, "with C = 1 the exact moment exceeds the bound at 19 or 20 of 20 orders of every panel")
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
        exact = _number(found, "eps_exact_T_releases")
        told = f"q {q:g}, epsilon {epsilon:g}: exact {exact:.3g}"
        parts.append(Part("T releases are within the target", exact <= epsilon, told))
    failed = [part.measured for part in parts if not part.holds]
    return (
        _refuted(parts, f"a client that is drawn in every round spends more: {failed[0]}") if failed else judge(parts)
    )


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


def residual_noise() -> Verdict:
    """S2-C2. The claim holds if the residual variance is nothing at tau = 0 and sigma_k^2 per client at tau = 1.

    By the paper's formula, and by drawing 4,000 exchanges of ten clients with seven partners each.
    """
    parts = []
    for tau, expected in ((0.0, 0.0), (1.0, 0.7)):
        basic = CALC["niss_basic"](m=10, sigma_k2=0.07, unit_variance=0.01, tau=tau, rho=0.0)
        stated = _number(basic, "aggregate_variance")
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
    mu = _number(found, "mu")
    finite = math.isfinite(mu)
    tail = CALC["niss_collusion_tail"](other_clients=99, colluders=40, v=7, at_least=4)
    parts = [
        Part("the server's view of all uploads is protected by noise", finite, f"mu {mu}"),
        Part(
            "with 40 of 99 colluding, more than half of a client's 7 partners do so with probability below 0.01",
            _number(tail, "prob_at_least") < 0.01,
            f"probability {_number(tail, 'prob_at_least'):.3g}",
        ),
    ]
    return _refuted(
        parts, "the uploads' noises sum to zero, so the exact sum is released: epsilon is infinite without colluders"
    )


def doubled_noise() -> Verdict:
    """S2-C4. Refuted if doubling the variance divides epsilon by less than two, by the paper's own formula."""
    basic = CALC["niss_basic"](m=10, sigma_k2=0.07, unit_variance=0.01, tau=0.0, rho=0.0)
    factor = _number(basic, "eps_factor_when_variance_doubles")
    part = Part("doubled variance halves epsilon", factor <= 0.5, f"factor {factor:.4f}")
    return _refuted(
        [part], "epsilon is inversely proportional to the deviation, so a doubled variance divides it by sqrt 2"
    )


def attack_ceilings() -> Verdict:
    """S4-TIII. Refuted if a printed attack accuracy exceeds what the stated epsilon allows any attack.

    An attack on balanced members and non-members of epsilon-DP training is right at most e^eps / (1 + e^eps) times.
    """
    cells = [row for row in find_result("S4-TIII").rows if row["metric"] == "attack_accuracy"]
    above = [row for row in cells if row["value"] > math.exp(row["epsilon"]) / (1 + math.exp(row["epsilon"]))]
    most = max(above, key=lambda row: row["value"])
    part = Part("no printed accuracy exceeds the ceiling of its epsilon", not above, f"{len(above)} of {len(cells)} do")
    told = f"{most['system']}, {most['dataset']}, {most['attack']}, epsilon {most['epsilon']}: {most['value']}"
    return _refuted([part], f"the training cannot have had the stated epsilon, such as {told}")


def gap_shrinks() -> Verdict:
    """S4-TVI. Refuted if the printed lead of DP-FedASGP over DP-FedAvg grows somewhere with epsilon, or is none."""
    series: dict[tuple[str, str], dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in find_result("S4-TVI").rows:
        series[str(row["dataset"]), str(row.get("model", ""))][float(row["epsilon"])][str(row["system"])] = float(
            row["value"]
        )
    parts = []
    for (dataset, model), by_epsilon in series.items():
        gaps = [by_epsilon[epsilon]["DP-FedASGP"] - by_epsilon[epsilon]["DP-FedAvg"] for epsilon in sorted(by_epsilon)]
        told = " ".join(f"{100 * gap:.2f}" for gap in gaps)
        name = f"{dataset} {model}".strip()
        parts.append(Part(f"{name}: ahead at every epsilon", min(gaps) > 0, f"points {told}"))
        parts.append(Part(f"{name}: the gap shrinks", all(b < a for a, b in pairwise(gaps)), f"points {told}"))
    failed = [part for part in parts if not part.holds]
    return _refuted(parts, f"by the printed values themselves: {failed[0].statement} fails") if failed else judge(parts)


def partial_noise() -> Verdict:
    """S4-C1. Refuted by one untouched coordinate: two gradients that differ only there are told apart with certainty.

    Coordinates below the threshold are released as they are. Take g = (5, 0.1) and g' = (5, 0.2), threshold 1: both
    noises are symmetric, so with probability at least one half the second entry is not selected, and then the outputs
    of g and g' have disjoint supports.
    """
    part = Part(
        "every output has a likelihood ratio of at most e^eps", False, "disjoint supports with probability >= 0.5"
    )
    return _refuted(
        [part], "an entry below the threshold is released exactly, so its value is known: the ratio is infinite"
    )


def shares_of_the_budget() -> Verdict:
    """S4-C2. The claim holds if the three parts add up to epsilon and the printed scales are at least the sound ones.

    Sound: the sparse vector technique with at most q positives (Lyu, Su and Li 2017).
    """
    scales = CALC["asgp_svt_scales"](epsilon=0.5, eps3_fraction=0.9, q=8, DeltaS=1.0)
    found = {name: _number(scales, name) for name in scales}
    total = found["eps1"] + found["eps2"] + found["eps3"]
    query = max(found["text_alpha"], found["alg1_alpha"])
    parts = [
        Part("the parts add up to epsilon", abs(total - 0.5) < 1e-9, f"sum {total:.6g}"),
        Part(
            "the query noise is at least the sound one",
            query >= found["sound_query"],
            f"{query:g} against {found['sound_query']:g}",
        ),
    ]
    return judge(parts)


def _number(found: Mapping[str, Any], name: str) -> float:
    """Returns a figure of the calculator, which writes infinity as a word."""
    return float(found[name])


def _refuted(parts: Sequence[Part], because: str) -> Verdict:
    """Returns `refuted` if a part fails: what failed is a proof or a counterexample, not a measurement."""
    if all(part.holds for part in parts):
        return judge(parts)
    return Verdict("refuted", tuple(parts), because)


FORMULAS: dict[str, Callable[[], Verdict]] = {
    "S0-C3.1": sparsity_saves_nine_tenths,
    "S0-C3.2": central_accountant_stops_first,
    "S0-C4.1": base_noise_one_is_epsilon_eight,
    "S0-C4.3": attack_theory,
    "S0-C5.1": anonymous_noise_scale,
    "S0-C5.2": optimum_of_theorem_nine,
    "S1-F3": moment_bound,
    "S1-C1": noise_for_a_budget,
    "S1-C3": unchanged_rounds_keep_sigma,
    "S1-C4": order_of_divergences,
    "S2-C2": residual_noise,
    "S2-C3": colluding_partners,
    "S2-C4": doubled_noise,
    "S4-TIII": attack_ceilings,
    "S4-TVI": gap_shrinks,
    "S4-C1": partial_noise,
    "S4-C2": shares_of_the_budget,
}
