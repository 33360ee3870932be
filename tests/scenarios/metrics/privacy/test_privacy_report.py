"""A run whose noise cannot be justified says so, in one sentence, whatever the reason."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nodes.datasets.standardisation import POOLED
from scenarios.build import build
from scenarios.loading.load import load_scenario
from scenarios.metrics.headline.headline_rows import headline_rows
from scenarios.metrics.privacy.noise_share_report import add_share_views
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.metrics.privacy.privacy_verdict import verdict
from scenarios.planning.plan import make_plan
from scenarios.running.run import run_scenario

pytestmark = pytest.mark.slow
ADPDFL = "privacy={clip: flat, noise: {kind: gaussian, calibrate: {kind: adpdfl, epsilon: 8}}}"
PROVEN = "privacy={clip: flat, noise: {kind: gaussian, calibrate: {kind: rigorous, epsilon: 3}}}"
SHARES = "noise_shares={sigma_k: 5.0, unit_variance: 4.0, tau: 0, tau_ind: 0.5}"
CLIPPED = "privacy={clip: flat, noise: none}"
CASES = {
    "as published": (
        [ADPDFL],
        "published epsilon 8 (Theorem 8 of Weng 2025) is not a proven guarantee: the proven client-level",
    ),
    "addresses kept": (
        [ADPDFL, "anonymity.rehash=never"],
        "the published formula does not apply; the proven client-level epsilon against a single receiver is",
    ),
    "first come": (
        [ADPDFL, "protocol.selection=first_come"],
        "published epsilon 8 (Theorem 8 of Weng 2025) is not a proven guarantee: the proven client-level epsilon",
    ),
    "given noise": (["privacy.noise.sigma=0.01"], "proven client-level epsilon against a single receiver is 4.1e4 at"),
    "no clipping": (
        ["privacy={clip: none, noise: {kind: gaussian, sigma: 1}}"],
        "may learn all that an update tells, because updates are not clipped.",
    ),
    "no noise": (["privacy={clip: flat, noise: none}"], "all that an update tells, because no noise is added."),
    "no privacy": (["privacy=none"], "no differential privacy is proven: a receiver may learn"),
    "proven": ([PROVEN], "the proven client-level epsilon against a single receiver is 3 at delta 1e-05."),
}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_says_what_is_wrong(name: str) -> None:
    """One sentence each."""
    overrides, sentence = CASES[name]
    simulation = build(load_scenario("tiny", ["learning=none", *overrides]))
    simulation.run()
    told = verdict(report_privacy(simulation))
    assert sentence in told
    assert told.endswith(".")
    assert told.count(". ") == 0


def test_first_come_claims_no_sampling() -> None:
    """The fastest are chosen: the model view has no amplification."""
    first = "protocol={kind: central, train_per_round: 4, selection: first_come}"
    simulation = build(load_scenario("tiny", ["learning=none", PROVEN, first]))
    simulation.run()
    assert "no uniform sample" in report_privacy(simulation)["rigorous"]["no_amplification_because"]


def _model_view(*overrides: str) -> tuple[float, str]:
    """The figure of the model view of a central run in which two of six train, and why sampling was not counted."""
    central = "protocol={kind: central, train_per_round: 2, deadline: 60 s}"
    simulation = build(load_scenario("tiny", ["learning=none", PROVEN, central, "rounds=3", *overrides]))
    simulation.run()
    assert all(record["updates_missing"] == 0 for record in simulation.log.rounds)
    rigorous = report_privacy(simulation)["rigorous"]
    return float(rigorous["model"]), rigorous["no_amplification_because"]


@pytest.mark.parametrize(
    "risk",
    [
        "network.loss=1e-6",
        "availability={kind: churn, mean_up: 10000 h, mean_down: 1 s}",
        "faults=[{kind: crash, who: 5, start: 10000 h}]",
    ],
)
def test_sampling_counts_only_where_no_cohort_can_lose_an_update(risk: str) -> None:
    """Nothing is lost in these runs, but another cohort's mean might have had fewer updates, and so less noise."""
    sampled, why_not = _model_view("network.loss=0")
    assert why_not == ""
    unsampled, why_not = _model_view("network.loss=0", risk)
    assert "updates may be lost" in why_not
    assert unsampled > 1.2 * sampled


def test_churn_raises_the_sampling_rate() -> None:
    """A cohort drawn from those who are online is a larger share of them than of all clients."""
    crash = "faults=[{kind: crash, who: 0, round: 1, phase: train}]"
    leader = "protocol={kind: rotating_leader, train_per_round: 3, deadline: 5 s}"
    simulation = build(load_scenario("tiny", ["learning=none", PROVEN, crash, leader, "rounds=6"]))
    simulation.run()
    assert max(draw.rate for draw in simulation.observer.privacy.draws.values()) == pytest.approx(3 / 5)


@pytest.mark.parametrize("lost", [True, False])
def test_an_overspent_budget_of_the_model_view_is_told(tmp_path: Path, lost: bool) -> None:
    """A mean that lacks updates has less noise than its ledger entries presume: final table and summary say so."""
    overrides = [
        "learning=none",
        PROVEN.replace("epsilon: 3", "epsilon: 3, view: model"),
        "protocol={kind: central, train_per_round: 5, deadline: 5 s}",
        *(["faults=[{kind: crash, who: 0, round: 1, phase: train}]"] if lost else []),
    ]
    summary = run_scenario(load_scenario("tiny", overrides), tmp_path / "run")[0]
    rows = [text for label, text in headline_rows(summary) if label == "privacy" and "overspent" in text]
    assert (summary["privacy"]["rigorous"]["model"] > 3.01) == lost
    assert len(rows) == lost
    if lost:
        assert rows[0].startswith("the budget is overspent: model epsilon 3.")
        assert "is above 3, because" in rows[0]


@pytest.mark.parametrize(
    "protocol",
    [
        "{kind: rotating_leader, train_per_round: 4, include_own: false, deadline: 60 s}",
        "{kind: rotating_leader, train_per_round: 4, finish: {quorum: 0.5}, deadline: 60 s}",
        "{kind: central, train_per_round: 5, finish: {quorum: 0.5}, deadline: 60 s}",
    ],
)
def test_noise_for_the_model_view_is_that_of_the_updates_waited_for(protocol: str) -> None:
    """A mean of fewer updates than the cohort's, as planned, keeps to the budget."""
    overrides = ["learning=none", PROVEN.replace("epsilon: 3", "epsilon: 3, view: model"), f"protocol={protocol}"]
    simulation = build(load_scenario("tiny", overrides))
    simulation.run()
    # Without amplification: the calibration counts on none.
    found = simulation.observer.privacy.account(None)
    assert found is not None
    assert 1.0 < found[1].views(None).model.epsilon <= 3.0 * (1.0 + 1e-9)


def test_a_server_is_a_receiver() -> None:
    """Peers of a central run see only means, the server sees every update: the verdict speaks of the server."""
    simulation = build(load_scenario("tiny", ["learning=none", PROVEN, "protocol={kind: central, train_per_round: 4}"]))
    simulation.run()
    rigorous = report_privacy(simulation)["rigorous"]
    assert rigorous["receiver"] == rigorous["local"] > rigorous["peer"]["worst"]


def test_a_plug_in_is_not_accounted_for(tmp_path: Path) -> None:
    """It is listed, everything is infinite, and the verdict names it; in every round too."""
    (tmp_path / "plug_report.py").write_text(
        "from dataclasses import dataclass\nfrom nodes.protocols.gossip import Gossip\n"
        "@dataclass(frozen=True, slots=True, kw_only=True)\nclass Mine(Gossip):\n    pass\n",
        encoding="utf-8",
    )
    text = Path("scenarios/catalog/tiny.yaml").read_text(encoding="utf-8")
    path = tmp_path / "own.yaml"
    path.write_text(text.replace("kind: gossip", 'kind: "plug_report:Mine"'), encoding="utf-8")
    simulation = build(load_scenario(path, ["learning=none"], allow_plugins=True))
    simulation.run()
    found = report_privacy(simulation)
    assert found["rigorous"]["unaccounted_releases"] == ["plug-in plug_report:Mine does not declare what it releases"]
    assert found["rigorous"]["local"] == found["rigorous"]["record"]["model"] == float("inf")
    assert "because plug-in plug_report:Mine does not declare what it releases" in verdict(found)
    assert {row["epsilon_model"] for row in simulation.log.rounds} == {float("inf")}


@pytest.mark.parametrize("noise", [[PROVEN], [CLIPPED, SHARES]], ids=["noise", "noise shares"])
@pytest.mark.parametrize(("way", "proven"), [("true", False), ("per_client", True), ("false", True)])
def test_pooled_statistics_are_not_accounted_for(noise: list[str], way: str, proven: bool) -> None:
    """Every client's input depends on all records then, so nothing is proven, in any view, round or forecast."""
    data = f"data={{name: adult, standardise: {way}}}"
    scenario = load_scenario("tiny", ["learning=none", "model=linear", data, *noise])
    simulation = build(scenario)
    simulation.run()
    found = add_share_views(simulation, report_privacy(simulation))
    assert math.isfinite(found["rigorous"]["local"]) == proven
    assert math.isfinite(make_plan(scenario)["privacy"]["rigorous"]["local"]) == (proven and noise == [PROVEN])
    assert found["rigorous"]["unaccounted_releases"] == ([] if proven else [POOLED])
    if not proven:
        assert f", because {POOLED}." in verdict(found)
        assert {row["epsilon_model"] for row in simulation.log.rounds} == {math.inf}
        assert math.isinf(found["rigorous"]["peer"]["median"])
        assert math.isinf(found["rigorous"]["model"])
