"""Audits of whole runs: what is measured is never above what is proved, and a wrong accountant is caught."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodes.learning.deferred_vectors import Matrix
from nodes.learning.release_stages import ReleaseStages
from privacy.accounting.curves.gaussian import epsilons_of
from privacy.audits.settings import Audit, Neighbours
from scenarios.auditing.audit_scenario import audit_scenario
from scenarios.auditing.audited_run import run_with_canaries
from scenarios.build import build
from scenarios.cli.main import main
from scenarios.loading.catalog import catalog
from scenarios.loading.load import load_scenario, parse_scenario
from scenarios.run_folder.digest import events_digest
from scenarios.schema import Scenario

pytestmark = pytest.mark.slow
WORLD = """
name: audited
seed: 3
rounds: 2
clients: 40
data: {name: synthetic, samples: 160, features: 6, classes: 3}
model: {kind: linear}
training: {epochs: 1}
evaluation: {every: 1000}
protocol: {kind: central, train_per_round: 40, deadline: 60 s}
network: {sharing: ideal, uplink: 1 MB/s, downlink: 1 MB/s, latency: 100 ms}
privacy:
  clip: {kind: flat, norm: 1.0}
  noise: {kind: gaussian, calibrate: {kind: rigorous, epsilon: 3, delta: 1.0e-5, view: local}}
"""
PROTOCOLS = {
    "central": "protocol.train_per_round=30",
    "leader": "protocol={kind: rotating_leader, train_per_round: 30, deadline: 60 s}",
    "gossip": "protocol={kind: gossip, train_per_round: 30, exchange_with: 8, deadline: 60 s}",
    "models": "protocol={kind: gossip, train_per_round: 30, exchange_with: 8, exchange: model, deadline: 60 s}",
}
AUDITS = 100
"""How many audits must never fail by chance, at most: eight random worlds, and each scenario of the catalog."""
SURE = 1.0 - 1e-6 / AUDITS
"""Confidence of each, so that any comparison of any of them is wrong with probability at most 1e-6."""


def world(*overrides: str) -> Scenario:
    """The scenario above."""
    return parse_scenario(WORLD, overrides=overrides)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(sorted(PROTOCOLS)),
    st.floats(1.0, 3.0),
    st.integers(0, 10_000),
    st.sampled_from([[], ["network.loss=0.2"], ["faults=[{kind: crash, who: 0-5, round: 2, phase: send}]"]]),
    st.sampled_from(["replace", "add_remove"]),
)
def test_nothing_measured_is_above_what_is_proved(
    kind: str, epsilon: float, seed: int, faults: list[str], neighbours: Neighbours
) -> None:
    """Random worlds, calibrated to epsilon 1 to 3."""
    scenario = world(PROTOCOLS[kind], f"privacy.noise.calibrate.epsilon={epsilon}", f"seed={seed}", *faults)
    settings = Audit(seed=seed, others="still", confidence=SURE, neighbours=neighbours)
    audit = audit_scenario(scenario, settings, threads=1)
    for view in audit["views"].values():
        assert view["epsilon"] <= view["proved"]
        assert not view["proof_refuted"]


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_canaries_move_no_event(kind: str) -> None:
    """Whatever the coins: the same events as without canaries, and every canary is as far away as allowed."""
    scenario = world(PROTOCOLS[kind])
    plain = build(scenario, threads=1)
    plain.run()
    one, first, _ = run_with_canaries(scenario, Audit(), 0, None, 1)
    other, second, _ = run_with_canaries(scenario, Audit(), 1, None, 1)
    assert events_digest(plain.log) == events_digest(one.log) == events_digest(other.log)
    assert (first.coins != second.coins).any()
    assert not np.allclose(first.directions, second.directions)


def test_scores_are_those_of_the_mechanism() -> None:
    """With a server that gets every update: twice the clip norm apart, with the noise that was asked for."""
    scenario = world("rounds=1", "clients=300", "protocol.train_per_round=300", "data.samples=1200")
    simulation, canaries, scores = run_with_canaries(scenario, Audit(others="still"), 0, None, 1)
    assert simulation.noise is not None
    found = np.zeros(300)
    for heard in scores.heard.values():
        assert heard.by == {simulation.world.server}
        found[heard.canary] += heard.score
    noise = found - canaries.coins
    assert abs(noise.mean()) < 5 * simulation.noise.noise_std[0] / np.sqrt(300)
    assert noise.std() == pytest.approx(simulation.noise.noise_std[0], rel=0.2)
    # The aggregate is their mean.
    (steps,) = scores.models.values()
    assert np.corrcoef(steps, canaries.coins)[0, 1] > 0


def test_an_accountant_that_is_wrong_by_three_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epsilon 3 is proved and holds; the same run with an accountant that prints 1 is refuted by one run."""
    scenario = world("rounds=1", "clients=600", "protocol.train_per_round=600", "data.samples=2400")
    audit = Audit(others="still", seed=5)
    honest = audit_scenario(scenario, audit, threads=1)["views"]["local"]
    assert honest["proved"] == pytest.approx(3.0, abs=0.01)
    assert 1.0 < honest["epsilon"] < 3.0
    name = "privacy.accounting.accountant.epsilons_of"
    monkeypatch.setattr(name, lambda mu, delta: epsilons_of(mu, delta) / 3.0)
    mutant = audit_scenario(scenario, audit, threads=1)["views"]["local"]
    assert mutant["proved"] == pytest.approx(1.0, abs=0.01)
    assert mutant["proof_refuted"]


def in_out(scenario: Scenario, seed: int = 5) -> dict[str, Any]:
    """The local view, measured by canaries that are in or out."""
    found = audit_scenario(scenario, Audit(others="still", seed=seed, neighbours="add_remove"), threads=1)
    view: dict[str, Any] = found["views"]["local"]
    return view


def test_in_out_canaries_are_compared_with_an_add_remove_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the distance of a replaced client, by an accountant that is not ours; a third of that is refuted."""
    scenario = world(
        *("rounds=2", "clients=600", "protocol.train_per_round=600", "data.samples=2400"),
        "privacy={clip: {kind: flat, norm: 0.5}, noise: {kind: gaussian, sigma: 0.5}}",
    )
    honest = in_out(scenario)
    # Two releases that move by C each, behind noise of deviation C: one with the root of one half of it.
    assert honest["proved"] == pytest.approx(get_epsilon_gaussian(1 / np.sqrt(2), 1e-5), rel=1e-4)
    assert honest["proved"] / 3 < honest["epsilon"] < honest["proved"]
    assert honest["estimate"] == pytest.approx(honest["proved"], rel=0.2)
    assert honest["published"] is None
    monkeypatch.setattr("privacy.accounting.accountant.epsilons_of", lambda mu, delta: epsilons_of(mu, delta) / 3.0)
    assert in_out(scenario)["proof_refuted"]


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_in_out_canaries_send_their_direction_or_nothing(kind: str) -> None:
    """The same events, a step of length C or none, and scores that lie on both sides of the middle."""
    scenario = world(PROTOCOLS[kind], "privacy.noise.calibrate.epsilon=500")
    plain = build(scenario, threads=1)
    plain.run()
    run, canaries, scores = run_with_canaries(scenario, Audit(neighbours="add_remove"), 0, None, 1)
    assert events_digest(plain.log) == events_digest(run.log)
    assert set(canaries.factors.tolist()) == {0.0, 1.0}
    right = [np.sign(heard.score) == canaries.coins[heard.canary] for heard in scores.heard.values()]
    assert np.mean(right) > 0.9


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("update=[{kind: clip, norm: 1.0}, {kind: laplace, scale: 30.0}]", "proved for Gaussian noise only"),
        ("update=[{kind: clip, norm: 1.0, clip_object: weights}, {kind: gaussian, sigma: 1}]", "not the middle"),
    ],
)
def test_where_no_add_remove_figure_is_proved_in_out_canaries_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], override: str, told: str
) -> None:
    """One message with the cure, exit code 2."""
    path = tmp_path / "world.yaml"
    path.write_text(WORLD, encoding="utf-8")
    asked = ["audit", str(path), "--set", "privacy={budget: {epsilon: 50}}", "--set", override]
    assert main([*asked, "--neighbours", "add_remove"]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "set `audit.neighbours: replace`" in error
    assert main([*asked, "--neighbours", "replace", "--others", "still"]) == 0


def test_noise_that_is_forgotten_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a mechanism that adds a third of the noise it declares."""
    scenario = world("rounds=1", "clients=300", "protocol.train_per_round=300", "data.samples=1200")
    usual = ReleaseStages.apply

    def quieter(self: ReleaseStages, updates: Matrix, *given: Any) -> Matrix:
        # Clipped alike; canaries and still clients are within the clip norm.
        clean = updates.copy()
        noisy = usual(self, updates, *given)
        return clean + (noisy - clean) / np.float32(3.0)

    monkeypatch.setattr(ReleaseStages, "apply", quieter)
    assert audit_scenario(scenario, Audit(others="still"), threads=1)["views"]["local"]["proof_refuted"]


def test_an_audit_of_a_run_is_added_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command or by the section; the run's own figures stay."""
    path = tmp_path / "world.yaml"
    path.write_text(WORLD, encoding="utf-8")
    assert main(["run", str(path), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    plain = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert main(["audit", str(tmp_path / "run"), "--others", "still", "--canaries", "20"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "20 of 40 clients sent canaries" in told
    assert "proved at most 3" in told
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    audit = summary.pop("audit")
    assert summary == plain
    assert audit["views"]["local"]["ceiling"] > 0
    section = ["run", str(path), "--out", str(tmp_path / "other"), "--set"]
    assert main([*section, "audit={canaries: 20, others: still}"]) == 0
    assert "audit receivers of updates: at least" in " ".join(capsys.readouterr().out.split())
    again = json.loads((tmp_path / "other" / "summary.json").read_text(encoding="utf-8"))
    assert again["digest"] == plain["digest"]
    assert again["audit"] == audit


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("privacy=none", "there is no epsilon to audit"),
        ("learning=none", "set `learning: torch`"),
        ("privacy={noise: {kind: gaussian, sigma: 1}}", "needs a bound on updates"),
    ],
)
def test_what_cannot_be_audited_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], override: str, told: str
) -> None:
    """One message with the cure, exit code 2; the section is refused by `check` too."""
    path = tmp_path / "world.yaml"
    path.write_text(WORLD, encoding="utf-8")
    assert main(["audit", str(path), "--set", override]) == 2
    assert told in capsys.readouterr().err
    assert main(["check", str(path), "--set", override, "--set", "audit.runs=1"]) == 2


asked = pytest.mark.skipif(not os.environ.get("PEERVEIL_AUDIT"), reason="takes minutes; run by make audit")


@asked
@pytest.mark.parametrize("name", sorted(catalog()))
def test_no_proof_of_the_catalog_is_refuted_by_canaries(name: str) -> None:
    """Every entry that adds noise, each view, by one run with all clients as canaries; a few rounds of large ones."""
    scenario = load_scenario(name)
    if name.endswith(("-mnist", "-cifar10")):
        scenario = load_scenario(name, ["rounds=3"])
    bounded = scenario.privacy is not None and np.isfinite(scenario.privacy.clip_norm)
    if not bounded or scenario.schedule.reads:
        pytest.skip("claims nothing, or cannot be audited by canaries")
    audit = audit_scenario(scenario, Audit(others="still", confidence=SURE))
    assert not any(view["proof_refuted"] for view in audit["views"].values())
