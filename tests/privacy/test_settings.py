"""The `privacy` section: cheap to import, and its defaults."""

from __future__ import annotations

import subprocess
import sys

import pytest

from privacy.calibration.strategies import AdpdflCalibration, DpFedAvgCalibration, RigorousCalibration
from privacy.mechanisms.clip_and_noise import FlatClip, GaussianNoise
from privacy.settings import Budget, Privacy


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
    """A clipping of somebody else's counts as unbounded until it says `norm_bound`."""
    privacy = Privacy(clip=object(), noise=GaussianNoise(sigma=1.0))  # type: ignore[arg-type]
    assert privacy.clip_norm == float("inf")
    assert privacy.problems() == []
