"""The plot of a reproduction: measured means with 95% intervals beside printed values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def draw(outcome: Mapping[str, Any], path: Path) -> None:
    """Draws one mark per combination; printed values are crosses."""
    import matplotlib as mpl

    # A fixed salt and no date: the same outcome gives the same file.
    with mpl.rc_context({"svg.hashsalt": "peerveil", "font.size": 9}):
        from matplotlib.figure import Figure

        rows = [row for row in outcome["values"] if row["mean"] is not None]
        figure = Figure(figsize=(7, 1.2 + 0.32 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        for place, row in enumerate(rows):
            low, high = (row["mean"], row["mean"]) if row["low"] is None else (row["low"], row["high"])
            axes.plot([low, high], [place, place], color="#0072b2", linewidth=1.6)
            axes.plot([row["mean"]], [place], "o", color="#0072b2", label="measured" if place == 0 else None)
            if row["printed"] is not None:
                axes.plot([row["printed"]], [place], "x", color="#d55e00")
        axes.set_yticks(range(len(rows)), [_label(row["settings"]) for row in rows])
        axes.invert_yaxis()
        axes.set_xlabel(f"{outcome['figure']}; o measured with 95% interval, x printed")
        axes.grid(axis="x", alpha=0.3)
        figure.savefig(path, metadata={"Date": None})


def _label(settings: Mapping[str, Any]) -> str:
    def text(value: Any) -> str:
        return str(value.get("kind", value)) if isinstance(value, Mapping) else str(value)

    return ", ".join(text(value) for value in settings.values())[:60]
