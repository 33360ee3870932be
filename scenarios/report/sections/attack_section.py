"""The section about attacks: for each the answer, its figures, curves and pictures."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2p.config.errors import UserError
from scenarios.attacking.result_files import StoredResult, read_result
from scenarios.metrics.headline.number_format import epsilon_text
from scenarios.report import html
from scenarios.report.data.run_data import RunData
from scenarios.report.png import data_url

# Said by the heading or the files, drawn as a curve, or too long for a page.
_LEFT_OUT = ("kind", "by", "options", "file", "headline", "comparisons", "loss", "together")
_WORDS = {
    "auc": "AUC",
    "psnr_db": "PSNR (dB)",
    "prior_psnr_db": "PSNR of a guess (dB)",
    "ssim": "SSIM",
    "euclidean": "Euclidean",
    "lpips_sub": "LPIPS substitute",
    "p_pl_printed": "P(pl) as printed",
    "noise_std": "noise (std)",
    "non_members": "non-members",
}
"""Figures whose keys are abbreviations or names."""


@dataclass(frozen=True, slots=True)
class AttackResult:
    """One entry of the summary's `attacks`, and its stored result; None if that cannot be read."""

    entry: Mapping[str, Any]
    stored: StoredResult | None
    problem: str = ""


def read_attacks(run_data: RunData) -> list[AttackResult]:
    """Returns the results of all attacks on a run; a damaged one keeps its entry."""
    found = []
    for entry in run_data.summary.get("attacks") or []:
        try:
            found.append(AttackResult(entry, read_result(run_data.run.path, str(entry["file"]))))
        except UserError as error:
            found.append(AttackResult(entry, None, str(error)))
    return found


def attack_curves(results: Sequence[AttackResult]) -> list[dict[str, Any]]:
    """Returns the data of every curve, with the name of its chart."""
    return [
        {"chart": f"attack-{place}-{number}", **curve}
        for place, result in enumerate(results)
        for number, curve in enumerate(result.stored.curves if result.stored else [])
    ]


def attack_section(results: Sequence[AttackResult]) -> str:
    """Returns the section; nothing if no attack was carried out."""
    if not results:
        return ""
    parts = [_one(place, result) for place, result in enumerate(results)]
    hint = html.paragraph(
        "What adversaries made of what they saw. A figure is a lower bound: another attack may learn more.", "hint"
    )
    return html.section("attacks", "Attacks", hint, *parts)


def _one(place: int, result: AttackResult) -> str:
    entry = result.entry
    head = f"<h3>{html.text(entry.get('kind'))} by {html.text(entry.get('by'))}</h3>"
    said = html.paragraph(str(entry.get("headline", "")))
    options = {key: value for key, value in (entry.get("options") or {}).items() if value not in (None, "none", "", [])}
    with_options = html.paragraph(f"Options: {_in_words(options)}.", "hint") if options else ""
    pictures = result.stored
    curves = [
        html.figure(f"attack-{place}-{number}", _caption(curve), str(curve["text"] or curve["title"]))
        for number, curve in enumerate(pictures.curves if pictures else [])
    ]
    grids = [
        _grid(grid, images)
        for grid, images in zip(pictures.grids if pictures else [], pictures.images if pictures else [], strict=True)
    ]
    drawn = html.pair(*curves)
    notes = html.notes([result.problem] if result.problem else [])
    together = [_together(pool) for pool in entry.get("together") or []]
    return "\n".join([head, said, with_options, notes, *grids, _figures(entry), *together, drawn])


def _together(pool: Mapping[str, Any]) -> str:
    """Returns what this run and repetitions of it say together about stated epsilons."""
    return html.paragraph(str(pool["headline"])) + _rows("with repetitions of this run", pool["claims"])


def _figures(entry: Mapping[str, Any]) -> str:
    """Returns plain figures as one table, and each list of rows as its own."""
    shown = {key: value for key, value in entry.items() if key not in _LEFT_OUT and value not in (None, {}, [])}
    rows = {key: value for key, value in shown.items() if isinstance(value, list) and isinstance(value[0], dict)}
    plain = [(_label(key), _in_words(value)) for key, value in shown.items() if key not in rows]
    tables = [_rows(key, value) for key, value in rows.items()]
    return (html.facts(plain) if plain else "") + "".join(tables)


def _rows(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    heads = [key for key in rows[0] if key not in _LEFT_OUT and any(row.get(key) is not None for row in rows)]
    cells = [[_cell(key, row.get(key)) for key in heads] for row in rows]
    return html.table([_label(head) for head in heads], cells, _label(name))


def _label(key: str) -> str:
    found = re.sub(r"tpr_at_([\d.]+)_percent", r"TPR at FPR \1%", key)
    return _WORDS.get(key, found.replace("_", " "))


def _cell(key: str, value: Any) -> str:
    return epsilon_text(value) if key == "epsilon" and isinstance(value, float) else _in_words(value)


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        # A reason names its own subject: `white_box needs known members`.
        return "; ".join(
            str(part) if str(part).startswith(str(key)) else f"{_label(str(key))} {_in_words(part)}"
            for key, part in value.items()
        )
    if isinstance(value, list):
        return ", ".join(_in_words(part) for part in value)
    if isinstance(value, float):
        return f"{value:.3g}" if math.isfinite(value) else str(value)
    return "-" if value is None else str(value)


def _caption(curve: Mapping[str, Any]) -> str:
    """Returns the first sentence of what a curve tells; figures that follow it are in the fold below."""
    return f"{str(curve['text'] or curve['title']).partition('. ')[0].rstrip('.')}."


def _grid(grid: Mapping[str, Any], images: Any) -> str:
    rows = "".join(
        f'<tr><th scope="row">{html.text(label)}</th>'
        + "".join(f'<td><img src="{data_url(image)}" alt="{html.text(f"{label}, image {number}")}"></td>'
                  for number, image in enumerate(strip, start=1))
        + "</tr>"
        for label, strip in zip(grid["rows"], images, strict=True)
    )  # fmt: skip
    caption = f"{grid['title']}. {grid['text']}"
    return (
        f'<figure class="chart grid"><div class="scroll"><table class="pictures"><tbody>{rows}</tbody></table></div>'
        f"<figcaption>{html.text(caption)}</figcaption></figure>"
    )
