"""The audit's part of the privacy section: measured, proved and published epsilons per view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.metrics.headline.number_format import epsilon_text
from scenarios.metrics.privacy.view_labels import AUDITED_VIEWS
from scenarios.report import html


def sandwich_rows(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the bounds of each view that was audited; none without an audit."""
    views = (summary.get("audit") or {}).get("views") or {}
    return [
        {
            "view": label,
            "measured": views[name]["epsilon"],
            **{key: views[name][key] for key in ("by", "ceiling", "proved", "how", "published", "estimate")},
            **{key: bool(views[name][key]) for key in ("proof_refuted", "published_refuted")},
        }
        for name, label in AUDITED_VIEWS.items()
        if name in views
    ]


def sandwich_part(summary: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Returns measured, proved and published epsilons per view; nothing without an audit."""
    rows = data["sandwich"]
    if not rows:
        return ""
    audit = summary["audit"]
    refuted = [f"{row['view']}: the published epsilon is refuted" for row in rows if row["published_refuted"]]
    refuted += [f"{row['view']}: THE PROOF IS REFUTED, please report this" for row in rows if row["proof_refuted"]]
    values = "; ".join(
        f"{row['view']}: at least {epsilon_text(row['measured'])}, at most {epsilon_text(row['proved'])}"
        for row in rows
    )
    caption = (
        "The epsilon sandwich: what an audit measures at least, what is proved at most, and the published claim, per "
        f"view; delta {audit['delta']:g}, confidence {audit['confidence']:g}. {audit['cost']}. {_relation(audit)} A "
        "measured 0 stands at the left edge."
    )
    chart = html.figure("epsilon-sandwich", caption, f"Measured and proved epsilon per view. {values}.")
    return html.notes(refuted) + chart


def _relation(audit: Mapping[str, Any]) -> str:
    if audit.get("neighbours") == "add_remove":
        return "Neighbours: one client's updates are there or zero (add/remove), so published claims are not compared."
    return "Neighbours: one client is replaced."
