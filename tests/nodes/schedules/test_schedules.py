"""Schedules: fixed, discounted, budgeted; against the paper's algorithm written out, and in small runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.schedules.budgets import Budgets, LossBudget
from nodes.schedules.discounting import DiscountedRounds, Discounting
from nodes.schedules.fixed import Fixed, ScheduleTerms
from privacy.accounting.accountant import Accountant
from privacy.accounting.content_log import RoundContents
from privacy.accounting.curves.zcdp import zcdp_budget, zcdp_epsilon
from privacy.accounting.setting import Setting
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from scenarios.metrics.privacy.privacy_report import report_privacy

TERMS = ScheduleTerms(rounds=12, clients=100, cohort=50)
LOSSES = st.lists(st.floats(0.1, 3.0), min_size=13, max_size=13)
SMALL = """
name: small
rounds: 8
clients: 6
seed: 4
data: {name: synthetic, samples: 120, test_samples: 60, features: 5, classes: 3}
model: {kind: linear}
training: {epochs: 2, batch_size: 10, learning_rate: 0.5}
protocol: {kind: central, train_per_round: 4, deadline: 20 s}
privacy:
  clip: {kind: flat, norm: 1.0}
  noise: {kind: gaussian, calibrate: {kind: wei_cdp, epsilon: 5, delta: 0.01}}
"""
LEADER = "protocol={kind: rotating_leader, train_per_round: 4, deadline: 20 s}"
GOSSIP = "protocol={kind: gossip, train_per_round: 4, exchange_with: 2, deadline: 20 s}"
NOISY = "schedule={kind: crd, beta: 0.6, driven_by: {kind: noisy_losses, bound: 2, sigma: 10}}"


def run(*overrides: str) -> Simulation:
    """A small run."""
    simulation = build(parse_scenario(SMALL, overrides=overrides), threads=1)
    simulation.run()
    return simulation


def final_models(simulation: Simulation) -> Any:
    """All models at the end."""
    learning = simulation.deferred_learning
    assert learning is not None
    return learning.state().models


def algorithm_2(rounds: int, beta: float, losses: list[float], rounding: str) -> tuple[list[float], list[float]]:
    """Algorithm 2 with (19), as the paper writes it, with a budget of `rounds`: sigma and T of each round."""
    sigmas: list[float] = []
    totals: list[float] = []
    t, total = 0, float(rounds)
    while t < total and t + 1 < len(losses):
        sigmas.append(math.sqrt((total - t) / (rounds - sum(1 / sigma**2 for sigma in sigmas))))
        totals.append(total)
        if losses[t + 1] >= losses[t]:
            total = beta**2 * (total - t) + t
            if rounding != "literal":
                total = float(max({"floor": math.floor, "ceil": math.ceil}[rounding](total), t + 1))
        t += 1
    return sigmas, totals


def play(schedule: Discounting, losses: list[float]) -> tuple[list[float], list[float], DiscountedRounds]:
    """Runs a schedule on losses, round by round."""
    rounds = schedule.begin(TERMS)
    rounds.note(0, losses[0])
    sigmas, totals, number = [], [], 1
    while not rounds.why_over(number) and number < len(losses):
        sigmas.append(rounds.noise_factor(number))
        totals.append(rounds.planned_rounds())
        rounds.note(number, losses[number])
        number += 1
    return sigmas, totals, rounds


@given(LOSSES, st.floats(0.3, 1.0), st.sampled_from(["literal", "floor", "ceil"]))
def test_discounting_is_the_printed_algorithm(losses: list[float], beta: float, rounding: Any) -> None:
    """Noise and planned rounds are those of Algorithm 2, and earlier rounds keep theirs."""
    sigmas, totals, rounds = play(Discounting(beta=beta, rounding=rounding), losses)
    expected = algorithm_2(12, beta, losses, rounding)
    np.testing.assert_allclose(sigmas, expected[0], rtol=1e-9)
    np.testing.assert_allclose(totals, expected[1], rtol=1e-9)
    assert [rounds.noise_factor(number + 1) for number in range(len(sigmas))] == sigmas


@given(LOSSES, st.floats(0.3, 1.0), st.sampled_from(["floor", "ceil"]))
def test_the_filter_never_overspends(losses: list[float], beta: float, rounding: Any) -> None:
    """Whatever the losses are, all rounds together spend at most what was preset."""
    sigmas, _, _ = play(Discounting(beta=beta, rounding=rounding), losses)
    assert sum(1 / sigma**2 for sigma in sigmas) <= 12 * (1 + 1e-9)


@given(LOSSES, st.sampled_from(["literal", "floor", "ceil"]))
def test_beta_one_changes_nothing(losses: list[float], rounding: Any) -> None:
    """Factors are exactly 1 in all twelve rounds."""
    sigmas, totals, _ = play(Discounting(beta=1.0, rounding=rounding), losses)
    assert sigmas == [1.0] * 12
    assert totals == [12.0] * 12


def test_a_loss_that_was_lost_decides_nothing() -> None:
    """Without a loss the planned rounds stay; the next one is compared with the last that was known."""
    rounds = Discounting(beta=0.5).begin(TERMS)
    for number, (loss, planned) in enumerate([(2.0, 12), (None, 12), (1.5, 12), (1.5, 4)]):
        rounds.note(number, loss)
        assert rounds.planned_rounds() == planned


@pytest.mark.parametrize(
    ("clients", "cohort", "server", "local", "rounds"),
    [
        (100, 50, LossBudget(epsilon=8, delta=1e-3, sigma=1.18), None, 10),
        (1000, 220, LossBudget(epsilon=8, delta=1e-5, sigma=1.43), None, 53),
        (100, 50, None, LossBudget(epsilon=0.5, delta=1e-6, sigma=8), 52),
        (1000, 220, LossBudget(epsilon=8, delta=1e-5, sigma=1.43), LossBudget(epsilon=0.5, delta=1e-6, sigma=2), 53),
        (100, 50, LossBudget(epsilon=8, delta=1e-3, sigma=1.18), LossBudget(epsilon=0.05, delta=1e-6, sigma=2), 0),
    ],
)
def test_the_first_budget_to_run_out_ends_the_run(
    clients: int, cohort: int, server: LossBudget | None, local: LossBudget | None, rounds: int
) -> None:
    """As in Weng's Table 3.1; `after` includes the round that overshoots, as its 11 and 54 rounds do."""
    terms = ScheduleTerms(rounds=100, clients=clients, cohort=cohort)
    found = Budgets(server=server, local=local).begin(terms)
    assert not found.why_over(rounds)
    assert "budget of the schedule is spent" in found.why_over(rounds + 1)
    printed = Budgets(server=server, local=local, stop="after").begin(terms)
    assert (printed.why_over(rounds + 1), bool(printed.why_over(rounds + 2))) == ("", True)


def test_a_fixed_schedule_has_the_rounds_of_the_scenario() -> None:
    """It never stops and never changes the noise."""
    rounds = Fixed().begin(TERMS)
    assert (rounds.why_over(12), rounds.noise_factor(5), rounds.planned_rounds()) == ("", 1.0, 12.0)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [(), (LEADER,)], ids=["server", "leader"])
def test_beta_one_learns_the_same_models(protocol: tuple[str, ...]) -> None:
    """CRD with beta 1 equals fixed rounds to the bit: models, noise of each release, epsilon by the paper."""
    fixed, discounted = run(*protocol), run(*protocol, "schedule={kind: crd, beta: 1}")
    np.testing.assert_array_equal(final_models(fixed), final_models(discounted))
    np.testing.assert_array_equal(fixed.log.privacy["noise_std"], discounted.log.privacy["noise_std"])
    assert report_privacy(fixed)["published"] == report_privacy(discounted)["published"]


@pytest.mark.slow
@pytest.mark.parametrize("overrides", [(), (LEADER,), (LEADER, NOISY), (GOSSIP, NOISY)])
def test_releases_have_the_noise_of_their_round(overrides: tuple[str, ...]) -> None:
    """Fewer rounds; each charge is that of the round's noise; rigorous is the preset budget and never the sum."""
    simulation = run("schedule={kind: crd, beta: 0.6}", *overrides)
    rounds, table = len(simulation.log.rounds), simulation.log.privacy
    assert rounds < 8
    assert simulation.proxy.outcome.stopped_because == f"the schedule discounted the rounds to {rounds}"
    assert simulation.noise is not None
    factors = [simulation.schedule.noise_factor(int(number)) for number in table["round"]]
    np.testing.assert_allclose(table["noise_std"], simulation.noise.noise_std[table["node"]] * factors)
    report = report_privacy(simulation)
    extra = (2 / 10) ** 2 if NOISY in overrides else 0.0
    rho = 8 * (4.0 / simulation.noise.noise_std.min() ** 2 + extra) / 2
    for view in ("local", "receiver", "model"):
        assert report["rigorous"][view] == pytest.approx(zcdp_epsilon(rho, 0.01), rel=1e-12)
    spent = sum(simulation.schedule.noise_factor(number + 1) ** -2 for number in range(rounds))
    assert report["published"]["epsilon"] == pytest.approx(5 * math.sqrt(spent / 8), rel=1e-12)


@pytest.mark.slow
def test_reported_losses_are_charged() -> None:
    """A report costs (bound / sigma)^2 on top of its release, in the ledger and in its limit."""
    simulation = run(NOISY, "privacy.budget={by: rigorous, epsilon: 2000}")
    table = simulation.log.privacy
    assert len(table)
    for client in simulation.clients:
        mine = table["noise_std"][table["node"] == client.node]
        assert client.ledger is not None
        assert client.ledger.mu2 == pytest.approx(sum(4.0 / mine**2 + 0.04))
        assert client.ledger.rule.mu2_limit == pytest.approx(2 * zcdp_budget(2000, 0.01))
    assert report_privacy(simulation)["rigorous"]["local"] == pytest.approx(2000)


@pytest.mark.slow
def test_a_corrected_claim_is_proved() -> None:
    """With the corrected noise at client level the rigorous figure is the claimed epsilon, discounted or not."""
    calibrate = "privacy.noise.calibrate={kind: wei_cdp, epsilon: 5, delta: 0.01, reading: corrected, unit: client}"
    report = report_privacy(run(calibrate, "schedule={kind: crd, beta: 0.6}"))
    assert report["rigorous"]["local"] == pytest.approx(5.0, rel=1e-12)
    assert report["published"]["epsilon"] <= 5.0 * (1 + 1e-12)


@pytest.mark.slow
def test_literal_rounding_proves_nothing() -> None:
    """It overspends in the last round, so the figure is infinite and says why."""
    rigorous = report_privacy(run("schedule={kind: crd, beta: 0.6, rounding: literal}"))["rigorous"]
    assert math.isinf(rigorous["local"])
    assert "rounding: literal" in rigorous["because"]["local"]


@pytest.mark.slow
def test_a_report_with_a_loss_and_an_assignment_with_the_rounds_are_longer() -> None:
    """Eight bytes each: members learn how many rounds are planned, the server reports the loss."""
    sizes = {}
    for name, schedule in (("fixed", "fixed"), ("crd", "{kind: crd, beta: 1}")):
        table = run(f"schedule={schedule}", "rounds=1").log.messages
        sizes[name] = int(table["size_bytes"][table["round"] == 1].sum())
    # Four members and the server get an assignment; the server alone reports a loss.
    assert sizes["crd"] - sizes["fixed"] == 8 * 5 + 8


def test_reports_of_losses_leave_no_room_for_more_releases() -> None:
    """The part of a preset budget that pays for reports is spent by them, even where a crash costs a second release."""
    setting = Setting(clients=1, spread="to_all", delta=1e-5, rounds=2, preset_rho=2.0, preset_reports=1.0)
    figures = []
    for releases in (2, 3):
        accountant = Accountant(setting)
        for number in range(releases):
            one = np.ones(1)
            accountant.add(
                RoundContents(
                    round_number=number + 1, clients=np.array([0]), sensitivity=one, variance=one, sums=one[None]
                )
            )
        figures.append(accountant.views().local)
    assert figures[0].epsilon == zcdp_epsilon(2.0, 1e-5)
    assert figures[1].how == "inf"
    assert "spent more than the preset budget" in figures[1].because


def test_every_row_of_a_run_that_reads_losses_states_the_preset_budget() -> None:
    """As the final figure does: the sum that was realised depends on outputs."""
    simulation = run(NOISY)
    final = report_privacy(simulation)["rigorous"]["local"]
    assert math.isfinite(final)
    np.testing.assert_allclose(simulation.log.privacy["rigorous"], final)


def test_no_row_claims_what_the_summary_does_not() -> None:
    """A last round that overspends leaves every release without a proof, in the log as in the summary."""
    simulation = run("schedule={kind: crd, beta: 0.6, rounding: literal}")
    assert math.isinf(report_privacy(simulation)["rigorous"]["local"])
    assert np.isinf(simulation.log.privacy["rigorous"]).all()
