"""Weng (2025), chapter 4: reconstruction attacks."""

from __future__ import annotations

from collections import defaultdict

from privacy.calc import CALC
from scenarios.reproductions.formulas.refutation import number, refuted
from scenarios.reproductions.published_results import find_result
from scenarios.reproductions.verdict import Part, Verdict, judge


def base_noise_one_is_epsilon_eight() -> Verdict:
    """S0-C4.1. The claim holds if one of the readings gives epsilon 8 within a tenth, for noise one and delta 1e-5.

    The sampling rate is not stated. Readings: 15 whole rounds without sampling; 375 steps of batches of 20 among 100
    images; one in 40 clients in each of 15 rounds.
    """
    whole = number(CALC["gaussian_composition_eps"](noise_multiplier=1.0, releases=15, delta=1e-5), "eps_exact")
    batches = _sampled(0.2, 375)
    clients = _sampled(1 / 40, 15)
    found = {"no sampling, 15 rounds": whole, "batches, q 0.2, 375 steps": batches, "q 1/40, 15 rounds": clients}
    close = any(abs(value - 8) <= 0.8 for value in found.values())
    detail = ", ".join(f"{name}: {value:.3g}" for name, value in found.items())
    return judge([Part("epsilon is 8 under a reading that the text allows", close, detail)], tuple(found))


def _sampled(q: float, steps: int) -> float:
    found = CALC["poisson_sampled_gaussian_eps"](q=q, noise_multiplier=1.0, steps=steps, delta=1e-5)
    return number(found, "eps_rdp")


def attack_theory() -> Verdict:
    """S0-C4.3. Refuted if the factor k1 of Lemma 7 is below one for a setting of Weng's own tables.

    The theory needs 1/k1 < 1. With clipping active and little noise k1 < 1, so k2 < 0 and the bound has no meaning.
    """
    found = CALC["lemma7_k1"](C=0.1, g_norm=1.0, sigma=0.001, n=100, d=1_000_000)
    k1, k2 = number(found, "k1_published"), number(found, "k2_published")
    part = Part(
        "k1 exceeds one, so that 1/k1 < 1", k1 > 1, f"C 0.1, gradient norm 1, sigma 0.001: k1 {k1:.3g}, k2 {k2:.3g}"
    )
    return refuted([part], f"at C = 0.1 and sigma = 0.001 clipping alone makes k1 = {k1:.3g} < 1")


def objectives_by_printed_values() -> Verdict:
    """S0-T4.5. Refuted if a printed value contradicts the claim: cosine better below 0.01 total noise, Euclidean above.

    Better is a larger PSNR, a larger leak probability, a smaller LPIPS. Total noise of 0.01 itself is not judged.
    """
    cells: dict[tuple[str, float, float], dict[str, float]] = defaultdict(dict)
    for row in find_result("S0-T4.5").rows:
        cells[row["metric"], row["C"], row["sigma"]][row["objective"]] = row["value"]
    parts = []
    for metric, sign in (("psnr_db", 1.0), ("leak_probability", 1.0), ("lpips", -1.0)):
        gains = {key: sign * (both["euclidean"] - both["cosine"]) for key, both in cells.items() if key[0] == metric}
        for low, name in ((True, "cosine"), (False, "Euclidean")):
            judged = {key: gain for key, gain in gains.items() if _is_low(key) is low}
            wrong = [key for key, gain in judged.items() if (gain > 0) is low]
            statement = f"{metric}: {name} is better at {'small' if low else 'large'} total noise"
            parts.append(Part(statement, not wrong, f"{len(wrong)} of {len(judged)} printed pairs say otherwise"))
    return refuted(parts, "the printed leak probabilities at total noise 0.1 are larger for the cosine objective")


def _is_low(key: tuple[str, float, float]) -> bool | None:
    """Returns whether the total noise is below 0.01; None at 0.01 itself."""
    total = round(key[1] * key[2], 12)
    return None if total == 0.01 else total < 0.01
