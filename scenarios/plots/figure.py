"""Matplotlib figures without a display and without time stamps, so that equal runs give equal files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from p2p.config.errors import UserError
from scenarios.run_folder import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".svg", ".png", ".pdf")
HUES = {
    "orange": "#e69f00",
    "sky": "#56b4e9",
    "green": "#009e73",
    "yellow": "#f0e442",
    "blue": "#0072b2",
    "red": "#d55e00",
    "pink": "#cc79a7",
    "grey": "#999999",
    "ink": "#222222",
}
"""Okabe and Ito's palette, distinguishable with any colour vision, and what stands out from all of it."""
COLUMN_WIDTHS_IN = {"one": 3.5, "two": 7.16}
"""Widths of figures over one and two columns, as IEEE and ACM have them."""
_NO_DATE = {".svg": {"Date": None}, ".pdf": {"CreationDate": None, "ModDate": None}, ".png": {}}


def check_ending(out: Path, allowed: tuple[str, ...]) -> str:
    """Returns the file name extension of `out`; raises a `UserError` if it is not among `allowed`."""
    ending = out.suffix.lower()
    if ending not in allowed:
        raise UserError(f"--out = {out}: its ending must be one of {', '.join(allowed)}")
    return ending


def new_figure(width_in: float, height_in: float) -> Figure:
    """Returns an empty figure without touching pyplot's global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in), layout="constrained")


def save(figure: Figure, out: Path) -> None:
    """Writes the figure in the format given by the extension of `out`."""
    import matplotlib as mpl

    ending = out.suffix.lower()
    # A fixed salt makes the ids inside an SVG reproducible; the font settings keep text as text.
    with mpl.rc_context({"svg.hashsalt": "peerveil", "svg.fonttype": "none", "pdf.fonttype": 42}):
        atomic_write.write_with(
            out, lambda path: figure.savefig(path, format=ending[1:], dpi=200, metadata=_NO_DATE[ending])
        )
