"""The epsilon sandwich of an audit, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.cli.main import main

pytestmark = pytest.mark.slow
SCENARIO = """
name: watched
rounds: 3
clients: 30
data: {name: synthetic, samples: 240, features: 6, classes: 3}
model: {kind: linear}
protocol: {kind: rotating_leader, train_per_round: 25, deadline: 60 s}
privacy:
  clip: {kind: flat, norm: 1.0}
  noise: {kind: gaussian, calibrate: {kind: adpdfl, epsilon: 2, delta: 1.0e-5}}
adversaries: [{kind: leader}]
attacks: [{kind: linkage}]
audit: {others: still, runs: 3}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with an audit that refutes its published claim."""
    place = tmp_path_factory.mktemp("watched")
    (place / "watched.yaml").write_text(SCENARIO, encoding="utf-8")
    assert main(["run", str(place / "watched.yaml"), "--out", str(place / "run"), "--quiet"]) == 0
    assert main(["report", str(place / "run")]) == 0
    return place / "run"


def test_the_sandwich_shows_each_view_and_what_is_refuted(visit: Any, folder: Path) -> None:
    """Measured, proved and published per view, as in the summary; a refuted claim is marked."""
    audit = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["audit"]
    opened = visit(folder / "report.html")
    assert opened.complaints == []
    page = opened.page
    assert page.locator("#epsilon-sandwich[data-drawn]").count() == 1
    traces = page.evaluate(
        "document.getElementById('epsilon-sandwich').data.map(t => [t.name, Array.from(t.x), t.text])"
    )
    measured = next(x for name, x, _ in traces if name == "measured, at least")
    proved = next(x for name, x, _ in traces if name == "proved, at most")
    views = ["local", "receiver", "peer", "model"]
    assert proved == pytest.approx([audit["views"][view]["proved"] for view in views])
    assert all(low <= high for low, high in zip(measured, proved, strict=True))
    assert audit["views"]["local"]["published_refuted"]
    assert any(name == "published claim, REFUTED" for name, _, _ in traces)
    assert "the published epsilon is refuted" in page.inner_text("#privacy")
    assert "at least" in page.locator("#epsilon-sandwich").get_attribute("aria-label")
    page.click("#fig-epsilon-sandwich details summary")
    assert "one run" in page.inner_text("#fig-epsilon-sandwich table")
