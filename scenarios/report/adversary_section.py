"""The section on attacks, and the audit's part of the privacy section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.metrics.number_format import epsilon_text
from scenarios.report import html
from scenarios.report.run_data import RunData


def attack_section(run_data: RunData, data: Mapping[str, Any]) -> str:
    """Returns what each attack achieved, with its curves and pictures; nothing if there was none."""
    found = data["adversaries"]
    if not found["attacks"] and not found["notes"]:
        return ""
    rows = [(_who(attack), attack["headline"]) for attack in found["attacks"]]
    charts = [
        html.figure(curve["id"], f"{curve['title']}: {_who(attack)}.", curve["text"] or curve["title"])
        for attack in found["attacks"]
        for curve in attack["curves"]
    ]
    grids = [_grid(grid) for attack in found["attacks"] for grid in attack["grids"]]
    pair = f'<div class="pair">{"".join(charts)}</div>' if charts else ""
    lower = html.paragraph("Attacks show what can be learnt at least; others may learn more.", "hint") if rows else ""
    notes = html.notes(found["notes"])
    return html.section("attacks", "What adversaries learn", notes, html.facts(rows), lower, pair, *grids)


def _who(attack: Mapping[str, Any]) -> str:
    return f"{attack['kind']}, by {attack['by']}"


def _grid(grid: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{html.text(label)}</th>{_pictures(label, pictures)}</tr>'
        for label, pictures in zip(grid["rows"], grid["pictures"], strict=False)
    )
    table = f'<div class="scroll"><table class="pictures"><tbody>{rows}</tbody></table></div>'
    caption = f"{grid['title']}. {grid['text']}" if grid["text"] else grid["title"]
    return f'<figure class="chart">{table}<figcaption>{html.text(caption)}</figcaption></figure>'


def _pictures(label: str, pictures: list[str]) -> str:
    return "".join(
        f'<td><img src="{picture}" alt="{html.text(label)}, picture {place + 1}"></td>'
        for place, picture in enumerate(pictures)
    )


def sandwich_part(summary: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Returns measured, proved and published epsilons per view; nothing without an audit."""
    rows = data["adversaries"]["sandwich"]
    if not rows:
        return ""
    audit = summary["audit"]
    refuted = [f"{row['view']}: the published epsilon is refuted" for row in rows if row["published_refuted"]]
    refuted += [f"{row['view']}: THE PROOF IS REFUTED, please report this" for row in rows if row["proof_refuted"]]
    told = "; ".join(
        f"{row['view']}: at least {epsilon_text(row['measured'])}, at most {epsilon_text(row['proved'])}"
        for row in rows
    )
    caption = (
        "The epsilon sandwich: what an audit measures at least, what is proved at most, and the published claim, per "
        f"view; delta {audit['delta']:g}, confidence {audit['confidence']:g}. {audit['cost']}. A measured 0 stands at "
        "the left edge."
    )
    chart = html.figure("epsilon-sandwich", caption, f"Measured and proved epsilon per view. {told}.")
    return html.notes(refuted) + chart
