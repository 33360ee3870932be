"""Several runs side by side: a data frame of their headline figures, and a plot of two of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from peerveil.charts import Chart
from peerveil.runs import Run, load

if TYPE_CHECKING:
    import pandas as pd


class Comparison:
    """Runs side by side, made by `peerveil.compare`; in a notebook it shows its table.

    >>> import peerveil as pv
    >>> few, many = (pv.run("tiny", rounds=rounds, learning="none") for rounds in (2, 3))
    >>> pv.compare(few, many).table.loc["rounds completed"].tolist()
    [2.0, 3.0]
    """

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs

    @property
    def table(self) -> pd.DataFrame:
        """Headline figures by row, scenarios by column; runs of one scenario on several seeds are averaged."""
        import pandas as pd

        columns = {
            label: {name: cell["mean"] for name, cell in column["figures"].items()}
            for label, column in self._compared()["scenarios"].items()
        }
        frame = pd.DataFrame(columns).dropna(how="all")
        return frame.rename(index=_labels())

    @property
    def differences(self) -> pd.DataFrame:
        """Paired differences from the first scenario on common seeds: mean, and the ends of the 95% interval."""
        import pandas as pd

        rows = [
            {"scenario": found["scenario"], "figure": _labels()[name], **cell}
            for found in self._compared()["differences"]
            for name, cell in found["figures"].items()
            if cell["mean"] is not None
        ]
        return pd.DataFrame(rows, columns=["scenario", "figure", "mean", "low", "high", "n", "of"])

    def plot(self, x: str, y: str) -> Chart:
        """Draws one point per run with figure `x` against figure `y`, such as `bytes` against `accuracy`.

        Raises:
            UserError: unknown figure, or a run that lacks one of them.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.5, 3.8), layout="constrained")
        axes = figure.add_subplot()
        for name, points in self._points(x, y).items():
            axes.scatter(*zip(*points, strict=True), label=name)
        axes.set_xlabel(_labels()[x])
        axes.set_ylabel(_labels()[y])
        axes.legend(frameon=False)
        return Chart(figure)

    def _points(self, x: str, y: str) -> dict[str, list[tuple[float, float]]]:
        from p2p.config.errors import UserError
        from scenarios.loading.problems import suggestion
        from scenarios.metrics.comparison import FIGURES

        unknown = [name for name in (x, y) if name not in FIGURES]
        if unknown:
            raise UserError([f"figure = {name}: unknown figure; {suggestion(name, FIGURES)}" for name in unknown])
        points: dict[str, list[tuple[float, float]]] = {}
        for run in self.runs:
            pair = FIGURES[x].of(run.summary), FIGURES[y].of(run.summary)
            if pair[0] is None or pair[1] is None:
                raise UserError(f"figure = {x if pair[0] is None else y}: {run!r} has none; choose another figure")
            points.setdefault(str(run.summary["scenario"]), []).append((pair[0], pair[1]))
        return points

    def _compared(self) -> dict[str, Any]:
        from scenarios.metrics.comparison import compare as compare_summaries

        return compare_summaries([run.summary for run in self.runs])

    def __repr__(self) -> str:
        return f"comparison of {len(self.runs)} runs\n{self.table}"

    def _repr_html_(self) -> str:
        return str(self.table.to_html())


def compare(*runs: Run | str | Path) -> Comparison:
    """Sets runs side by side; each is a `Run` or the folder of one.

    Raises:
        UserError: fewer than two runs, or one that was killed before it wrote its summary.

    >>> import peerveil as pv
    >>> quiet = pv.run("tiny", rounds=2, learning="none")
    >>> lossy = pv.run("tiny", rounds=2, learning="none", name="lossy", network={"loss": 0.2})
    >>> list(pv.compare(quiet, lossy).table.columns)
    ['tiny', 'lossy']
    """
    from p2p.config.errors import UserError

    opened = [run if isinstance(run, Run) else load(run) for run in runs]
    if len(opened) < 2:
        raise UserError(f"runs = {len(opened)}: must be at least 2; give the runs to compare")
    killed = [run for run in opened if not run.summary]
    if killed:
        raise UserError([f"{run!r}: has no figures to compare; resume it first" for run in killed])
    return Comparison(opened)


def _labels() -> dict[str, str]:
    from scenarios.metrics.comparison import FIGURES

    return {name: figure.label for name, figure in FIGURES.items()}
