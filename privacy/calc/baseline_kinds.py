"""Calculator kinds for baseline systems: LCDP-FL, Fed-nore, CDP with discounting, DP-FedASGP, cpSGD (spec D to H)."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from privacy.accounting.curves import gaussian, moments
from privacy.calc.inputs import (
    Count,
    Delta,
    Fraction,
    Inside,
    Layers,
    Natural,
    NonNegative,
    Positive,
    Rate,
    Result,
    Vector,
    answer,
    refuse,
)
from privacy.mechanisms.binomial import BinomialNoise
from privacy.papers import cdp_discounting, dp_fedasgp, fednore


def thesis_moments_accountant(
    *,
    mode: Literal["eps", "delta", "order", "rdp"],
    q: Rate,
    sigma: Positive,
    rounds: Count,
    releases_per_round: Count = 1,
    steps: Count | None = None,
    delta: Delta | None = None,
    epsilon: Positive | None = None,
    lambda_max: Annotated[int, Ge(1), Le(1024)] = 32,
    alpha: Annotated[int, Ge(2)] | None = None,
) -> Result:
    """The accountant of Weng (2025): epsilon or delta by moments, or by RDP at one order or the best."""
    planned = rounds * releases_per_round
    steps = planned if steps is None else steps
    refuse(
        (steps == planned, f"steps = {steps}: must be rounds * releases_per_round = {planned}; leave it out"),
        (mode == "delta" or delta is not None, f"delta: required key is missing in mode {mode}; add `delta=1e-5`"),
        (mode != "delta" or epsilon is not None, "epsilon: required key is missing in mode delta; add `epsilon=8`"),
        (mode != "order" or alpha is not None, "alpha: required key is missing in mode order; add `alpha=32`"),
    )
    if mode == "delta":
        return _moments_delta(q, sigma, steps, releases_per_round, epsilon or 0.0, lambda_max)
    if mode == "eps":
        return _moments_epsilon(q, sigma, steps, releases_per_round, delta or 0.0, lambda_max)
    return _by_rdp(q, sigma, steps, delta or 0.0, alpha if mode == "order" else None)


def _moments_delta(q: float, sigma: float, steps: int, per_round: int, epsilon: float, lambda_max: int) -> Result:
    table = moments.log_moments(q, sigma, lambda_max)
    value, lam = table.log10_delta(steps, epsilon)
    before = table.log10_delta(steps - per_round, epsilon)[0]
    return answer(
        {"log10_delta": value, "lam": lam, "log10_delta_one_round_less": before},
        (value < 0.0, "delta is at least 1: the statement is empty"),
    )


def _moments_epsilon(q: float, sigma: float, steps: int, per_round: int, delta: float, lambda_max: int) -> Result:
    table = moments.log_moments(q, sigma, lambda_max)
    value, lam = table.epsilon(steps, delta)
    return {"eps": value, "lam": lam, "eps_one_more_round": table.epsilon(steps + per_round, delta)[0]}


def _by_rdp(q: float, sigma: float, steps: int, delta: float, order: int | None) -> Result:
    from privacy.accounting.curves.poisson_sampling import poisson_epsilon, poisson_rdp
    from privacy.accounting.curves.rdp import improved_epsilon, plain_epsilon

    if order is None:
        epsilon, best = poisson_epsilon(q, sigma, steps, delta)
        return {"eps_int_orders": epsilon, "order": best}
    value = steps * float(poisson_rdp(q, sigma, (order,))[0])
    return {
        "rdp": value,
        "eps_improved": improved_epsilon(order, value, delta),
        "eps_plain": plain_epsilon(order, value, delta),
    }


def fednore1_penalty(*, W_t: Layers, W_i: Layers, n: Count, lam: NonNegative, sigma: NonNegative) -> Result:
    """Fed-nore-1's penalty on the distance from the global model, per layer, and its gradient."""
    same_shape = [len(layer) for layer in W_t] == [len(layer) for layer in W_i]
    refuse((same_shape, "W_i: must have the layers of W_t, each of equal length"))
    global_model, local_model = [np.array(layer) for layer in W_t], [np.array(layer) for layer in W_i]
    sensitivities = fednore.layer_sensitivities(global_model, local_model, n)
    gradient = fednore.nore1_gradient(global_model, local_model, n, lam, sigma)
    return {
        "S_per_layer": sensitivities.tolist(),
        "penalty": fednore.nore1_penalty(sensitivities, lam, sigma),
        "gradient_wrt_W_i": [layer.tolist() for layer in gradient],
    }


def fednore2_loss(*, a_p: list[Rate], lam: NonNegative, sigma: NonNegative, n: Count, c_max: Inside = 0.9) -> Result:
    """Fed-nore-2's loss: printed, and in the reading that keeps the label; with gradient weights."""
    c = fednore.nore2_constant(lam, sigma, n)
    # Capped, because both losses need c < 1 and the published settings exceed it.
    used, probabilities = min(c, c_max), np.array(a_p)
    result = {
        "c": c,
        "printed_defined": c < 1.0,
        "c_used": used,
        "keep_label_loss": fednore.nore2_keep_label(probabilities, used).tolist(),
        "keep_label_gradient_weight": fednore.nore2_keep_label_weight(probabilities, used).tolist(),
    }
    if c < 1.0:
        result["printed_loss"] = fednore.nore2_printed(probabilities, c).tolist()
        result["printed_gradient_weight"] = [1.0] * len(a_p)
    return answer(result, (c < 1.0, f"the printed loss needs c < 1; c = {c:.4g} (E-T12)"))


def cdp_sigma(*, q: Rate, Delta: Positive, T: Count, epsilon: Positive, delta: Delta) -> Result:
    """Noise of CDP: published, corrected by its own moments, and the exact epsilon of the published one."""
    from privacy.accounting.curves.poisson_sampling import poisson_epsilon

    sigma = cdp_discounting.published_sigma(q, Delta, T, epsilon, delta)
    mu, moment = Delta / sigma, cdp_discounting.best_moment(epsilon, delta)
    result = {
        "sigma_published": sigma,
        "sigma_corrected": cdp_discounting.corrected_sigma(q, Delta, T, epsilon, delta),
        "eps_of_published_sigma_same_moments": cdp_discounting.epsilon_by_own_moments(epsilon, delta),
        "eps_exact_qT_releases": gaussian.epsilon_of(mu * math.sqrt(q * T), delta),
        "eps_exact_T_releases": gaussian.epsilon_of(mu * math.sqrt(T), delta),
        "lambda_star": moment,
    }
    if q < 1.0:  # without sampling the exact value above is the answer
        result["eps_poisson_rdp_int_orders"] = poisson_epsilon(q, sigma / Delta, T, delta)[0]
    return answer(
        result,
        (moment >= 1.0, f"integer moments need lambda* >= 1; it is {moment:.4g}: epsilon is too large (E-C05)"),
        (
            result["eps_exact_qT_releases"] <= epsilon,
            "the published sigma does not give the epsilon it promises (E-C06)",
        ),
    )


def crd_sequence(
    *,
    epsilon: Positive,
    delta: Delta,
    q: Rate,
    Delta: Positive,
    T0: Count,
    beta: Rate,
    losses: Vector,
    rounding: Literal["literal", "floor", "ceil"] = "floor",
) -> Result:
    """Sigma and planned rounds of CDP with communication-rounds discounting, for a series of losses."""
    run = cdp_discounting.discounted_rounds(
        cdp_discounting.discounting_budget(q, Delta, epsilon, delta), T0, beta, losses, rounding
    )
    return answer(
        {
            "sigma": run.sigmas,
            "T_used": run.planned,
            "rounds": len(run.sigmas),
            "budget_ratio": run.budget_ratio,
            "overspent": run.overspent,
        },
        (not run.overspent, f"{run.budget_ratio:.4g} of the budget is spent: T must be rounded (E-C09)"),
    )


def asgp_threshold(*, g: Vector, t: Natural, T: Count) -> Result:
    """DP-FedASGP's threshold in round t of T, on signed and absolute values, and the number of selected coordinates."""
    refuse((t <= T, f"t = {t}: must be at most T = {T}"))
    values = np.array(g)
    signed, absolute = dp_fedasgp.threshold(values, t, T), dp_fedasgp.threshold(np.abs(values), t, T)
    return {
        "lambda_signed": signed,
        "lambda_abs": absolute,
        "selected_signed_no_noise": int(np.sum(values >= signed)),
        "selected_abs_no_noise": int(np.sum(np.abs(values) >= absolute)),
    }


def asgp_weights(*, n: list[Positive], L: list[NonNegative]) -> Result:
    """DP-FedASGP's client weights, half by records and half by loss."""
    refuse(
        (len(n) == len(L) > 0, f"L: must have one loss per client; n has {len(n)}, L has {len(L)}"),
        (sum(L) > 0.0, "L: must not be all zero; the weights divide by their sum"),
    )
    return {"weights": dp_fedasgp.weights(np.array(n), np.array(L)).tolist()}


def asgp_svt_scales(*, epsilon: Positive, q: Positive, DeltaS: Positive, eps3_fraction: Inside = 0.9) -> Result:
    """Laplace scales of DP-FedASGP's sparse vector technique: text, Algorithm 1, and sound scales."""
    budget = dp_fedasgp.divide_budget(epsilon, eps3_fraction, q)
    text, printed, sound = budget.as_text(DeltaS), budget.as_algorithm(DeltaS), budget.sound(DeltaS)
    return {
        "eps1": budget.eps1,
        "eps2": budget.eps2,
        "eps3": budget.eps3,
        "text_alpha": text.query,
        "text_beta": text.threshold,
        "text_N": text.value,
        "alg1_alpha": printed.query,
        "alg1_beta": printed.threshold,
        "sound_query": sound.query,
        "sound_threshold": sound.threshold,
        "sound_value": sound.value,
    }


def asgp_sigma_eq2(*, epsilon: Positive, DeltaS: Positive = 1.0) -> Result:
    """DP-FedASGP's (2): the classic Gaussian formula with delta = e^-epsilon, beside delta = 1e-5."""
    zeta = math.exp(-epsilon)
    return answer(
        {
            "zeta": zeta,
            "sigma": dp_fedasgp.sigma_eq2(epsilon, DeltaS),
            "sigma_if_delta_1e5": gaussian.classic_std(epsilon, 1e-5, DeltaS),
        },
        (zeta < 1e-2, f"(2) stands for delta = e^-epsilon = {zeta:.3g}, which protects little (E-A05)"),
        (epsilon < 1.0, f"the classic formula is proved for epsilon < 1 only; epsilon = {epsilon:g}"),
    )


def cpsgd_binomial(
    *,
    N: Count,
    p: Inside,
    d: Count,
    delta: Delta,
    Delta1: NonNegative,
    Delta2: NonNegative,
    Delta_inf: NonNegative,
    scalar_shift: int = 1,
    scalar_eps: NonNegative = 0.0,
) -> Result:
    """cpSGD's binomial noise: epsilon by its theorem, and the exact delta of one shifted coordinate."""
    noise = BinomialNoise(trials=N, p=p, dimension=d)
    needed = noise.variance_needed(delta, Delta_inf)
    return answer(
        {
            "variance": noise.variance,
            "eps_theorem": noise.epsilon(delta, Delta1, Delta2, Delta_inf),
            "scalar_delta_exact": noise.scalar_delta(scalar_shift, scalar_eps),
        },
        (noise.variance >= needed, f"the theorem needs N p (1-p) >= {needed:.4g}; it is {noise.variance:.4g}"),
    )


def mia_accuracy_ceiling(*, epsilon: NonNegative, delta: Fraction = 0.0) -> Result:
    """Upper bounds on membership inference against (epsilon, delta)-DP training."""
    from privacy.papers.membership_bounds import max_advantage, max_balanced_accuracy

    refuse((delta < 1.0, f"delta = {delta:g}: must be < 1"))
    return {
        "max_balanced_accuracy": max_balanced_accuracy(epsilon, delta),
        "max_tpr_minus_fpr": max_advantage(epsilon, delta),
    }
