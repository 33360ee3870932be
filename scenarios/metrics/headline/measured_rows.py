"""Rows on what was measured against a run: audits and attacks, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.metrics.headline.number_format import epsilon_text
from scenarios.metrics.privacy.view_labels import AUDITED_VIEWS


def measured_rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields a row for each audited view and each attack of a run; none for most runs."""
    audit = summary.get("audit")
    if audit is not None:
        yield from (("audit", f"{label}: {text}") for label, text in audited_views(audit))
    for attack in summary.get("attacks") or ():
        yield "attack", f"{attack['kind']} by {attack['by']}: {attack['headline']}"


def audited_views(audit: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields name and text of each view."""
    for name, label in AUDITED_VIEWS.items():
        view = audit["views"].get(name)
        if view is not None:
            yield label, _measured(view, "add/remove" if audit.get("neighbours") == "add_remove" else "")


def _measured(view: Mapping[str, Any], relation: str) -> str:
    text = f"at least {epsilon_text(view['epsilon'])} by {view['by']} ({_reach(view['ceiling'])})"
    text += f"; proved at most {epsilon_text(view['proved'])} ({' '.join(filter(None, (relation, view['how'])))})"
    if view["published"] is not None:
        text += f"; published {epsilon_text(view['published'])}"
    if view["estimate"] is not None:
        text += f"; estimate {epsilon_text(view['estimate'])}, no bound"
    if view["published_refuted"]:
        text += "; THE PUBLISHED CLAIM IS REFUTED for this view"
    if view["proof_refuted"]:
        text += "; THE PROOF IS REFUTED: please report this scenario"
    return text


def _reach(ceiling: float) -> str:
    if ceiling == 0:
        return "too few canaries to show more; add clients or runs"
    return f"can reach {epsilon_text(ceiling)}"
