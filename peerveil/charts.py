"""A chart that a notebook shows and a program saves."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Chart:
    """A matplotlib figure, as `figure`, that notebooks show as a picture.

    >>> import peerveil as pv, tempfile
    >>> quiet = pv.run("tiny", rounds=2, learning="none")
    >>> lossy = pv.run("tiny", rounds=2, learning="none", name="lossy", network={"loss": 0.2})
    >>> chart = pv.compare(quiet, lossy).plot("bytes", "simulated_s")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     chart.save(f"{folder}/cost.svg").exists()
    True
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def save(self, path: str | Path) -> Path:
        """Writes the chart; the ending of the name gives the format (svg, pdf, png)."""
        self.figure.savefig(path)
        return Path(path)

    def _repr_png_(self) -> bytes:
        # Figures made without pyplot have no window and no display of their own.
        picture = BytesIO()
        self.figure.savefig(picture, format="png", dpi=120)
        return picture.getvalue()
