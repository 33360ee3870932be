"""The page of a sweep: figures over axes as heat map and lines, parallel coordinates, Pareto front, links to runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios.metrics.comparison import FIGURES
from scenarios.report import html
from scenarios.report.cell_links import cell_link, cell_words, cells_section
from scenarios.report.sweep_axes import axis_values, by_axes, drawn_axes
from scenarios.sweeps.pareto import OBJECTIVES, VIEWS, pareto_front
from scenarios.sweeps.pivot import INTERVALS, bounded_interval, cell_text
from scenarios.sweeps.read_sweep import SweepTable

SWEEP_LINKS = (
    ("answer", "Figures"),
    ("axes", "Over axes"),
    ("parallel", "Parallel coordinates"),
    ("front", "Pareto front"),
    ("cells", "Cells"),
)
_FIRST = ("accuracy", "worst_peer", "model", "published", "client_median", "simulated_s")
_UNITS = {"bytes_text": "bytes", "seconds_text": "seconds", "epsilon_text": "epsilon", "count_text": "count"}


def sweep_data(sweep: SweepTable, page_folder: Path) -> dict[str, Any]:
    """Returns the data of the page's charts: axes, figures, and every combination with means and intervals.

    Args:
        page_folder: where the page will be, from which its links lead.
    """
    done = sweep.done
    axes = drawn_axes(sweep)
    figures = [name for name in FIGURES if any(row[name] is not None for row in done)]
    figures.sort(key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    groups = by_axes(done, axes)
    made = [_combination(texts, rows, figures) for texts, rows in groups.items()]
    for one, rows in zip(made, groups.values(), strict=True):
        one["runs"] = [cell_link(sweep, row, page_folder) for row in rows]
    return {
        "page": "sweep",
        "axes": [{"name": ", ".join(names), "values": axis_values(done, names)} for names in axes],
        "figures": [_figure(name) for name in figures],
        "combinations": made,
        "fronts": {view: pareto_front([_means(one) for one in made], view) for view in VIEWS},
        "views": dict(VIEWS),
    }


def sweep_body(sweep: SweepTable, data: Mapping[str, Any], page_folder: Path) -> str:
    """Returns the HTML of all sections in order; links lead from `page_folder`."""
    return "\n".join(
        (
            f"<header><h1>{html.text(sweep.name)}</h1>{html.paragraph(sweep.question)}{_state(sweep)}</header>",
            _answer(sweep, data),
            _over_axes(data),
            _parallel(),
            _front(data),
            cells_section(sweep, page_folder),
        )
    )


def _state(sweep: SweepTable) -> str:
    failed = [row for row in sweep.rows if row["state"] == "failed"]
    done, total = len(sweep.done), len(sweep.rows)
    lines = [] if done == total else [f"{done} of {total} cells have finished"]
    lines += [f"failed: {cell_words(sweep, row)}: {row['message']}" for row in failed[:20]]
    return html.notes([*lines, *sweep.remarks])


def _figure(name: str) -> dict[str, str]:
    figure = FIGURES[name]
    return {"name": name, "label": figure.label, "unit": _UNITS.get(figure.text.__name__, "share")}


def _combination(texts: tuple[str, ...], rows: Sequence[Mapping[str, Any]], figures: Sequence[str]) -> dict[str, Any]:
    found = {name: bounded_interval(name, [row[name] for row in rows]) for name in figures}
    return {"axes": list(texts), "figures": found}


def _means(combination: Mapping[str, Any]) -> dict[str, float | None]:
    return {name: found["mean"] for name, found in combination["figures"].items()}


def _answer(sweep: SweepTable, data: Mapping[str, Any]) -> str:
    axes, figures = drawn_axes(sweep), [one["name"] for one in data["figures"][: len(_FIRST)]]
    groups = by_axes(sweep.done, axes)
    rows = [
        [", ".join(texts), str(len(rows)), *(cell_text(name, [row[name] for row in rows]) for name in figures)]
        for texts, rows in groups.items()
    ]
    names = ", ".join(name.rpartition(".")[2] for group in axes for name in group)
    head = [names, "seeds", *(FIGURES[name].label for name in figures)]
    return html.section("answer", "Figures", html.table(head, rows, INTERVALS.rstrip("."), pinned=True))


def _over_axes(data: Mapping[str, Any]) -> str:
    axes = [(str(place), axis["name"]) for place, axis in enumerate(data["axes"])]
    # Numbers make better lines than bases, so a base is drawn only if there is no other axis, or one other.
    first = sorted(axes, key=lambda axis: axis[1] == "base")
    second = [*first[1:], *first[:1]]
    held = "".join(
        html.choice(
            f"hold-{place}",
            f"{axis['name']} held at",
            [(str(number), value) for number, value in enumerate(axis["values"])],
        )
        for place, axis in enumerate(data["axes"])
    )
    controls = html.controls(
        html.choice("figure", "Figure", [(one["name"], one["label"]) for one in data["figures"]]),
        html.choice("across", "Across", first),
        html.choice("down", "Down, and one line each", second),
        held,
    )
    figures = (
        html.figure(
            "heat",
            "Mean over seeds for each pair of values; other axes are held as chosen above. A click opens the run of "
            "the first seed.",
            "Heat map of the chosen figure over two axes. The fold below holds the numbers.",
        ),
        html.figure(
            "lines",
            "Mean over seeds with its 95% interval, cut to the range that the quantity can take. Infinite values have "
            "no point; the chart says how many there are. A click opens the run of the first seed.",
            "One line per value of the second axis: the figure against the first. The fold below has the numbers.",
        ),
    )
    return html.section("axes", "Over axes", controls, html.pair(*figures))


def _parallel() -> str:
    figure = html.figure(
        "coordinates",
        "Every combination is a line through its settings and figures, from the least (below) to the most; its shade "
        "is the first figure's rank. What is infinite stands above. A click opens the run of the first seed.",
        "Parallel coordinates of all combinations. The fold below holds the numbers.",
    )
    return html.section("parallel", "Parallel coordinates", figure)


def _front(data: Mapping[str, Any]) -> str:
    aims = ", ".join(f"{'high' if best > 0 else 'low'} {FIGURES[name].label}" for name, best in OBJECTIVES)
    figure = html.figure(
        "pareto",
        f"Filled marks are on the front: no other combination is at least as good in all of {aims}, and epsilon of the "
        "chosen view, and better in one. Means over seeds. An infinite epsilon stands at the right edge. A "
        "click opens the run of the first seed.",
        "Accuracy against epsilon; marks on the Pareto front are filled. The fold below holds the numbers.",
        html.controls(html.choice("view", "Epsilon", list(VIEWS.items()))),
    )
    return html.section("front", "Pareto front", figure)
