"""The demo learns: all four scenarios end above 0.6 mean accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scenarios.loading.load import load_scenario
from scenarios.running.run import run_scenario

DEMO = ("adpdfl-gossip", "adpdfl-leader", "gossip-plain", "leader-plain")


@pytest.fixture(scope="session", params=DEMO)
def learned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """One run of each, learned once per session; sealing is counted, which moves no figure."""
    # Sealing for real gives the same digests (tests/scenarios/running/test_run.py) and would cost a minute here.
    overrides = ["anonymity.sealed=sizes", "evaluation.every=0"]
    out = tmp_path_factory.mktemp("demo") / request.param
    return run_scenario(load_scenario(request.param, overrides), out)[0]


@pytest.mark.slow
def test_the_demo_learns(learned: Mapping[str, Any]) -> None:
    """Mean accuracy over the clients at the end, and that of the collected model; all rounds were run."""
    assert learned["stopped_because"] == "all rounds done"
    assert learned["accuracy"]["mean"] > 0.6
    assert learned["collected"]["accuracy"] > 0.6
