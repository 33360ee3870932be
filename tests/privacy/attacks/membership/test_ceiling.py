"""Ceilings of an epsilon, and when a measurement falsifies it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privacy.attacks.membership.ceiling import Claim, judge, level_of
from privacy.audits.one_run import p_value


@pytest.mark.parametrize(("epsilon", "percent"), [(0.1, 52.5), (0.2, 55.0), (0.5, 62.2)])
def test_ceilings_of_the_papers_epsilons(epsilon: float, percent: float) -> None:
    """E-A07."""
    assert 100 * Claim("printed", epsilon, 0.0).accuracy() == pytest.approx(percent, abs=0.06)


def test_ceiling_of_the_rate_at_a_small_false_positive_rate() -> None:
    """e^eps FPR for small ones, the other side for large ones; nothing is bounded by an infinite epsilon."""
    claim = Claim("printed", 1.0, 0.0)
    assert claim.tpr_at(0.01) == pytest.approx(math.e * 0.01)
    assert claim.tpr_at(0.9) == pytest.approx(1 - math.exp(-1) * 0.1)
    assert Claim("none", math.inf, 0.0).tpr_at(0.001) == 1.0
    assert Claim("none", math.inf, 0.0).accuracy() == 1.0
    assert Claim("huge", 1e6, 1e-5).tpr_at(0.5) == 1.0
    # The best point of the curve is the best balanced accuracy.
    advantage = max(claim.tpr_at(fpr) - fpr for fpr in np.linspace(0, 1, 100001))
    assert (1 + advantage) / 2 == pytest.approx(claim.accuracy(), abs=1e-5)


def test_published_p_values() -> None:
    """Of the one-run paper, by its own values: m = r."""
    assert p_value(100, 100, 75, math.log(3), 0.0) == pytest.approx(0.553471, abs=1e-6)
    assert p_value(100, 100, 75, 0.702214, 0.0) == pytest.approx(0.05, abs=1e-5)
    assert p_value(100, 100, 75, 0.699467, 1e-4) == pytest.approx(0.05, abs=1e-5)
    # Perfect guesses of 100 coins refute nothing above 3.4902.
    assert p_value(100, 100, 100, 3.4902, 1e-5) == pytest.approx(0.05, abs=1e-4)
    assert p_value(100, 100, 100, math.inf, 1e-5) == 1.0
    assert p_value(0, 0, 0, 1.0, 1e-5) == 1.0


def test_falsified_needs_more_than_luck() -> None:
    """95 of 100 coins refute epsilon 0.5; 68 exceed the ceiling of 62.2%, which luck may do."""
    claim = Claim("published", 0.5, 1e-5)
    assert judge(claim, 0.95, 95, 100, 0, 1) == "falsified"
    assert judge(claim, 0.68, 68, 100, 0, 1) == "exceeds the ceiling in this run"
    assert judge(claim, 0.60, 60, 100, 0, 1) == "within the ceiling"


def test_many_attempts_need_a_clearer_result() -> None:
    """75 of 100 against 62.2% expected: p = 0.005, enough for one attempt, not for ten or after ten."""
    claim = Claim("published", 0.5, 0.0)
    assert judge(claim, 0.75, 75, 100, 0, 1) == "falsified"
    assert judge(claim, 0.75, 75, 100, 0, 10) == "exceeds the ceiling in this run"
    assert judge(claim, 0.75, 75, 100, 10, 1) == "exceeds the ceiling in this run"


def test_the_levels_of_all_comparisons_sum_to_the_level() -> None:
    """In any portions, for ever."""
    portions, before, spent = [1, 7, 2, 30, 5] * 200, 0, 0.0
    for portion in portions:
        spent += portion * level_of(before, portion)
        before += portion
    assert spent == pytest.approx(0.05, abs=0.05 / before)
    assert spent < 0.05


@pytest.mark.slow
def test_a_true_epsilon_is_hardly_ever_falsified() -> None:
    """Randomised response at epsilon 1, 20 attempts a run: at most 5% of 1,000 runs say falsified."""
    rng, claim = np.random.default_rng(0), Claim("true", 1.0, 0.0)
    truthful = math.e / (1 + math.e)
    right = rng.binomial(50, truthful, (1000, 20))
    wrong = [any(judge(claim, n / 50, int(n), 50, 0, 20) == "falsified" for n in run) for run in right]
    assert np.mean(wrong) < 0.05
