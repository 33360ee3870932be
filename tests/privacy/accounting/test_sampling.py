"""Sampled mechanisms against dp-accounting, and the ways they must move."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.accounting.curves import fixed_size_sampling, gaussian, poisson_sampling, rdp

pytestmark = pytest.mark.slow
RATES = st.floats(0.001, 1.0)
MULTIPLIERS = st.floats(0.3, 20.0)
DELTAS = st.floats(1e-9, 1e-2)


@pytest.mark.parametrize("rate", [0.01, 0.2, 0.7])
@pytest.mark.parametrize("z", [0.8, 2.0, 6.0])
def test_poisson_equals_dp_accounting(rate: float, z: float) -> None:
    """RDP and its conversion give dp-accounting's epsilon and order."""
    accountant = dp_accounting.rdp.RdpAccountant(list(rdp.ORDERS))
    accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(z)), 40)
    expected, order = accountant.get_epsilon_and_optimal_order(1e-5)
    epsilon, best = poisson_sampling.poisson_epsilon(rate, z, 40, 1e-5)
    assert epsilon == pytest.approx(expected, rel=1e-9)
    assert best == order


@pytest.mark.parametrize(("rate", "z"), [(0.01, 0.8), (0.1, 2.0), (0.7, 6.0), (0.3, 0.5), (0.01, 30.0)])
def test_without_replacement_equals_dp_accounting(rate: float, z: float) -> None:
    """Our vectorised bound is dp-accounting's, order by order."""
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    accountant = dp_accounting.rdp.RdpAccountant(list(range(2, 33)), relation)
    event = dp_accounting.SampledWithoutReplacementDpEvent(1000, round(1000 * rate), dp_accounting.GaussianDpEvent(z))
    expected = accountant.compose(event).rdp
    np.testing.assert_allclose(fixed_size_sampling.gaussian_bound_rdp(rate, z)[:31], expected, rtol=1e-7)


@pytest.mark.parametrize("z", [0.7, 1.0, 3.0, 10.0])
def test_unsampled_accountants_agree(z: float) -> None:
    """Exact Gaussian <= PLD <= RDP for one release, and PLD is close to exact."""
    exact = gaussian.epsilon_of(1.0 / z, 1e-5)
    by_pld = poisson_sampling.poisson_epsilon_pld(1.0, z, 1, 1e-5)
    assert exact == pytest.approx(by_pld, rel=1e-3)
    assert exact <= poisson_sampling.poisson_epsilon(1.0, z, 1, 1e-5)[0]
    assert 1.0 / gaussian.mu_of(exact, 1e-5) == pytest.approx(dp_accounting.get_sigma_gaussian(exact, 1e-5), rel=1e-6)


@settings(max_examples=15, deadline=None)
@given(RATES, RATES, MULTIPLIERS, st.integers(1, 1000), DELTAS)
def test_epsilon_grows_with_the_sampling_rate(one: float, other: float, z: float, steps: int, delta: float) -> None:
    """A client drawn more often spends at least as much."""
    low, high = sorted((one, other))
    small = poisson_sampling.poisson_epsilon(low, z, steps, delta)[0]
    assert small <= poisson_sampling.poisson_epsilon(high, z, steps, delta)[0] * (1 + 1e-9) + 1e-12


@settings(max_examples=15, deadline=None)
@given(RATES, MULTIPLIERS, st.integers(1, 500), st.integers(1, 500), DELTAS)
def test_epsilon_grows_with_rounds(rate: float, z: float, steps: int, more: int, delta: float) -> None:
    """More rounds never cost less, in any accountant."""
    assert (
        poisson_sampling.poisson_epsilon(rate, z, steps, delta)[0]
        <= poisson_sampling.poisson_epsilon(rate, z, steps + more, delta)[0]
    )
    few, many = np.full(steps, z), np.full(steps + more, z)
    early = fixed_size_sampling.model_epsilon([rate] * len(few), few, delta)
    assert early <= fixed_size_sampling.model_epsilon([rate] * len(many), many, delta) * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(RATES, MULTIPLIERS, st.integers(1, 300), DELTAS)
def test_model_view_never_costs_more_than_no_sampling(rate: float, z: float, steps: int, delta: float) -> None:
    """The sampled bound is used only where it helps."""
    unsampled = gaussian.epsilon_of(math.sqrt(steps) / z, delta)
    assert fixed_size_sampling.model_epsilon([rate] * steps, np.full(steps, z), delta) <= unsampled * (1 + 1e-12)


@pytest.mark.parametrize(("rate", "steps", "epsilon"), [(0.1, 200, 0.5), (0.7, 50, 8.0), (1.0, 10, 2.0)])
def test_calibrated_noise_meets_its_target_and_little_more(rate: float, steps: int, epsilon: float) -> None:
    """The multiplier found meets epsilon; one a per mille smaller does not."""
    z = poisson_sampling.calibrated_multiplier(rate, steps, epsilon, 1e-5)
    assert poisson_sampling.poisson_epsilon(rate, z, steps, 1e-5)[0] <= epsilon
    assert poisson_sampling.poisson_epsilon(rate, z * 0.999, steps, 1e-5)[0] > epsilon


@given(st.floats(0.05, 1.0), st.floats(0.3, 1.0), st.floats(0.01, 100.0), st.integers(1, 1000))
def test_max_steps_finds_the_last_step_within(scale: float, power: float, epsilon: float, guess: int) -> None:
    """For any growing cost: the answer fits, the next does not, whatever the first guess."""

    def cost(steps: int) -> float:
        return float(scale * steps**power)

    found = poisson_sampling.max_steps(cost, epsilon, guess, 10**12)
    assert found == 0 or cost(found) <= epsilon
    assert cost(found + 1) > epsilon or found == 10**12
    assert poisson_sampling.max_steps(cost, epsilon, guess, 500) == min(found, 500)


@pytest.mark.parametrize(("rate", "z", "steps", "delta"), [(0.1, 90.0, 200, 1e-5), (0.01, 20.0, 1000, 1e-6)])
def test_small_epsilons_do_not_drown_in_the_grid(rate: float, z: float, steps: int, delta: float) -> None:
    """At epsilon 0.05 the grid used for searching costs less than two per mille against a fine one."""
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(z))
    fine = dp_accounting.pld.PLDAccountant(value_discretization_interval=2e-6).compose(step, steps).get_epsilon(delta)
    ours = poisson_sampling.poisson_epsilon_pld(rate, z, steps, delta, poisson_sampling.SEARCH_GRID)
    assert fine * (1 - 1e-6) <= ours <= fine * 1.002


def test_order_search_finds_the_best_of_all_orders() -> None:
    """Looking near the best of a few orders gives what looking at all of them gives."""
    for rate, z, steps in ((0.01, 1.1, 1000), (0.7, 5.0, 50), (0.001, 30.0, 10), (0.2, 0.3, 5)):
        everywhere = rdp.best_epsilon(steps * poisson_sampling.poisson_rdp(rate, z), 1e-5)
        assert poisson_sampling.poisson_epsilon(rate, z, steps, 1e-5) == everywhere
        most = rdp.max_count(poisson_sampling.poisson_rdp(rate, z), 4.0, 1e-5)[0]
        assert poisson_sampling.max_poisson_steps(rate, z, 4.0, 1e-5) == most


def test_a_large_delta_needs_no_fine_grid() -> None:
    """Losses extend to 5.4 there while epsilon is 0: the grid for tiny epsilons had a million points, and took long."""
    assert poisson_sampling.poisson_epsilon(0.01, 1.0, 1000, 0.5)[0] == 0.0
    interval = poisson_sampling.loss_interval(0.01, 1.0, 1000, 0.5, 1e-4)
    assert 5.3 / interval < 2.1e5
    # Elsewhere the grid is the one asked for.
    assert poisson_sampling.loss_interval(0.01, 1.0, 1000, 1e-5, 1e-4) == 1e-4
