"""Every figure is shown with how it is known, those who receive updates first."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.cli.main import main
from scenarios.metrics.privacy.view_labels import reasons, view_labels

RIGOROUS = {
    "local": "inf",
    "peer": {"worst": 3.25, "median": 1.5},
    "model": 0.5,
    "how": {"local": "inf", "peer": "bound", "model": "exact"},
    "because": {"local": "no noise is added", "peer": "of paths"},
}


def test_each_view_says_how_it_is_known() -> None:
    """Exact, a bound or infinite; reasons name their views."""
    labels = view_labels(RIGOROUS)
    assert [(label.name, label.figure) for label in labels] == [
        ("receivers of updates", "inf"),
        ("worst peer", "3.25 (bound)"),
        ("median peer", "1.5 (bound)"),
        ("model", "0.5 (exact)"),
    ]
    assert reasons(labels) == [
        "receivers of updates: inf because no noise is added",
        "worst peer, median peer: bound because of paths",
    ]


def test_summaries_of_older_versions_have_no_labels() -> None:
    """They are shown as they are."""
    assert [label.figure for label in view_labels({"local": 2.0})] == ["2"]


@pytest.mark.slow
def test_table_final_table_and_page_carry_the_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A masking scheme is said to be one wherever its figures stand."""
    out = tmp_path / "run"
    shares = "noise_shares={sigma_k: 0.1, tau: 0}"
    changes = ["learning=none", "privacy={clip: flat}", shares, "protocol={kind: central, train_per_round: 4}"]
    flags = [word for change in changes for word in ("--set", change)]
    assert main(["run", "tiny", "--out", str(out), *flags]) == 0
    assert "inf because shares cancel" in " ".join(capsys.readouterr().out.split())
    assert main(["table", str(out)]) == 0
    assert "inf because shares cancel" in capsys.readouterr().out
    assert main(["report", str(out)]) == 0
    assert "inf because shares cancel" in (out / "report.html").read_text(encoding="utf-8")
