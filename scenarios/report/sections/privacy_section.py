"""The privacy section of a page: published and rigorous epsilons side by side, never mixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.metrics.headline.headline_rows import grouped_by_erratum
from scenarios.metrics.privacy.privacy_verdict import published_text
from scenarios.metrics.privacy.view_labels import reasons, record_rows, view_labels
from scenarios.report import html
from scenarios.report.data.run_data import RunData
from scenarios.report.sections.alt_text import spent_alternative, views_alternative
from scenarios.report.sections.audit_part import sandwich_part


def privacy_section(run_data: RunData, data: Mapping[str, Any]) -> str:
    """Returns the verdict, all views, the epsilon spent over time, and the matrix of received updates."""
    privacy = run_data.summary.get("privacy") or {}
    epsilon = run_data.summary["headline"].get("epsilon") or {}
    verdict = html.paragraph(f"Verdict: {epsilon.get('verdict', 'none stated')}")
    labels = view_labels(privacy.get("rigorous") or {})
    views = [(f"rigorous, {label.name}", label.figure) for label in labels]
    claim = privacy.get("published")
    formula = f" ({claim['formula']})" if isinstance(claim, dict) and claim.get("formula") else ""
    claims = [(f"published{formula}", published_text(privacy)), *views]
    table = html.facts([*claims, *record_rows(privacy.get("record") or {})])
    charts = [_views(epsilon, data["privacy"])]
    # Without a release there is nothing to draw.
    if data["privacy"]["spent"]["round"]:
        claimed = ("published",) if claim is not None else ()
        names = (*claimed, "rigorous", *(("record",) if "record" in data["privacy"]["spent"] else ()))
        charts += [_spent(name, data["privacy"]) for name in names]
    charts.append(_seen(data["privacy"]["seen"]))
    hints = html.notes([*reasons(labels), *grouped_by_erratum(privacy.get("notes") or ())])
    sandwich = sandwich_part(run_data.summary, data)
    return html.section("privacy", "Privacy", verdict, table, hints, sandwich, html.pair(*charts))


def _spent(name: str, privacy: Mapping[str, Any]) -> str:
    what = {"published": "as published", "rigorous": "rigorous, client level, local view"}.get(name, "record level")
    rest = {"published": "; dashed: the epsilon allowed", "rigorous": "; log scale"}.get(name, "")
    return html.figure(
        f"spent-{name}",
        f"Epsilon spent so far by the clients that have released, {what}. Line: median; band: least to most{rest}.",
        spent_alternative(name, privacy),
    )


def _views(epsilon: Mapping[str, Any], privacy: Mapping[str, Any]) -> str:
    at = "" if epsilon.get("delta") is None else f", delta {epsilon['delta']:g}"
    return html.figure(
        "epsilon-views",
        f"Epsilon claimed by the published formula and proven per view ({epsilon.get('unit', 'client')} level{at}); "
        "log scale. The two answer different questions and are not to be mixed. Views whose epsilon is 0 or "
        "infinite have no mark.",
        views_alternative(privacy),
    )


def _seen(seen: Mapping[str, Any]) -> str:
    grouped = f" Each square is a group of {seen['group']} nodes." if seen["group"] > 1 else ""
    return html.figure(
        "seen",
        "How many updates of each sender (column) reached each receiver (row), late ones too: who saw what." + grouped,
        "Matrix of receivers and senders, coloured by the number of updates received.",
    )
