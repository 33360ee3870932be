"""Golden runs are, event by event, those that were written down."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
RUNS = sorted(path.stem for path in HERE.glob("*.yaml"))


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """The functions of `regenerate.py`, which is run by its path."""
    return runpy.run_path(str(HERE / "regenerate.py"))


@pytest.mark.slow
def test_tiny_is_what_it_was(script: dict[str, Any]) -> None:
    """If this change is meant: `python tests/golden/regenerate.py`, and say why in the commit."""
    expected = json.loads(script["FILE"].read_text(encoding="utf-8"))
    found = script["golden_rows"]()
    assert sorted(found) == sorted(expected)
    for name, rows in expected.items():
        assert found[name] == rows, name


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_what_it_was(script: dict[str, Any], name: str) -> None:
    """Counts first, since they say more than a digest; regenerate as above."""
    expected = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    found = json.loads(json.dumps(script["golden_summary"](name)))
    for part in ("messages", "rounds", "rows"):
        assert found[part] == expected[part]
    assert found == expected


def test_golden_runs_cover_what_users_run() -> None:
    """Loss, a leader, faults, noise shares, a server, and a graph that changes."""
    assert {"central", "gossip-faults", "graph-swaps", "leader-loss", "noise-shares"} == set(RUNS)
