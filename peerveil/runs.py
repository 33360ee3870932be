"""Runs: start one, or open the folder of one, and read its tables as data frames."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

from peerveil.sources import read_source
from peerveil.values import Values

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa

    from scenarios.run_folder.reader import StoredRun
    from scenarios.schema import Scenario

TABLES = ("rounds", "messages", "spans", "dropouts", "graphs", "privacy", "aggregations")


class Run:
    """A finished (or interrupted) run: its summary, and its tables as pandas data frames, read on first use.

    Made by `peerveil.run` and `peerveil.load`. In a notebook it shows the table that ends `peerveil run`.

    >>> import peerveil as pv
    >>> run = pv.run("tiny", rounds=2, learning="none")
    >>> run
    tiny, seed 1: 2 of 2 rounds, all rounds done
    >>> run.rounds["round"].tolist()
    [1, 2]
    >>> run.arrow("messages").num_rows == run.summary.messages.sent
    True
    """

    def __init__(self, folder: StoredRun, temporary: bool = False) -> None:
        self._folder = folder
        if temporary:
            # The files go with the last reference to this run.
            finalize(self, rmtree, folder.path, ignore_errors=True)

    @property
    def path(self) -> Path:
        """The run folder; temporary, and gone with this object, unless a folder was given."""
        return self._folder.path

    @cached_property
    def summary(self) -> Values:
        """The content of `summary.json`; empty for a run that was killed before it wrote one."""
        return Values(self._folder.summary or {})

    @cached_property
    def scenario(self) -> Values:
        """The keys of the resolved scenario, defaults included."""
        return Values(self._folder.scenario)

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row per round: times, cohort, updates used and missing, bytes by kind, accuracy, noise."""
        return self._frame("rounds")

    @cached_property
    def messages(self) -> pd.DataFrame:
        """One row per transmission: kind, ends, size, times, outcome and reason."""
        return self._frame("messages")

    @cached_property
    def spans(self) -> pd.DataFrame:
        """What each node did when: training, waiting, aggregating, being down."""
        return self._frame("spans")

    @cached_property
    def dropouts(self) -> pd.DataFrame:
        """Absences, missing updates and dropouts, each with its reason."""
        return self._frame("dropouts")

    @cached_property
    def graphs(self) -> pd.DataFrame:
        """The edges of each round's graph, by true node numbers."""
        return self._frame("graphs")

    @cached_property
    def privacy(self) -> pd.DataFrame:
        """One row per release: its noise, and the client's published and rigorous epsilon so far."""
        return self._frame("privacy")

    @cached_property
    def aggregations(self) -> pd.DataFrame:
        """Which update entered which aggregation."""
        return self._frame("aggregations")

    def arrow(self, table: str) -> pa.Table:
        """Returns a table by name as a `pyarrow.Table`."""
        from p2p.config.errors import UserError
        from scenarios.loading.problems import suggestion

        if table not in TABLES:
            raise UserError(f"table = {table}: unknown table; {suggestion(table, TABLES)}")
        return self._folder.table(table)

    def duckdb(self) -> duckdb.DuckDBPyConnection:
        """Returns a DuckDB connection in which every table of the run is a table of that name."""
        try:
            import duckdb
        except ImportError:
            from p2p.config.errors import UserError

            raise UserError("duckdb is not installed; `pip install duckdb`, or use `.arrow(table)`") from None
        connection = duckdb.connect()
        for name in TABLES:
            connection.register(name, self.arrow(name))
        return connection

    def model(self) -> dict[str, Any]:
        """Returns the final model as numpy arrays by parameter name; empty if none was collected."""
        from safetensors.numpy import load_file

        path = self.path / "model.safetensors"
        return dict(load_file(path)) if path.exists() else {}

    def report(self, out: str | Path | None = None) -> Path:
        """Writes the report page and returns its path: `out`, or `report.html` in the run folder."""
        from scenarios.report.data.run_data import read_run_data
        from scenarios.report.page import report_page
        from scenarios.run_folder import atomic_write

        path = self.path / "report.html" if out is None else Path(out)
        atomic_write.write_text(path, report_page(read_run_data(self.path)))
        return path

    def save(self, folder: str | Path) -> Run:
        """Copies the run folder to `folder`, which must be new or empty, and returns the run there."""
        from scenarios.run_folder.writer import check_out

        check_out(Path(folder))
        copytree(self.path, folder, dirs_exist_ok=True)
        return load(folder)

    def _frame(self, table: str) -> pd.DataFrame:
        frame: pd.DataFrame = self.arrow(table).to_pandas()
        return frame

    def __repr__(self) -> str:
        summary = self.summary
        if not summary:
            return f"run in {self.path}, killed before its summary was written"
        rounds = f"{summary['rounds_completed']} of {summary.get('rounds_planned', '?')} rounds"
        return f"{summary['scenario']}, seed {summary['seed']}: {rounds}, {summary['stopped_because']}"

    def _repr_html_(self) -> str:
        from html import escape

        from scenarios.metrics.headline.headline_rows import headline_rows

        if not self.summary:
            return f"<p>{escape(repr(self))}</p>"
        rows = headline_rows(self._folder.summary or {})
        cells = "".join(f"<tr><th>{escape(label)}</th><td>{escape(text)}</td></tr>" for label, text in rows)
        return f"<table><caption>{escape(repr(self))}</caption>{cells}</table>"


def run(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    *,
    out: str | Path | None = None,
    data_dir: str | Path | None = None,
    threads: int | None = None,
    resume: bool = False,
    progress: bool = False,
    allow_plugins: bool = False,
    **changes: Any,
) -> Run:
    """Runs a scenario and returns its results.

    Args:
        scenario: a name from the catalog, a path, a mapping of keys, or a `Scenario`.
        out: the run folder, new or empty; without one the files live as long as the returned object.
        data_dir: folder of the published data sets; default `PEERVEIL_DATA`.
        threads: cores for learning; all by default.
        resume: go on with the run in `out`.
        progress: show a progress bar.
        allow_plugins: import the modules that the scenario names as `module:Class`.
        changes: keys of the scenario and their new values, as in `rounds=5, network={"loss": 0.05}`.

    Raises:
        UserError: the scenario has problems (all of them in one message), or the folder cannot be written.

    >>> import peerveil as pv
    >>> pv.run("tiny", rounds=2, learning="none", network={"loss": 0.2}).summary.messages.lost > 0
    True
    """
    from scenarios.loading.plugins import blaming_plugins
    from scenarios.run_folder.reader import open_run
    from scenarios.running.run import run_scenario

    checked = read_source(scenario, changes, allow_plugins)
    folder = Path(mkdtemp(prefix="peerveil-") if out is None else out)
    try:
        with blaming_plugins(checked.plugins):
            _, written = run_scenario(
                checked,
                folder,
                data_dir=None if data_dir is None else Path(data_dir),
                threads=threads,
                resume=resume,
                quiet=not progress,
            )
        return Run(open_run(written.path), temporary=out is None)
    except BaseException:
        if out is None:
            rmtree(folder, ignore_errors=True)
        raise


def load(folder: str | Path) -> Run:
    """Opens the folder of a run, also of one that was killed.

    Raises:
        UserError: it is not a run folder, or it is damaged.

    >>> import peerveil as pv
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = pv.run("tiny", rounds=2, learning="none", out=folder)
    ...     pv.load(folder).summary.digest.events == made.summary.digest.events
    True
    """
    from scenarios.run_folder.reader import open_run

    return Run(open_run(Path(folder)))
