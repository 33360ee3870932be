"""Lower bounds on epsilon: published values, brute force, and mechanisms whose epsilon is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from privacy.accounting.curves.gaussian import epsilon_of
from privacy.audits.one_run import one_run_epsilon, one_run_mu, p_value
from privacy.audits.repeated_runs import repeated_ceiling, repeated_epsilon
from privacy.audits.verdict import CanaryScores, lower_bounds

DELTA = 1e-5


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "delta", "epsilon"),
    [
        (100, 100, 75, 0.0, 0.702214),
        (100, 100, 75, 1e-4, 0.699467),
        (1000, 100, 75, 1e-4, 0.672985),
        (100_000, 1510, 1439, 1e-5, 2.675851),
        (16, 16, 16, 1e-5, 1.5798),
        (100, 100, 100, 1e-5, 3.4902),
        (1000, 1000, 1000, 1e-5, 5.7823),
    ],
)
def test_one_run_bounds_are_the_published_ones(
    canaries: int, guesses: int, right: int, delta: float, epsilon: float
) -> None:
    """Steinke et al. 2023, at 95%; the last three are what perfect guesses can reach."""
    assert one_run_epsilon(canaries, guesses, right, delta, 0.05) == pytest.approx(epsilon, abs=5e-5)


def test_p_values_by_brute_force() -> None:
    """The sum of binomial probabilities, term by term; without delta perfect guesses have a closed form."""
    assert p_value(100, 100, 75, math.log(3), 0.0) == pytest.approx(0.553471, abs=1e-6)
    q = 1 / (1 + math.exp(-1.3))
    tail = [sum(math.comb(20, k) * q**k * (1 - q) ** (20 - k) for k in range(v, 21)) for v in range(21)]
    slope = max((tail[18 - i] - tail[18]) / i for i in range(1, 19))
    assert p_value(50, 20, 18, 1.3, 1e-3) == pytest.approx(tail[18] + 2 * 50 * 1e-3 * slope, rel=1e-9)
    assert one_run_epsilon(30, 30, 30, 0.0, 0.05) == pytest.approx(-math.log(0.05 ** (-1 / 30) - 1), abs=1e-9)


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "epsilon"),
    [(100, 100, 75, 1.5736), (1000, 1000, 750, 1.8189), (100_000, 1510, 1439, 3.3091), (1000, 100, 95, 3.3233)],
)
def test_the_gaussian_form_is_sharper(canaries: int, guesses: int, right: int, epsilon: float) -> None:
    """Mahloujifar et al. 2024, at 95% and delta 1e-5."""
    mu = one_run_mu(canaries, guesses, right, 0.05)
    assert epsilon_of(mu, DELTA) == pytest.approx(epsilon, abs=5e-4)
    assert epsilon_of(mu, DELTA) > one_run_epsilon(canaries, guesses, right, DELTA, 0.05)


def test_the_estimate_by_client_canaries() -> None:
    """Cosines of mean 0.01 in 199,210 dimensions against unsent ones have mu 4.4633 and epsilon 28.30; +v against -v
    at half that mean has the same.
    """
    spread = 1 / math.sqrt(199_210)
    offsets = np.array([-1.0, 1.0] * 500) * spread * math.sqrt(999 / 1000)
    coins = np.array([1.0, 1.0, -1.0, -1.0] * 250)
    found = CanaryScores(scores=(coins * (0.005 + offsets))[None, :], coins=coins[None, :])
    assert lower_bounds(found, DELTA, 0.05, gaussian=False)["estimate"] == pytest.approx(28.2966, abs=0.001)


def play(mu: float, runs: int, canaries: int, seed: int) -> CanaryScores:
    """Scores of a Gaussian mechanism: coins +-1, moved by mu between the two."""
    rng = np.random.default_rng(seed)
    coins = rng.choice([-1.0, 1.0], (runs, canaries))
    return CanaryScores(scores=coins * mu / 2 + rng.standard_normal((runs, canaries)), coins=coins)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.27, 0.72, 2.0])
def test_bounds_hold_for_a_known_mechanism(mu: float) -> None:
    """At error 1e-6 no bound is above the true epsilon; with many canaries it is not far below."""
    true = epsilon_of(mu, DELTA)
    for seed in range(8):
        assert lower_bounds(play(mu, 1, 200, seed), DELTA, 1e-6, gaussian=True)["epsilon"] <= true
    found = lower_bounds(play(mu, 2, 3_000, 99), DELTA, 0.05, gaussian=True)
    assert 0.3 * true < found["epsilon"] <= true
    assert found["methods"]["one run"]["epsilon"] <= found["epsilon"]
    assert found["estimate"] == pytest.approx(true, rel=0.15)


@pytest.mark.slow
def test_errors_are_as_rare_as_promised() -> None:
    """At the true mu, bounds at 80% confidence are wrong in fewer than a fifth of 40 audits, up to chance."""
    true = epsilon_of(1.0, DELTA)
    wrong = sum(
        lower_bounds(play(1.0, 1, 100, seed), DELTA, 0.2, gaussian=True)["epsilon"] > true for seed in range(40)
    )
    assert wrong <= binom.ppf(1 - 1e-6, 40, 0.2)


@pytest.mark.parametrize(("without", "with_it"), [(400, 400), (60, 40), (30, 71), (2, 98), (1, 50)])
def test_repeated_runs_reach_their_ceiling_and_no_more(without: int, with_it: int) -> None:
    """Scores that tell the inputs apart for certain, however coins divided the runs."""
    found = repeated_epsilon(np.zeros(without), np.ones(with_it), DELTA, 0.05)
    assert found == pytest.approx(repeated_ceiling(without, with_it, DELTA, 0.05), abs=1e-9)


def test_repeated_runs_of_equal_inputs_prove_nothing() -> None:
    """Nor does one run of each."""
    rng = np.random.default_rng(1)
    assert repeated_epsilon(rng.standard_normal(400), rng.standard_normal(400), DELTA, 0.05) < 0.2
    assert repeated_epsilon(np.zeros(1), np.ones(1), DELTA, 0.05) == 0.0


def test_canaries_that_a_view_does_not_see_are_not_guessed() -> None:
    """NaN scores count as no canary at all."""
    some = play(3.0, 1, 100, 1)
    scores = np.concatenate([some.scores, np.full((1, 50), np.nan)], axis=1)
    more = CanaryScores(scores=scores, coins=np.concatenate([some.coins, np.ones((1, 50))], axis=1))
    one, other = (lower_bounds(found, DELTA, 0.05, gaussian=True) for found in (some, more))
    assert one["epsilon"] == other["epsilon"] > 0
    nothing = CanaryScores(scores=np.full((1, 5), np.nan), coins=np.ones((1, 5)))
    assert lower_bounds(nothing, DELTA, 0.05, gaussian=True)["epsilon"] == 0.0
