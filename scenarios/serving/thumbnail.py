"""A small picture of a run: accuracy over its rounds, or the length of rounds where nothing was learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.run_folder.arrow_tables import rounds_from_arrow
from scenarios.run_folder.reader import open_run

WIDTH, HEIGHT = 120, 36
_MOST_POINTS = 60


def thumbnail(place: Path) -> str:
    """Returns an SVG; a run that cannot be read has an empty one."""
    try:
        rounds = rounds_from_arrow(open_run(place).table("rounds"))
    except (UserError, KeyError, ValueError, TypeError, OSError):
        rounds = []
    values, what, top = _series(rounds)
    return _svg(values, what, top)


def _series(rounds: Sequence[dict[str, Any]]) -> tuple[list[float], str, float]:
    accuracy = [
        float(record["accuracy_after_mean"]) for record in rounds if record.get("accuracy_after_mean") is not None
    ]
    if accuracy:
        return _thinned(accuracy), "accuracy", 1.0
    lengths = [float(record["end_s"]) - float(record["start_s"]) for record in rounds]
    return _thinned(lengths), "seconds a round", max(lengths, default=1.0) or 1.0


def _thinned(values: list[float]) -> list[float]:
    # Rounded up, so that no more points are left than fit.
    step = max(1, -(-len(values) // _MOST_POINTS))
    return values[::step]


def _svg(values: Sequence[float], what: str, top: float) -> str:
    wide = max(len(values) - 1, 1)
    points = " ".join(
        f"{2 + (WIDTH - 4) * place / wide:.1f},{HEIGHT - 2 - (HEIGHT - 4) * min(max(value / top, 0.0), 1.0):.1f}"
        for place, value in enumerate(values)
    )
    colour = "#0072b2" if what == "accuracy" else "#e69f00"
    line = f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>' if values else ""
    if len(values) == 1:  # a line needs two points
        x, y = points.split(",")
        line = f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{what} over the rounds">'
        f'<line x1="0" y1="{HEIGHT - 1}" x2="{WIDTH}" y2="{HEIGHT - 1}" stroke="#888" stroke-width="1"/>{line}</svg>'
    )
