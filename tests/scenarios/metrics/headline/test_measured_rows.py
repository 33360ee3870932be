"""What audits and attacks measured stands in the final table of a run."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.metrics.headline.measured_rows import measured_rows

VIEW: dict[str, Any] = {
    "epsilon": 1.5,
    "by": "one run",
    "ceiling": 2.0,
    "proved": 15.5,
    "how": "exact",
    "published": None,
    "estimate": None,
    "published_refuted": False,
    "proof_refuted": False,
}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "model: at least 1.5 by one run (can reach 2); proved at most 15.5 (exact)"),
        (
            {"epsilon": 0.0, "ceiling": 0.0},
            "model: at least 0 by one run (too few canaries to show more; add clients or runs); proved at most 15.5 "
            "(exact)",
        ),
        (
            {"published": 1.0, "estimate": 1.75, "published_refuted": True},
            "model: at least 1.5 by one run (can reach 2); proved at most 15.5 (exact); published 1; estimate 1.75, no "
            "bound; THE PUBLISHED CLAIM IS REFUTED for this view",
        ),
    ],
)
def test_an_audited_view(changes: dict[str, Any], text: str) -> None:
    """Measured from below, proved from above, claimed; and what so few canaries cannot show."""
    assert list(measured_rows({"audit": {"views": {"model": {**VIEW, **changes}}}})) == [("audit", text)]


def test_attacks_follow_audits() -> None:
    """Each attack in one row; a run without either has none."""
    attack = {"kind": "linkage", "by": "peer", "headline": "at least 63% linked"}
    rows = list(measured_rows({"attacks": [attack], "audit": {"views": {"model": VIEW}}}))
    assert [label for label, _ in rows] == ["audit", "attack"]
    assert rows[-1][1] == "linkage by peer: at least 63% linked"
    assert list(measured_rows({})) == []
