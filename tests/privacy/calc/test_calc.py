"""Facts about the calculator's formulas that single reference cases do not show."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.curves import shuffle
from privacy.calc import CALC
from privacy.calc.inputs import answer, refuse
from privacy.mechanisms import binomial
from privacy.noise_shares import seed_expansion, variance
from privacy.papers import cdp_discounting, dp_fedasgp, membership_bounds

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "reference_cases.json").read_text())["cases"]


def test_every_kind_has_cases_and_a_line_of_help() -> None:
    """No kind without a reference case, none without an explanation that fits a line."""
    assert {case["kind"] for case in CASES} == set(CALC)
    for formula in CALC.values():
        first = (inspect.getdoc(formula) or "").splitlines()[0]
        assert 20 < len(first) < 120
        assert first.endswith(".")


def test_warnings_name_the_condition() -> None:
    """Out of a proven range the number comes with the condition; inside there is no such key."""
    assert "epsilon < 1" in CALC["gaussian_sigma"](epsilon=2.0, delta=1e-5)["warnings"][0]
    assert "warnings" not in CALC["gaussian_sigma"](epsilon=0.5, delta=1e-5)
    assert answer({"x": 1}, (True, "fine")) == {"x": 1}
    refuse((True, "fine"))


def test_seventy_clients_hide_little() -> None:
    """Clone reduction: 70 clients turn eps0 = 1 into 0.68 and leave 2 nearly as it is."""
    assert shuffle.clone_epsilon(1.0, 70, 1e-5) == pytest.approx(0.68, abs=0.01)
    assert shuffle.clone_epsilon(2.0, 70, 1e-5) == pytest.approx(2.0, rel=1e-2)


@pytest.mark.slow
@given(st.floats(0.05, 2.0), st.integers(1, 300), st.integers(1, 300))
def test_more_users_hide_more(eps0: float, one: int, other: int) -> None:
    """Shuffling never hurts, and epsilon falls with the crowd."""
    few, many = sorted((one, other))
    assert shuffle.clone_epsilon(eps0, many, 1e-5) <= shuffle.clone_epsilon(eps0, few, 1e-5) + 1e-8 <= eps0 + 2e-8


@pytest.mark.slow
@given(st.floats(0.0, 700.0), st.floats(0.0, 0.5))
def test_ceilings_are_consistent(epsilon: float, delta: float) -> None:
    """Accuracy is half plus half the advantage, up to delta; both are probabilities."""
    accuracy, advantage = (
        membership_bounds.max_balanced_accuracy(epsilon, delta),
        membership_bounds.max_advantage(epsilon, delta),
    )
    assert 0.5 <= accuracy <= 1.0
    assert accuracy == pytest.approx(0.5 + advantage / 2, abs=1e-12)


@pytest.mark.slow
@given(
    st.sampled_from(["floor", "ceil"]),
    st.integers(1, 40),
    st.floats(0.1, 1.0),
    st.lists(st.floats(0.1, 3.0), min_size=2, max_size=60),
)
def test_rounded_discounting_never_overspends(rounding: str, rounds: int, beta: float, losses: list[float]) -> None:
    """With whole T the sum of 1/sigma^2 stays within the budget, whatever the losses do."""
    run = cdp_discounting.discounted_rounds(7.0, rounds, beta, losses, rounding)  # type: ignore[arg-type]
    assert run.budget_ratio <= 1.0 + 1e-9
    assert not run.overspent
    assert len(run.sigmas) <= min(rounds, len(losses) - 1)


def test_corrected_sigma_is_larger_by_the_known_factor() -> None:
    """Published sigma is too small by (1 + sqrt(1 + eps/L)) / 2."""
    published = cdp_discounting.published_sigma(0.6, 0.5, 100, 10.0, 0.01)
    factor = (1 + math.sqrt(1 + 10.0 / math.log(100))) / 2
    assert cdp_discounting.corrected_sigma(0.6, 0.5, 100, 10.0, 0.01) == pytest.approx(published * factor)


@pytest.mark.parametrize("lost", [(), (3,), (0, 5), (1, 2, 3)])
def test_residual_variance_by_simulation(lost: tuple[int, ...]) -> None:
    """The sum of the survivors' uploads has the variance that counting shares gives."""
    draws = np.random.default_rng(5)
    shares, tau, size = variance.circulant_shares(6, 3), 0.6, 40_000
    total = np.zeros(size)
    for sender, receiver in shares:
        noise, factor = draws.standard_normal(size), 1.0 + tau * draws.standard_normal(size)
        total += noise * (sender not in lost) - factor * noise * (receiver not in lost)
    assert total.var() == pytest.approx(variance.residual_variance(shares, lost, 1.0, tau), rel=0.05)


def test_random_receivers_average_to_the_closed_form() -> None:
    """All ways to lose two of five on the complete graph: the mean equals the formula."""
    shares = variance.circulant_shares(5, 4)
    mean = variance.residual_variance(shares, (0, 1), 0.5, 0.3)
    assert mean == pytest.approx(variance.expected_residual_variance(5, 4, 0.5, 0.3, 2))


def test_independent_noise_repairs_perfect_cancelling() -> None:
    """With tau = 0 the joint view is infinite; independent noise and large shares bring it to Delta/(sqrt(m) tau)."""
    shares = variance.circulant_shares(8, 4)
    bare = variance.upload_covariance(shares, [1.0] * 32, 8, 1.0, 0.0)
    mended = variance.upload_covariance(shares, [1.0] * 32, 8, 1e6, 0.04)
    assert variance.joint_mu(bare, 1.0, 3) == math.inf
    assert variance.joint_mu(mended, 1.0, 3) == pytest.approx(1.0 / (math.sqrt(8) * 0.2), rel=1e-4)


def test_seed_expansion_depends_on_all_its_names() -> None:
    """Another round, sender, receiver or index gives other noise; a longer vector begins with the shorter."""
    seed = bytes(range(32))
    base = seed_expansion.unit_normals(seed, 1, 2, 3, 4, 5)
    for names in ((2, 2, 3, 4), (1, 3, 3, 4), (1, 2, 4, 4), (1, 2, 3, 5)):
        assert not np.array_equal(base, seed_expansion.unit_normals(seed, *names, 5))
    np.testing.assert_array_equal(seed_expansion.unit_normals(seed, 1, 2, 3, 4, 50)[:5], base)
    many = seed_expansion.unit_normals(seed, 1, 2, 3, 4, 50_000)
    assert (abs(many.mean()), many.std()) == (pytest.approx(0.0, abs=0.02), pytest.approx(1.0, abs=0.02))


@given(st.lists(st.tuples(st.floats(1.0, 1e4), st.floats(0.01, 5.0)), min_size=1, max_size=20))
def test_asgp_weights_sum_to_one(clients: list[tuple[float, float]]) -> None:
    """Weights already sum to one, so there is no further 1/k."""
    records, losses = np.array(clients).T
    assert dp_fedasgp.weights(records, losses).sum() == pytest.approx(1.0)


@given(st.integers(1, 50), st.integers(0, 20), st.integers(1, 20))
def test_asgp_threshold_is_one_of_the_values(d: int, t: int, rounds: int) -> None:
    """The threshold is an entry, and at least a tenth of the entries stay at or above it."""
    values = np.random.default_rng(d).standard_normal(d)
    found = dp_fedasgp.threshold(values, min(t, rounds), rounds)
    assert found in values
    assert int((values >= found).sum()) >= max(1, d // 10)


@pytest.mark.slow
@given(st.integers(1, 200), st.floats(0.05, 0.95), st.integers(0, 5), st.floats(0.0, 2.0))
def test_binomial_delta_is_a_probability_and_falls_with_epsilon(
    trials: int, p: float, shift: int, epsilon: float
) -> None:
    """Exact delta: 0 without a shift, within [0, 1], smaller for larger epsilon, equal for both directions."""
    noise = binomial.BinomialNoise(trials=trials, p=p)
    delta = noise.scalar_delta(shift, epsilon)
    assert -1e-12 <= delta <= 1.0 + 1e-9
    assert noise.scalar_delta(shift, epsilon + 0.5) <= delta + 1e-12
    assert noise.scalar_delta(-shift, epsilon) == pytest.approx(delta, abs=1e-10)
    assert shift or delta <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "inputs", "expected"),
    [
        (
            "max_rounds_poisson",
            {"q": 0.1, "noise_multiplier": 1e30, "epsilon": 4.0, "delta": 1e-5},
            "T_pld is at least 1000000; beyond that it is not computed",
        ),
        (
            "poisson_sampled_gaussian_eps",
            {"q": 0.01, "noise_multiplier": 1.0, "steps": 10**9, "delta": 1e-5},
            "eps_pld is not computed for more than 1000000 steps",
        ),
        (
            "dp_fedavg_noise_multiplier",
            {"q": 0.1, "rounds": 10**9, "epsilon": 0.5, "delta": 1e-5},
            "z_pld is not computed for more than 1000000 rounds",
        ),
    ],
)
def test_extreme_inputs_end_with_what_can_be_computed(kind: str, inputs: dict[str, Any], expected: str) -> None:
    """They ran for hours: the losses of one step are finer than the grid, and there are too many steps."""
    found = CALC[kind](**inputs)
    assert found["warnings"] == [expected]
    assert [name for name, value in found.items() if value is None] == [expected.split()[0]]
