"""The comparison page: several runs on the same axes, their differences, cost to accuracy, and privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.metrics.comparison import FIGURES, ComparedFigure
from scenarios.metrics.headline.headline_rows import learns, trouble_rows
from scenarios.metrics.headline.number_format import count_text
from scenarios.metrics.privacy.privacy_verdict import epsilon_of
from scenarios.report import html
from scenarios.report.data.round_series import round_series
from scenarios.report.data.run_data import RunData

_COMMAND = "This page compares the runs as they are; `peerveil run A B --seeds K` adds intervals over seeds."


def labels(accounts: Sequence[RunData]) -> list[str]:
    """Returns a distinct label per run: the scenario, with the seed, then the folder, then a number where needed."""
    names = [run_data.name for run_data in accounts]
    seeded = [
        f"{name}, seed {run_data.summary.get('seed', '?')}" if names.count(name) > 1 else name
        for name, run_data in zip(names, accounts, strict=True)
    ]
    folders = [run_data.run.path.name for run_data in accounts]
    if len(set(seeded)) < len(seeded) and len(set(folders)) == len(folders):
        # Alternatives of `peerveil compare` have equal names and seeds; their folders say what differs.
        return [f"{name} ({folder})" for name, folder in zip(names, folders, strict=True)]
    return [
        f"{label} ({seeded[: place + 1].count(label)})" if seeded.count(label) > 1 else label
        for place, label in enumerate(seeded)
    ]


def comparison_data(accounts: Sequence[RunData]) -> dict[str, Any]:
    """Returns the chart data of the page: per run its rounds, final accuracy and epsilons."""
    return {"page": "comparison", "runs": [_run(*pair) for pair in zip(labels(accounts), accounts, strict=True)]}


def _run(label: str, run_data: RunData) -> dict[str, Any]:
    head = run_data.summary["headline"]
    epsilon, accuracy = head.get("epsilon") or {}, head.get("accuracy") or {}
    # A run may have no collected model (interrupted, or none was asked for).
    collected = accuracy.get("collected")
    return {
        "label": label,
        "rounds": round_series(run_data.log, run_data.protocol),
        "accuracy": collected if collected is not None else (accuracy.get("clients") or {}).get("mean"),
        "epsilon": {
            name: _finite(epsilon.get(name)) for name in ("published", "rigorous_worst_peer", "rigorous_model")
        },
        "target": run_data.target_accuracy,
    }


def _finite(value: Any) -> float | str | None:
    epsilon = epsilon_of(value)
    return "inf" if epsilon == float("inf") else epsilon


def comparison_body(accounts: Sequence[RunData], data: Mapping[str, Any]) -> str:
    """Returns the HTML of all sections in order."""
    names = [run["label"] for run in data["runs"]]
    return "\n".join(
        (
            f"<header><h1>{html.text(' · '.join(names))}</h1>{_questions(accounts, names)}</header>",
            _figures(accounts, names),
            *([_learning(), _cost(accounts), _epsilon(data)] if learned(accounts) else []),
            _traffic(),
            _settings(accounts, names),
        )
    )


def learned(accounts: Sequence[RunData]) -> bool:
    """Returns whether any of the runs had models to train; without, there are no charts of accuracy."""
    return any(learns(run_data.summary) for run_data in accounts)


def comparison_links(accounts: Sequence[RunData]) -> list[tuple[str, str]]:
    """Returns the links of the page's navigation."""
    about_learning = [("learning", "Accuracy"), ("cost", "Cost to accuracy"), ("epsilon", "Privacy")]
    ends = [("traffic", "Traffic and time"), ("settings", "Settings")]
    return [("figures", "Figures"), *(about_learning if learned(accounts) else []), *ends]


def _traffic() -> str:
    figures = [
        html.figure(
            f"compare-{name}",
            f"{what} of each round.",
            f"One line per run: {what.lower()} against the round. The fold below holds the numbers.",
        )
        for name, what in (("round-bytes", "Bytes sent by all nodes"), ("round-seconds", "Simulated seconds"))
    ]
    return html.section("traffic", "Traffic and time", html.pair(*figures))


def _questions(accounts: Sequence[RunData], names: Sequence[str]) -> str:
    asked = [str(run_data.summary.get("question") or "-") for run_data in accounts]
    # Alternatives of one scenario ask the same.
    if len(set(asked)) == 1:
        return html.paragraph(asked[0], "question")
    return html.facts(zip(names, asked, strict=True))


def _figures(accounts: Sequence[RunData], names: Sequence[str]) -> str:
    """Tabulates every figure of every run; a switch shows the differences from the first."""
    rows = []
    for figure in FIGURES.values():
        values = [figure.of(run_data.summary) for run_data in accounts]
        if any(value is not None for value in values):
            differences = ["", *(_difference(figure, value, values[0]) for value in values[1:])]
            rows.append((figure.label, list(zip(map(figure.text, values), differences, strict=True))))
    transport = [str(run_data.summary.get("headline", {}).get("transport") or "-") for run_data in accounts]
    alike = transport[0] if len(set(transport)) == 1 else ""
    if not alike:
        rows.append(("transport", [(text, "") for text in transport]))
    notes = [f"{name}: {note}" for name, run_data in zip(names, accounts, strict=True) for note in _notes(run_data)]
    switch = html.controls(
        f'<label><input type="checkbox" id="differences"> differences from {html.text(names[0])}</label>'
    )
    table = html.comparison_table(names, rows, "Figures of each run")
    hints = [html.paragraph(f"Transport: {alike}.", "hint") if alike else "", html.paragraph(_COMMAND, "hint")]
    return html.section("figures", "Figures", html.notes(notes), switch, table, *hints)


def _notes(run_data: RunData) -> list[str]:
    return [*run_data.notes, *(f"{label}: {text}" for label, text in trouble_rows(run_data.summary))]


def _difference(figure: ComparedFigure, value: float | None, base: float | None) -> str:
    if value is None or base is None or float("inf") in (value, base):
        return "-"
    # Sums in different orders differ in the last bits; that is not a difference between runs.
    if math.isclose(value, base, rel_tol=1e-9):
        return figure.text(0.0)
    difference = figure.text(value - base)
    # Ratios near one say less than the difference does.
    factor = f" ({value / base:.2g} times)" if base > 0 and value > 0 and not 0.5 <= value / base <= 2 else ""
    return f"{'+' if value > base else ''}{difference}{factor}"


def _learning() -> str:
    over = (
        ("compare-rounds", "round"),
        ("compare-time", "simulated seconds"),
        ("compare-bytes", "bytes sent so far"),
    )
    figures = [
        html.figure(
            name,
            f"Mean accuracy of the evaluated clients after aggregation against {axis}.",
            f"One line per run: accuracy against {axis}. The fold below holds the numbers.",
        )
        for name, axis in over
    ]
    return html.section("learning", "Accuracy", html.pair(*figures))


def _cost(accounts: Sequence[RunData]) -> str:
    targets = [run_data.target_accuracy for run_data in accounts if run_data.target_accuracy is not None]
    start = f"{targets[0]:g}" if targets else "0.5"
    controls = html.controls(
        f'<label class="wide">Accuracy to reach <input type="range" id="cost-target" min="0" max="1" step="0.01" '
        f'value="{start}"> <output id="cost-value">{start}</output></label>'
    )
    figures = [
        html.figure(
            f"cost-{name}",
            f"{what} until the mean accuracy of a round first reached the chosen value. No bar: not reached.",
            f"One bar per run: {what.lower()} to the chosen accuracy. The table below holds the numbers.",
        )
        for name, what in (("bytes", "Bytes sent by all nodes"), ("time", "Simulated seconds"))
    ]
    table = '<div class="scroll" id="cost-table" aria-live="polite"></div>'
    return html.section("cost", "Cost to accuracy", controls, table, html.pair(*figures))


def _epsilon(data: Mapping[str, Any]) -> str:
    kinds = (("published", "as published"), ("rigorous", "rigorous, worst peer"))
    claimed = any(run["epsilon"]["published"] is not None for run in data["runs"])
    figures = [
        html.figure(
            f"compare-{name}",
            f"Final accuracy (collected model, else mean client) against epsilon, {what}; log scale, smaller is more "
            "private. Runs without a finite epsilon stand at the right edge.",
            f"One mark per run: accuracy against {what} epsilon. The fold below holds the numbers.",
        )
        for name, what in (kinds if claimed else kinds[1:])
    ]
    return html.section("epsilon", "Accuracy against epsilon", html.pair(*figures))


def _settings(accounts: Sequence[RunData], names: Sequence[str]) -> str:
    """Tabulates the keys in which the scenarios differ."""
    flat = [_flat(run_data.run.scenario) for run_data in accounts]
    # dict.fromkeys: distinct keys in the order of the files.
    keys = [key for key in dict.fromkeys(key for one in flat for key in one) if len({one.get(key) for one in flat}) > 1]
    rows = [[key, *(one.get(key, "-") for one in flat)] for key in keys]
    same = len({key for one in flat for key in one}) - len(keys)
    table = html.comparison_table(
        names,
        [(row[0], [(cell, "") for cell in row[1:]]) for row in rows],
        f"Settings that differ; {count_text(same)} others are equal",
    )
    return html.section("settings", "Settings", table)


def _flat(value: Any, path: str = "") -> dict[str, str]:
    if isinstance(value, Mapping):
        parts = [_flat(part, f"{path}.{key}" if path else str(key)) for key, part in value.items()]
        return {key: text for part in parts for key, text in part.items()}
    return {path: str(value)}
