"""The `privacy` section: cheap to import, and its defaults."""

from __future__ import annotations

import subprocess
import sys

import pytest

from p2p.config.errors import UserError
from privacy.calibration.strategies import AdpdflCalibration, DpFedAvgCalibration, RigorousCalibration
from privacy.mechanisms.clip_and_noise import FlatClip, GaussianNoise
from privacy.settings import Budget, Privacy
from scenarios.build import build
from scenarios.loading.load import load_scenario
from scenarios.metrics.privacy.privacy_report import report_privacy


@pytest.mark.slow
def test_reading_a_scenario_imports_nothing_heavy() -> None:
    """Checking a privacy section needs neither scipy nor an accountant."""
    code = (
        "import sys\n"
        "from privacy.settings import Privacy\n"
        "import privacy.accounting.ledger, privacy.calibration.noise_plan\n"
        "Privacy().problems()\n"
        "print(sorted({'scipy', 'dp_accounting', 'torch', 'networkx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_budget_follows_the_calibration() -> None:
    """Published formulas are charged as published, provable noise by proof, given noise not at all."""
    for calibration, by in (
        (AdpdflCalibration(epsilon=3.0, delta=1e-4), "published"),
        (DpFedAvgCalibration(epsilon=3.0, delta=1e-4), "published"),
        (RigorousCalibration(epsilon=3.0, delta=1e-4), "rigorous"),
    ):
        privacy = Privacy(clip=FlatClip(), noise=GaussianNoise(calibrate=calibration))
        assert privacy.resolved_budget() == (by, 3.0, 1e-4)
        assert privacy.problems() == []
    given = Privacy(clip=FlatClip(), noise=GaussianNoise(sigma=1.0), budget=Budget(epsilon=2.0), delta=1e-3)
    assert given.resolved_budget() == ("rigorous", 2.0, 1e-3)


def test_a_plug_in_that_states_no_bound_has_none() -> None:
    """A clipping of a plug-in counts as unbounded until it says `norm_bound`."""
    privacy = Privacy(clip=object(), noise=GaussianNoise(sigma=1.0))  # type: ignore[arg-type]
    assert privacy.clip_norm == float("inf")
    assert privacy.problems() == []


EXTREMES = [
    ("privacy.clip.norm", "privacy={clip: {kind: flat, norm: VALUE}, noise: {kind: gaussian, sigma: 1.0}}"),
    ("privacy.noise.sigma", "privacy={clip: {kind: flat, norm: 1.0}, noise: {kind: gaussian, sigma: VALUE}}"),
    (
        "privacy.noise.calibrate.epsilon",
        "privacy={clip: flat, noise: {kind: gaussian, calibrate: {kind: rigorous, epsilon: VALUE}}}",
    ),
    (
        "privacy.budget.epsilon",
        "privacy={clip: flat, noise: {kind: gaussian, sigma: 1}, budget: {by: rigorous, epsilon: VALUE}}",
    ),
    ("noise_shares.sigma_k", "noise_shares={sigma_k: VALUE, tau: 0}"),
    ("noise_shares.tau_ind", "noise_shares={sigma_k: 1.0, tau: 0, tau_ind: VALUE}"),
]


@pytest.mark.parametrize(("key", "override"), EXTREMES)
@pytest.mark.parametrize("value", ["1.0e-300", "1.0e+300"])
def test_scales_beyond_single_precision_are_refused(key: str, override: str, value: str) -> None:
    """Their squares overflow or vanish; runs ended in a traceback."""
    with pytest.raises(UserError) as caught:
        load_scenario("tiny", ["learning=none", override.replace("VALUE", value)])
    expected = f"{key} = {float(value):g}: must be between 1e-30 and 1e+30"
    assert any(line.startswith(expected) for line in caught.value.problems)


@pytest.mark.parametrize(
    "protocol", ["{kind: gossip, train_per_round: 4, exchange_with: 2}", "{kind: central, train_per_round: 4}"]
)
@pytest.mark.parametrize(("norm", "sigma"), [("1.0e-30", "1.0e+30"), ("1.0e+30", "1.0e-30")])
def test_the_ends_of_the_range_can_be_run(protocol: str, norm: str, sigma: str) -> None:
    """Epsilon may be 0 or infinite there, and no arithmetic fails."""
    privacy = f"privacy={{clip: {{kind: flat, norm: {norm}}}, noise: {{kind: gaussian, sigma: {sigma}}}}}"
    simulation = build(load_scenario("tiny", ["learning=none", privacy, f"protocol={protocol}"]))
    simulation.run()
    local = report_privacy(simulation)["rigorous"]["local"]
    assert (local == 0.0) == (norm == "1.0e-30")


def test_a_calibration_that_cannot_be_computed_is_told() -> None:
    """Before the run, with the key to change."""
    override = "privacy={clip: flat, noise: {kind: gaussian, calibrate: {kind: dp_fedavg, epsilon: 1.0e-10}}}"
    with pytest.raises(UserError, match=r"privacy.noise.calibrate.epsilon = 1e-10: no noise that can be computed"):
        build(load_scenario("tiny", ["learning=none", "protocol={kind: central, train_per_round: 4}", override]))
