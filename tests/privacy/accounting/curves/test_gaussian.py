"""The exact Gaussian mechanism."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from privacy.accounting.curves import gaussian

MUS = st.floats(1e-3, 1e5)
DELTAS = st.floats(1e-12, 0.5)
EPSILONS = st.floats(1e-3, 1e9)


def integrated_delta(epsilon: float, mu: float) -> float:
    """The hockey-stick divergence of N(mu, 1) and N(0, 1) by quadrature, without any closed form."""

    def excess(x: float) -> float:
        return float(stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x))

    start = epsilon / mu + mu / 2
    return float(integrate.quad(excess, start, max(start, mu) + 12.0, epsabs=1e-14, limit=200)[0])


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_delta_is_the_integral_of_the_excess_density(epsilon: float, mu: float) -> None:
    """The closed form agrees with numerical integration of its definition."""
    assert gaussian.delta_of(epsilon, mu) == pytest.approx(integrated_delta(epsilon, mu), rel=1e-7, abs=1e-13)


@pytest.mark.slow
@given(MUS, DELTAS)
def test_epsilon_and_mu_are_inverse(mu: float, delta: float) -> None:
    """Going from mu to epsilon and back returns mu."""
    epsilon = gaussian.epsilon_of(mu, delta)
    if epsilon > 1e-9:
        assert gaussian.mu_of(epsilon, delta) == pytest.approx(mu, rel=1e-8)
    else:
        assert gaussian.delta_of(0.0, mu) <= delta * (1 + 1e-9)


@pytest.mark.slow
@given(EPSILONS, DELTAS)
def test_mu_meets_delta_exactly(epsilon: float, delta: float) -> None:
    """The largest mu for (epsilon, delta) has that delta at that epsilon."""
    mu = gaussian.mu_of(epsilon, delta)
    assert gaussian.delta_of(epsilon, mu) == pytest.approx(delta, rel=1e-5)
    assert gaussian.epsilon_of(mu, delta) == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.slow
@given(MUS, MUS, DELTAS)
def test_epsilon_grows_with_mu(one: float, other: float, delta: float) -> None:
    """More signal against the same noise never costs less."""
    low, high = sorted((one, other))
    assert gaussian.epsilon_of(low, delta) <= gaussian.epsilon_of(high, delta) * (1 + 1e-12)


@pytest.mark.slow
@given(MUS, DELTAS, DELTAS)
def test_epsilon_falls_with_delta(mu: float, one: float, other: float) -> None:
    """A larger failure probability never costs more epsilon."""
    low, high = sorted((one, other))
    assert gaussian.epsilon_of(mu, high) <= gaussian.epsilon_of(mu, low) * (1 + 1e-12)


@pytest.mark.slow
@given(st.lists(MUS, min_size=1, max_size=20), DELTAS)
def test_many_epsilons_equal_single_ones(mus: list[float], delta: float) -> None:
    """The vectorised form gives what the scalar one gives."""
    single = [gaussian.epsilon_of(mu, delta) for mu in mus]
    np.testing.assert_allclose(gaussian.epsilons_of(mus, delta), single, rtol=1e-10, atol=1e-12)


def test_extremes_are_what_they_must_be() -> None:
    """No signal costs nothing; no noise, or no delta, costs everything."""
    assert gaussian.epsilons_of([0.0, np.inf], 1e-5).tolist() == [0.0, np.inf]
    assert gaussian.epsilons_of([0.0, 1.0], 0.0).tolist() == [0.0, np.inf]
    assert gaussian.delta_of(1.0, 0.0) == 0.0
    assert gaussian.delta_of(1.0, math.inf) == 1.0
    assert gaussian.mu_of(1.0, 0.0) == 0.0


def test_total_variation_is_exact_for_large_mu() -> None:
    """At epsilon 0 delta is the total variation distance, also close to one."""
    assert gaussian.delta_of(0.0, 10.0) == pytest.approx(2 * stats.norm.cdf(5.0) - 1, rel=1e-14)


@pytest.mark.slow
@given(st.floats(0.05, 50.0), st.floats(0.01, 50.0), st.floats(1e-9, 0.1))
def test_one_release_more_than_allowed_exceeds_the_budget(z: float, epsilon: float, delta: float) -> None:
    """`max_releases` fits, and one more does not."""
    count = gaussian.max_releases(epsilon, delta, z)
    assert gaussian.epsilon_of(math.sqrt(count) / z, delta) <= epsilon * (1 + 1e-9)
    assert gaussian.epsilon_of(math.sqrt(count + 1) / z, delta) > epsilon * (1 - 1e-9)


def test_composition_adds_squares() -> None:
    """A 3 and a 4 make a 5."""
    assert gaussian.compose([3.0, 4.0]) == 5.0


@pytest.mark.parametrize("delta", [1e-4, 1e-5])
def test_classic_formula_fails_above_eight(delta: float) -> None:
    """The classic formula promises epsilon 15 and gives more, but keeps its word at 5."""
    for epsilon, keeps in ((0.5, True), (5.0, True), (15.0, False)):
        mu = 1.0 / gaussian.classic_std(epsilon, delta, 1.0)
        assert (gaussian.epsilon_of(mu, delta) <= epsilon) is keeps
