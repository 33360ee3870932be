"""Calculator kinds for ADPDFL: Theorems 8 and 9, views of a run, gossip, shuffling (spec B)."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le, MinLen

from privacy.accounting.curves import gaussian, shuffle
from privacy.calc.inputs import (
    Check,
    Count,
    Delta,
    Fraction,
    Natural,
    NonNegative,
    Pair,
    Positive,
    Rate,
    Reading,
    Result,
    Topology,
    answer,
    check_sizes,
    refuse,
)
from privacy.papers.adpdfl_convergence import Theorem9
from privacy.papers.adpdfl_noise_scale import Theorem8, shortcut_conditions
from privacy.views import gossip as gossip_views


def t8_sigma(
    *,
    topology: Topology,
    M: Count,
    m_tcs: Count,
    T: Count,
    epsilon: Positive,
    delta: Delta,
    n: Count,
    m_e: Count | None = None,
    m_reading: Reading = "M",
    C: Positive = 1.0,
) -> Result:
    """Theorem 8's noise scale, both readings of the noise, and the rigorous epsilon of sigma as a noise multiplier."""
    from privacy.accounting.curves.poisson_sampling import poisson_epsilon

    theorem = _theorem8(topology, M, m_tcs, m_e, delta, m_reading)
    sigma = theorem.sigma(T, epsilon)
    rate, participations = m_tcs / M, round(m_tcs / M * T)
    return answer(
        {
            "sigma2": sigma**2,
            "sigma": sigma,
            "noise_std_eq_5_3": 2.0 * C * sigma / n,
            "noise_std_thm8": 2.0 * C * sigma / theorem.m,
            "rigorous_eps_all_rounds": gaussian.epsilon_of(math.sqrt(T) / sigma, delta),
            "rigorous_eps_participations": gaussian.epsilon_of(math.sqrt(participations) / sigma, delta),
            "participations": participations,
            "rigorous_eps_poisson_rdp_int_orders": poisson_epsilon(rate, sigma, T, delta)[0],
        },
        _in_range(theorem, epsilon),
        *_shortcut_checks(rate, sigma**2, epsilon, delta),
    )


def t8_max_rounds(
    *,
    topology: Topology,
    M: Count,
    m_tcs: Count,
    sigma: Positive,
    epsilon: Positive,
    delta: Delta,
    m_e: Count | None = None,
    m_reading: Reading = "M",
) -> Result:
    """The number of global rounds that Theorem 8 allows with a given sigma."""
    theorem = _theorem8(topology, M, m_tcs, m_e, delta, m_reading)
    return answer({"T_max": theorem.max_rounds(epsilon, sigma)}, _in_range(theorem, epsilon))


def t8_shortcut_conditions(*, r: Rate, sigma2: Positive, epsilon: Positive, delta: Delta) -> Result:
    """The two conditions under which the shortcut behind Theorem 8 (Lemma 3) is valid."""
    found = shortcut_conditions(r, sigma2, epsilon, delta)
    return answer(
        {
            "alpha": found.alpha,
            "r_alpha_1_plus_sigma2": found.r_alpha_1_plus_sigma2,
            "alpha_limit": found.alpha_limit,
            "sigma2_ok": found.sigma2_ok,
            "alpha_ok": found.alpha_ok,
            "shortcut_valid": found.shortcut_valid,
        },
        *_shortcut_checks(r, sigma2, epsilon, delta),
    )


def t9_bound(
    *,
    topology: Topology,
    F0_minus_Fstar: NonNegative,
    T: Count,
    L: Positive,
    zeta2: NonNegative,
    m_tcs: Count,
    M: Count,
    n: Count,
    d: Count,
    epsilon: Positive,
    delta: Delta,
    m_e: Count | None = None,
    rho2: Fraction | None = None,
    m_reading: Reading = "M",
    C: Positive = 1.0,
) -> Result:
    """Theorem 9's convergence bound as published and as re-derived, with Theorem 8's noise."""
    theorem = _theorem8(topology, M, m_tcs, m_e, delta, m_reading)
    gossip = topology == "gossip"
    refuse((not gossip or rho2 is not None, "rho2: required key is missing for gossip; add `rho2=...`"))
    bound = Theorem9(
        gap=F0_minus_Fstar,
        rounds=T,
        smoothness=L,
        heterogeneity=zeta2,
        sigma2=theorem.sigma(T, epsilon) ** 2,
        clip_norm=C,
        records=n,
        averaged=m_e if gossip and m_e else m_tcs,
        population=m_tcs if gossip else M,
        rho2=(rho2 or 0.0) if gossip else 0.0,
    )
    published, rederived = bound.published(), bound.rederived(d)
    return answer(
        {"sigma2": bound.sigma2, "as_published": published, "rederived": rederived},
        _in_range(theorem, epsilon),
        (1.0 <= L < 2.0, f"the proof needs 1 <= L < 2; L = {L:g}"),
        (published >= 0.0, "the published bound on a squared norm is negative (E-T09)"),
    )


def adpdfl_views(
    *,
    C: Positive,
    n: Count,
    sigma: Positive,
    m_tcs: Count,
    rounds_peer_is_leader: Natural,
    rounds_peer_not_leader: Natural,
    delta: Delta,
    colluders: Natural = 0,
) -> Result:
    """Client-level epsilon of a leader run per view: local, one peer with colluders, model observer."""
    honest = m_tcs - 1 - colluders
    refuse((honest >= 1, f"colluders = {colluders}: must be at most m_tcs - 2 = {m_tcs - 2}; no honest client is left"))
    std = 2.0 * C * sigma / n
    mu = 2.0 * C / std
    releases = rounds_peer_is_leader + rounds_peer_not_leader
    local = mu * math.sqrt(releases)
    # A leader sees single updates; any other peer sees means, whose unknown noise is that of the honest members.
    peer = mu * math.sqrt(rounds_peer_is_leader + rounds_peer_not_leader / honest)
    observer = mu * math.sqrt(releases / m_tcs)
    epsilons = gaussian.epsilons_of([local, peer, observer], delta)
    return {
        "noise_std": std,
        "mu_per_release": mu,
        "mu_local": local,
        "eps_local": float(epsilons[0]),
        "mu_peer": peer,
        "eps_peer": float(epsilons[1]),
        "mu_model_observer": observer,
        "eps_model_observer": float(epsilons[2]),
    }


def gossip_linear_view(
    *,
    n: Annotated[int, Ge(2), Le(1000)],
    edges: list[Pair],
    observed_steps: Annotated[int, Ge(0), Le(1000)],
    u: Natural,
    v: Natural,
    weights: str | list[list[float]] = "Metropolis",
) -> Result:
    """The exact fraction of u's privacy loss visible to v when noise is added once and averaged over a graph."""
    from topologies.mixing import metropolis_weights

    both_ways = np.array([pair for a, b in edges if a != b for pair in ((a, b), (b, a))], dtype=np.int64)
    # A repeated edge, or one given in both directions, counts once.
    both_ways = np.unique(both_ways.reshape(-1, 2), axis=0)
    refuse(
        (max(u, v, *(end for edge in edges for end in edge), 0) < n, f"n = {n}: must exceed every node's number"),
        (u != v, f"u = {u}: must differ from v; a node knows itself"),
        (
            not isinstance(weights, str) or weights.lower() == "metropolis",
            f"weights = {weights}: must be Metropolis or an n by n matrix",
        ),
        (isinstance(weights, str) or np.shape(weights) == (n, n), f"weights: must be {n} rows of {n} numbers"),
    )
    matrix = metropolis_weights(both_ways, n).toarray() if isinstance(weights, str) else np.array(weights)
    view = gossip_views.linear_view(matrix, observed_steps, u, v)
    return {"loss_fraction_exact": view.loss_fraction, "squared_ratio_sum": view.squared_ratio_sum}


def gossip_taint_count(*, u: Natural, v: Natural, rounds: Annotated[list[dict[str, list[Pair]]], MinLen(1)]) -> Result:
    """The number of u's releases that reached v in gossip: directly, and along any temporal path."""
    refuse(
        (u != v, f"u = {u}: must differ from v; a node knows itself"),
        (all(set(one) == {"edges"} for one in rounds), "rounds: each must be a mapping with `edges` alone"),
    )
    direct, reachable = gossip_views.taint_count(u, v, [one["edges"] for one in rounds])
    return {"direct": direct, "reachable": reachable}


def shuffle_amplification(
    *, eps0: Positive, n: Count, delta: Delta, n_numeric: Annotated[int, Ge(1), Le(200_000)] | None = None
) -> Result:
    """Epsilon of shuffled local reports: closed form for n, numerical clone reduction for n_numeric."""
    # Fewer users hide less, so capping n overestimates epsilon; beyond the cap the summation would take too long.
    users = min(n, 50_000) if n_numeric is None else n_numeric
    limit = shuffle.closed_form_limit(n, delta)
    return answer(
        {
            "closed_form": shuffle.closed_form(eps0, n, delta),
            "clones_numeric": shuffle.clone_epsilon(eps0, users, delta),
        },
        (eps0 <= limit, f"the closed form is proved for eps0 <= ln(n/(16 ln(2/delta))) = {limit:.4g} only"),
    )


def _theorem8(topology: str, M: int, m_tcs: int, m_e: int | None, delta: float, reading: str) -> Theorem8:
    refuse(*check_sizes(M, m_tcs, m_e, topology))
    exchange = m_e if topology == "gossip" else None
    return Theorem8(clients=M, train_per_round=m_tcs, exchange_with=exchange, delta=delta, m_reading=reading)


def _in_range(theorem: Theorem8, epsilon: float) -> Check:
    limit = theorem.epsilon_limit
    return epsilon < limit, f"Theorem 8 is stated for epsilon < 2 ln(1/delta) = {limit:.4g}; epsilon = {epsilon:g}"


def _shortcut_checks(rate: float, sigma2: float, epsilon: float, delta: float) -> tuple[Check, ...]:
    found = shortcut_conditions(rate, sigma2, epsilon, delta)
    return (
        (found.sigma2_ok, f"Lemma 3 needs sigma^2 >= 0.7; sigma^2 = {sigma2:.4g} (E-T04)"),
        (found.alpha_ok, f"Lemma 3 needs order <= {found.alpha_limit:.4g}; the order is {found.alpha:.4g} (E-T04)"),
        (found.rate_ok, f"above rate 0.378 Lemma 3 is worse than no sampling; the rate is {rate:.4g} (E-T04)"),
    )
