"""Calculator kinds for the Gaussian mechanism and its composition, with and without sampling (spec A.2 to A.5)."""

from __future__ import annotations

import math

from privacy.accounting.curves import gaussian, moments, rdp
from privacy.accounting.curves.zcdp import zcdp_epsilon
from privacy.calc.inputs import Count, Delta, Fraction, Natural, NonNegative, Positive, Rate, Result, answer, refuse


def gaussian_sigma(*, epsilon: Positive, delta: Delta, sensitivity: Positive = 1.0) -> Result:
    """Noise for one Gaussian release: classic formula, exact value, and the exact epsilon of the classic one."""
    classic = gaussian.classic_std(epsilon, delta, sensitivity)
    return answer(
        {
            "classic": classic,
            "analytic": gaussian.analytic_std(epsilon, delta, sensitivity),
            "classic_valid": epsilon < 1.0,
            "eps_actually_given_by_classic": gaussian.epsilon_of(sensitivity / classic, delta),
        },
        (epsilon < 1.0, f"the classic formula is proved for epsilon < 1 only; epsilon = {epsilon:g}"),
    )


def gaussian_composition_eps(*, noise_multiplier: Positive, releases: Natural, delta: Delta) -> Result:
    """Epsilon of several Gaussian releases together: exact, and by zCDP."""
    mu = math.sqrt(releases) / noise_multiplier
    rho = mu * mu / 2.0
    return {
        "mu": mu,
        "eps_exact": gaussian.epsilon_of(mu, delta),
        "rho_zcdp": rho,
        "eps_zcdp": zcdp_epsilon(rho, delta),
    }


def max_releases_gaussian(*, noise_multiplier: Positive, epsilon: Positive, delta: Delta) -> Result:
    """The number of Gaussian releases that fit into a budget: exact, and by RDP at integer orders."""
    return {
        "N_exact": gaussian.max_releases(epsilon, delta, noise_multiplier),
        "N_rdp_int_orders": rdp.max_count(rdp.gaussian_rdp(noise_multiplier), epsilon, delta)[0],
    }


def rdp_to_dp(*, alpha: Positive, rdp: NonNegative, delta: Delta) -> Result:
    """One RDP value converted to epsilon: plain, improved, and with the printed sign error."""
    from privacy.accounting.curves.rdp import improved_epsilon, misprinted_epsilon, plain_epsilon

    refuse((alpha > 1.0, f"alpha = {alpha:g}: must be > 1; RDP has no smaller order here"))
    return {
        "mironov": plain_epsilon(alpha, rdp, delta),
        "improved": improved_epsilon(alpha, rdp, delta),
        "seed003_c2_as_printed": misprinted_epsilon(alpha, rdp, delta),
    }


def advanced_composition(*, epsilon: Positive, delta: Fraction, k: Count, delta_prime: Delta) -> Result:
    """Advanced composition of k mechanisms: the theorem, and (2.23) as printed."""
    total = k * delta + delta_prime
    return answer(
        {
            "correct": moments.advanced_composition(epsilon, k, delta_prime),
            "printed_2_23": moments.printed_composition(epsilon, k, delta_prime),
            "total_delta": total,
        },
        (total < 1.0, f"total delta {total:g} is at least 1: the statement is empty"),
    )


def poisson_sampled_gaussian_eps(*, q: Rate, noise_multiplier: Positive, steps: Count, delta: Delta) -> Result:
    """Epsilon of a Poisson-sampled Gaussian mechanism: by RDP (integer orders) and by PLD."""
    from privacy.accounting.curves.poisson_sampling import MOST_PLD_STEPS, poisson_epsilon, poisson_epsilon_pld

    epsilon, order = poisson_epsilon(q, noise_multiplier, steps, delta)
    by_pld = poisson_epsilon_pld(q, noise_multiplier, steps, delta) if steps <= MOST_PLD_STEPS else None
    return answer(
        {"eps_rdp": epsilon, "order": order, "eps_pld": by_pld},
        (steps <= MOST_PLD_STEPS, f"eps_pld is not computed for more than {MOST_PLD_STEPS} steps"),
    )


def max_rounds_poisson(*, q: Rate, noise_multiplier: Positive, epsilon: Positive, delta: Delta) -> Result:
    """The number of Poisson-sampled rounds that fit into a budget: by RDP (integer orders) and by PLD."""
    from privacy.accounting.curves.poisson_sampling import (
        MOST_PLD_STEPS,
        SEARCH_GRID,
        max_poisson_steps,
        max_steps,
        poisson_epsilon_pld,
    )

    def by_pld(rounds: int) -> float:
        return poisson_epsilon_pld(q, noise_multiplier, rounds, delta, SEARCH_GRID)

    by_rdp = max_poisson_steps(q, noise_multiplier, epsilon, delta)
    # PLD allows at least as many rounds as RDP, so there is nothing to search for beyond its limit.
    found = max_steps(by_pld, epsilon, by_rdp, MOST_PLD_STEPS) if by_rdp < MOST_PLD_STEPS else MOST_PLD_STEPS
    return answer(
        {"T_rdp_int_orders": by_rdp, "T_pld": found if found < MOST_PLD_STEPS else None},
        (found < MOST_PLD_STEPS, f"T_pld is at least {MOST_PLD_STEPS}; beyond that it is not computed"),
    )


def wor_sampled_gaussian_eps(*, M: Count, m: Count, noise_multiplier: Positive, steps: Count, delta: Delta) -> Result:
    """Epsilon if each step samples a cohort of fixed size: two bounds, and without sampling."""
    from privacy.accounting.curves.fixed_size_sampling import gaussian_bound_rdp, general_bound_rdp

    refuse((m <= M, f"m = {m}: must be at most M = {M}; draw fewer clients"))
    tight, order = rdp.best_epsilon(steps * gaussian_bound_rdp(m / M, noise_multiplier), delta)
    general, order_general = rdp.best_epsilon(steps * general_bound_rdp(m / M, noise_multiplier), delta)
    unsampled = gaussian.epsilon_of(math.sqrt(steps) / noise_multiplier, delta)
    return answer(
        {
            "eps_dp_accounting": tight,
            "order": order,
            "eps_general_bound": general,
            "order_general": order_general,
            "eps_no_sampling": unsampled,
        },
        (tight <= unsampled, "at this rate the sampled bounds are worse than no sampling; report eps_no_sampling"),
    )


def dp_fedavg_noise_multiplier(*, q: Rate, rounds: Count, epsilon: Positive, delta: Delta) -> Result:
    """The noise multiplier of DP-FedAvg for a target: by RDP, by PLD, and the closed form of Fed-SMP."""
    from privacy.accounting.curves.poisson_sampling import MOST_PLD_STEPS, calibrated_multiplier

    # Theorem 8's formula without the division by m, as Fed-SMP prints it.
    closed = math.sqrt(7.0 * q * q * rounds * (epsilon + 2.0 * math.log(1.0 / delta))) / epsilon
    few = rounds <= MOST_PLD_STEPS
    return answer(
        {
            "z_rdp_int_orders": calibrated_multiplier(q, rounds, epsilon, delta, "rdp"),
            "z_pld": calibrated_multiplier(q, rounds, epsilon, delta, "pld") if few else None,
            "fedsmp_formula_sigma": closed,
        },
        (few, f"z_pld is not computed for more than {MOST_PLD_STEPS} rounds"),
    )
