"""Grids of runs: start or continue one, and read its cells as a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peerveil.runs import Run, load

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.sweeps.sweep_file import Sweep


class Cells:
    """The cells of a sweep: `table` has one row per cell, with its axes, headline figures and digests.

    Made by `peerveil.sweep`.

    >>> import peerveil as pv, tempfile
    >>> grid = {"name": "one", "bases": ["tiny"], "settings": {"learning": "none"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cells = pv.sweep(grid, out=f"{folder}/sweep", store=f"{folder}/cells", workers=1)
    ...     cells.run(cells.table["cell"][0])
    tiny, seed 1: 2 of 2 rounds, all rounds done
    """

    def __init__(self, path: Path, store: Path) -> None:
        self.path, self.store = path, store

    @property
    def table(self) -> pd.DataFrame:
        """One row per cell, finished or not, as `runs.parquet` has it now."""
        import pandas as pd

        from scenarios.sweeps.read_sweep import read_sweep

        return pd.DataFrame(read_sweep(self.path).rows)

    def run(self, cell: str) -> Run:
        """Returns the run of a cell, by its value in the column `cell`.

        Raises:
            UserError: the store has no such cell.
        """
        from p2p.config.errors import UserError
        from scenarios.sweeps.store import Store

        folder = Store(self.store).find(cell)
        if folder is None:
            raise UserError(f"cell = {cell}: is not in {self.store}; take one of the column `cell`")
        return load(folder)

    def __repr__(self) -> str:
        states = self.table["state"].value_counts()
        return f"sweep in {self.path}: " + ", ".join(f"{count} {state}" for state, count in states.items())

    def _repr_html_(self) -> str:
        return str(self.table.to_html())


def sweep(
    grid: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    store: str | Path | None = None,
    on: str = "processes",
    workers: int | None = None,
    data_dir: str | Path | None = None,
    allow_plugins: bool = False,
) -> Cells:
    """Runs a grid of scenarios, or what is left of it, and returns its cells.

    Args:
        grid: the path of a sweep file, or a mapping of its keys.
        out: folder of the sweep; `runs/sweeps/<name>` by default.
        store: folder of all cells; `runs/cells` by default. A cell that is finished there is not run again.
        on: where cells run: `processes`, `dask`, a scheduler's address, or `module:function`.
        workers: cells at once; as many as cores and memory allow by default.

    Raises:
        UserError: the sweep has problems (all of them in one message), or cannot be written.

    >>> import peerveil as pv, tempfile
    >>> quiet = {"learning": "none"}
    >>> grid = {"name": "losses", "bases": ["tiny"], "settings": quiet, "axes": {"network.loss": [0, 0.2]}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cells = pv.sweep(grid, out=f"{folder}/sweep", store=f"{folder}/cells", workers=1)
    ...     cells.table[["network.loss", "state"]].values.tolist()
    [[0.0, 'done'], [0.2, 'done']]
    """
    from scenarios.sweeps.grid import expand
    from scenarios.sweeps.run_sweep import DEFAULT_STORE, SweepOptions, default_folder, run_sweep
    from scenarios.sweeps.store import Store

    asked, data = _read(grid), None if data_dir is None else Path(data_dir)
    # More cells than a person would confirm on the command line are taken as meant: a program has computed them.
    cells = expand(asked, data_dir=data, allow_plugins=allow_plugins, confirmed=True)
    folder = default_folder(asked.name) if out is None else Path(out)
    kept = DEFAULT_STORE if store is None else Path(store)
    options = SweepOptions(on=on, workers=workers, data_dir=data, allow_plugins=allow_plugins)
    run_sweep(asked, cells, folder, Store(kept), options)
    return Cells(folder, kept)


def _read(grid: str | Path | Mapping[str, Any]) -> Sweep:
    from scenarios.loading.writing.dump import to_yaml
    from scenarios.sweeps.sweep_file import load_sweep, parse_sweep

    if isinstance(grid, Mapping):
        return parse_sweep(to_yaml(dict(grid)))
    return load_sweep(Path(grid))
