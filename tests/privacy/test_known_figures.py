"""Figures that the specification states in its text, recomputed from the formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privacy.accounting.curves.gaussian import analytic_std, classic_std, epsilon_of
from privacy.accounting.curves.rdp import gaussian_rdp, max_count
from privacy.noise_shares.variance import expected_residual_variance, residual_variance
from privacy.papers.adpdfl_convergence import Theorem9
from privacy.papers.adpdfl_noise_scale import Theorem8, shortcut_conditions
from privacy.papers.membership_bounds import max_balanced_accuracy


@pytest.mark.parametrize(("epsilon", "really"), [(10.0, 10.6), (15.0, 18.1)])
def test_classic_noise_of_the_noise_sharing_paper(epsilon: float, really: float) -> None:
    """At delta = 1e-4 the classic formula promises 10 and 15 and gives 10.6 and 18.1."""
    assert epsilon_of(1.0 / classic_std(epsilon, 1e-4, 1.0), 1e-4) == pytest.approx(really, abs=0.05)


@pytest.mark.parametrize(("tau", "once", "twenty"), [(0.3, 11.4, 98), (0.6, 4.8, 34), (1.0, 2.6, 17)])
def test_what_noise_sharing_leaves(tau: float, once: float, twenty: float) -> None:
    """Central epsilon of the residual noise at epsilon 10: per round, and after 20 participations."""
    mu = 1.0 / math.sqrt(10 * classic_std(10.0, 1e-4, 1.0) ** 2 * tau**2)
    assert epsilon_of(mu, 1e-4) == pytest.approx(once, abs=0.06)
    assert epsilon_of(mu * math.sqrt(20), 1e-4) == pytest.approx(twenty, abs=0.6)


def test_one_lost_peer_leaves_twice_the_noise_of_a_client() -> None:
    """With perfect cancelling, one of ten lost leaves 2 sigma_k^2."""
    assert expected_residual_variance(10, 7, 0.01, 0.0, 1) == pytest.approx(2 * 0.07)
    assert residual_variance([(0, 1), (1, 2), (2, 0)], (0,), 1.0, 0.0) == 2.0


def test_local_cost_of_the_hybrid_system() -> None:
    """26 participations at sigma 8: 2.95 if sigma were the multiplier, 7.5e4 with 600 records divided away."""
    assert epsilon_of(math.sqrt(26) / 8, 1e-6) == pytest.approx(2.95, abs=0.2)
    assert epsilon_of(math.sqrt(26) * 600 / 8, 1e-6) == pytest.approx(7.5e4, rel=0.02)


def test_theorem_8_conditions_cannot_hold_together() -> None:
    """At epsilon 8 no sigma^2 >= 0.7 meets the second condition for any rate from 0.16 on."""
    for rate in np.arange(0.16, 1.0, 0.04):
        for sigma2 in (0.7, 1.0, 5.0, 50.0, 1000.0):
            assert not shortcut_conditions(float(rate), sigma2, 8.0, 1e-5).shortcut_valid
    assert not shortcut_conditions(0.379, 1.0, 8.0, 1e-5).rate_ok
    assert shortcut_conditions(0.377, 1.0, 8.0, 1e-5).rate_ok


def bound(cohort: int, m_reading: str = "M") -> Theorem9:
    """Theorem 9 for the MNIST network and a leader."""
    theorem = Theorem8(clients=100, train_per_round=cohort, exchange_with=None, delta=1e-5, m_reading=m_reading)
    return Theorem9(
        gap=2.0,
        rounds=50,
        smoothness=1.5,
        heterogeneity=0.07,
        sigma2=theorem.sigma(50, 8.0) ** 2,
        clip_norm=1.0,
        records=600,
        averaged=cohort,
        population=100,
    )


def test_rederived_bound_is_smallest_near_eighty() -> None:
    """With the dimension and m = M the optimum is a cohort of 79; without either it sits at the end."""
    cohorts = range(1, 101)
    assert min(cohorts, key=lambda m: bound(m).rederived(199_210)) == 79
    assert min(cohorts, key=lambda m: bound(m).rederived(1)) == 100
    assert min(cohorts, key=lambda m: bound(m, "m_tcs").rederived(199_210)) == 100


def test_published_bound_can_be_negative() -> None:
    """F0 - F* = 1, T = 100, L = 1.3, zeta^2 = 0.5, cohort 50: -0.68, which no squared norm can be."""
    low = Theorem9(
        gap=1.0,
        rounds=100,
        smoothness=1.3,
        heterogeneity=0.5,
        sigma2=0.0,
        clip_norm=1.0,
        records=600,
        averaged=50,
        population=100,
    )
    assert low.published() == pytest.approx(-0.68, abs=0.01)


def test_the_papers_attacks_refute_their_epsilons() -> None:
    """Ceilings 52.5, 55.0 and 62.2% for epsilon 0.1, 0.2 and 0.5."""
    ceilings = [round(100 * max_balanced_accuracy(epsilon, 0.0), 1) for epsilon in (0.1, 0.2, 0.5)]
    assert ceilings == [52.5, 55.0, 62.2]


def test_exact_counting_allows_more_releases_than_rdp() -> None:
    """44 instead of 39 releases at multiplier 4 and (8, 1e-5)."""
    assert math.floor(4.0**2 / analytic_std(8.0, 1e-5, 1.0) ** 2) == 44
    assert max_count(gaussian_rdp(4.0), 8.0, 1e-5)[0] == 39
