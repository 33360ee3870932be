"""The ledger never overspends, and never stops a run that was planned for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.curves.gaussian import epsilon_of
from privacy.accounting.ledger import Ledger, LedgerError, LedgerRule, ledger_rule
from privacy.calibration.noise_plan import PlanContext
from privacy.calibration.strategies import AdpdflCalibration, DpFedAvgCalibration, RigorousCalibration
from privacy.mechanisms.clip_and_noise import FlatClip, GaussianNoise
from privacy.settings import Budget, Privacy
from privacy.stages.release_plan import plan_noise


def context(rounds: int = 50, clients: int = 100, cohort: int = 70, **changes: object) -> PlanContext:
    """A run of Weng's size."""
    fixed: dict[str, object] = {"exchange_with": 30, "records": np.full(clients, 600), "topology": "gossip"}
    return PlanContext(clients=clients, train_per_round=cohort, rounds=rounds, **{**fixed, **changes})  # type: ignore[arg-type]


def spent_epsilon(ledger: Ledger) -> float:
    """Epsilon of all releases so far, to an observer who has them all."""
    return epsilon_of(math.sqrt(ledger.mu2), ledger.rule.delta)


def private(noise: GaussianNoise, **budget: object) -> Privacy:
    """A section with that noise."""
    return Privacy(clip=FlatClip(norm=1.0), noise=noise, budget=Budget(**budget))  # type: ignore[arg-type]


def release_all(ledger: Ledger, std: float, most: int) -> int:
    """Releases in every round until the ledger refuses; how many there were."""
    done = 0
    while done < most and ledger.may_release(done + 1):
        ledger.charge(done + 1, std, 2.0)
        done += 1
    return done


@pytest.mark.slow
@given(st.integers(1, 300), st.floats(0.1, 20.0), st.sampled_from(["gossip", "pseudo_central"]))
def test_published_budget_runs_exactly_the_planned_rounds(rounds: int, epsilon: float, topology: str) -> None:
    """Calibrated by Theorem 8 for T rounds, every client may release in T rounds and not in T + 1."""
    privacy = private(GaussianNoise(calibrate=AdpdflCalibration(epsilon=epsilon)))
    plan = plan_noise(privacy, context(rounds, topology=topology))
    ledger = Ledger(ledger_rule(privacy, plan), plan.noise_std[0], plan.sensitivity)
    assert release_all(ledger, plan.noise_std[0], rounds + 5) == rounds
    assert ledger.published_epsilon == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.slow
@given(st.integers(1, 300), st.floats(0.05, 100.0), st.floats(1e-9, 0.1), st.sampled_from(["local", "model"]))
def test_rigorous_budget_runs_exactly_the_planned_releases(
    rounds: int, epsilon: float, delta: float, view: str
) -> None:
    """Calibrated exactly for T releases, a client makes T and not T + 1."""
    calibration = RigorousCalibration(epsilon=epsilon, delta=delta, view=view)  # type: ignore[arg-type]
    privacy = private(GaussianNoise(calibrate=calibration))
    plan = plan_noise(privacy, context(rounds, topology="central"))
    ledger = Ledger(ledger_rule(privacy, plan), plan.noise_std[0], plan.sensitivity)
    assert release_all(ledger, plan.noise_std[0], rounds + 5) == rounds
    if view == "local":
        assert spent_epsilon(ledger) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_dp_fedavg_budget_runs_the_planned_rounds(accountant: str) -> None:
    """The sampled accountant allows the rounds it was calibrated for."""
    privacy = private(GaussianNoise(calibrate=DpFedAvgCalibration(epsilon=4.0, accountant=accountant)))  # type: ignore[arg-type]
    plan = plan_noise(privacy, context(20, cohort=20, topology="central"))
    ledger = Ledger(ledger_rule(privacy, plan), plan.noise_std[0], plan.sensitivity)
    assert release_all(ledger, plan.noise_std[0], 40) == 20


@pytest.mark.slow
@given(
    st.floats(0.1, 50.0),
    st.lists(st.tuples(st.floats(0.1, 100.0), st.booleans(), st.booleans()), min_size=1, max_size=60),
)
def test_rigorous_ledger_never_overspends(epsilon: float, attempts: list[tuple[float, bool, bool]]) -> None:
    """Whatever noise, retransmissions and re-elections come: what was charged stays within epsilon."""
    privacy = private(GaussianNoise(sigma=1.0), by="rigorous", epsilon=epsilon)
    rule = ledger_rule(privacy, plan_noise(privacy, context()))
    ledger = Ledger(rule, 1.0, 2.0)
    for number, (std, resend, skip) in enumerate(attempts):
        before = (ledger.mu2, ledger.releases)
        try:
            assert ledger.charge(number + 1, std, 2.0, number + (10 * number if skip else 0)) in (True, False)
        except LedgerError:
            assert (ledger.mu2, ledger.releases) == before
        if resend and ledger.releases:
            spent = ledger.mu2
            assert ledger.charge(number + 1, std, 2.0, ledger.last_number) is False
            assert ledger.mu2 == spent
        assert spent_epsilon(ledger) <= epsilon * (1 + 1e-6)


@pytest.mark.slow
@given(st.integers(1, 100), st.lists(st.integers(1, 200), max_size=30))
def test_published_ledger_never_charges_beyond_the_last_round(last: int, rounds: list[int]) -> None:
    """Rounds may come in any order and with gaps; none after the last is charged."""
    ledger = Ledger(LedgerRule(by="published", delta=1e-5, max_round=last), 1.0, 2.0)
    for number in rounds:
        assert ledger.may_release(number) is (number <= last)
        if number > last:
            with pytest.raises(LedgerError, match="would exceed"):
                ledger.charge(number, 1.0, 2.0)
        else:
            assert ledger.charge(number, 1.0, 2.0)
    assert ledger.last_round <= last


def test_a_refusal_comes_before_the_release_that_would_exceed() -> None:
    """At multiplier 4 and (8, 1e-5) exactly 44 releases fit (a reference value)."""
    privacy = private(GaussianNoise(sigma=8.0), by="rigorous", epsilon=8.0)
    ledger = Ledger(ledger_rule(privacy, plan_noise(privacy, context())), 8.0, 2.0)
    assert release_all(ledger, 8.0, 100) == 44
    assert ledger.releases == 44


def test_no_noise_or_no_clipping_is_infinite() -> None:
    """Without noise, or without a bound, one release costs everything."""
    for std, sensitivity in ((0.0, 2.0), (1.0, math.inf)):
        ledger = Ledger(LedgerRule(by="none", delta=1e-5), std, sensitivity)
        ledger.charge(1, std, sensitivity)
        assert spent_epsilon(ledger) == math.inf


def test_ledgers_are_small() -> None:
    """A ledger has no dictionary: a run of a million peers has as many."""
    assert not hasattr(Ledger(LedgerRule(by="none", delta=1e-5), 1.0, 2.0), "__dict__")
