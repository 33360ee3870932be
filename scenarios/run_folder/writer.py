"""Writes the folder of a run: part files during the run, merged tables at its end."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError
from p2p.log.log import Log
from scenarios.run_folder import atomic_write
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.new_rows import FreshRows, count_rows
from scenarios.run_folder.observation_files import Arrays, drop_parts_after, merge_parts, write_parts
from scenarios.run_folder.parquet_files import write_table

if TYPE_CHECKING:
    import pyarrow as pa

INTERRUPTED = "interrupted"
_LONGEST_NAME_BYTES = 200
_REPEATED = frozenset(
    (
        *("kind", "outcome", "reason", "bottleneck", "name", "what", "round", "attempt"),
        *("size_bytes", "overhead_bytes", "left_bytes", "wasted_bytes", "noise_std"),
    )
)
"""Columns with few distinct values, which get a Parquet dictionary.

For the others the writer would start a dictionary and discard it once it had grown too large.
"""


def check_out(out: Path | None) -> None:
    """Raises a `UserError` if a run cannot be written to `out` (None: to `runs/`); writes nothing."""
    problem = _problem(out if out is not None else Path("runs"), may_hold_files=out is None)
    if problem:
        raise UserError(f"--out = {out if out is not None else 'runs'}: {problem}")


def _problem(path: Path, may_hold_files: bool) -> str:
    try:
        if path.exists() and not path.is_dir():
            return "is a file; name a folder that is new or empty"
        if path.is_dir() and not may_hold_files and any(path.iterdir()):
            return "is not empty; name a folder that is new or empty"
        # The folder may not exist yet: then its nearest existing ancestor must be writable.
        nearest = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        if not nearest.is_dir():
            return f"{nearest} is a file; name a folder that is new or empty"
        writable = os.access(nearest, os.W_OK | os.X_OK)
    except OSError as error:
        return _unwritable(error)
    return "" if writable else f"{nearest} is not writable; choose a folder where you may write"


def _unwritable(error: OSError) -> str:
    return f"cannot be written ({error.strerror or error}); choose a folder where you may write"


class RunFolder:
    """Writes one run.

    Guarantees:
        Every file is complete or absent. A killed run leaves `parts/`, which `open_run` reads.
    """

    __slots__ = ("_fresh", "_rounds", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fresh = FreshRows()
        self._rounds = 0

    @classmethod
    def create(cls, out: Path | None, name: str, seed: int) -> RunFolder:
        """Creates the folder: `out`, or `runs/<name>-<seed>` with the first free number appended."""
        check_out(out)
        try:
            path = _make_free(Path("runs"), folder_name(name, seed)) if out is None else out
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--out = {out if out is not None else 'runs'}: {_unwritable(error)}") from error
        return cls(path)

    def begin(self, scenario_text: str, environment: Mapping[str, Any]) -> None:
        """Writes `scenario.yaml` and `environment.json` before the first round."""
        atomic_write.write_text(self.path / "scenario.yaml", scenario_text)
        atomic_write.write_text(self.path / "environment.json", to_json(environment))

    def write_part(self, log: Log, round_number: int) -> None:
        """Writes the rows added since the last part, and the messages in flight then that have ended since.

        Called at the end of some rounds. Messages still in flight are written as `in_flight`.
        """
        from scenarios.run_folder import arrow_tables

        for name, rows in self._fresh.take(log).items():
            if count_rows(rows):
                arrow = arrow_tables.to_arrow(name, getattr(log, name), rows)
                self._write_table(f"parts/{name}-{round_number}.parquet", arrow)
        fresh, self._rounds = log.rounds[self._rounds :], len(log.rounds)
        if fresh:
            arrow = arrow_tables.rounds_to_arrow(fresh, log.messages)
            self._write_table(f"parts/rounds-{round_number}.parquet", arrow)

    def skip_part(self, log: Log) -> None:
        """Marks the current rows as written: during a replay the folder holds them already."""
        self._fresh.take(log)
        self._rounds = len(log.rounds)

    def reopen(self, last_round: int) -> None:
        """Removes the summary, the merged tables, and the parts after `last_round`, so that the run can continue."""
        from scenarios.run_folder.arrow_tables import TABLES

        # The summary goes first: without it the folder is read as that of a killed run, which it is from here on.
        for name in ("summary.json", "model.safetensors", *(f"{table}.parquet" for table in TABLES)):
            (self.path / name).unlink(missing_ok=True)
        for path in self.path.glob("parts/*-*.parquet"):
            number = path.stem.rpartition("-")[2]
            # Newer parts belong to rounds that will be run again.
            if not number.isdecimal() or int(number) > last_round:
                path.unlink(missing_ok=True)
        drop_parts_after(self.path, last_round)

    def write_observations(self, seen: Mapping[str, Sequence[Arrays]], round_number: int) -> None:
        """Writes what each observer has seen up to the end of a round."""
        for name, parts in seen.items():
            write_parts(self.path, name, round_number, parts)

    def finish(
        self,
        log: Log,
        summary: Mapping[str, Any],
        model: Mapping[str, NDArray[Any]] | None = None,
        partial: bool = False,
        observed: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Writes the merged tables, the model and the summary, and removes the parts and the checkpoint.

        `partial` means that the run was interrupted: the summary records it in `stopped_because`, and the parts and
        the checkpoint stay for a resume. `observed` has a header for each observer.
        """
        from scenarios.run_folder import arrow_tables

        for name, arrow in arrow_tables.each_as_arrow(log):
            self._write_table(f"{name}.parquet", arrow)
        if model is not None:
            self._write_model(model)
        if observed:
            merge_parts(self.path, observed, keep_parts=partial)
        reason = str(summary.get("stopped_because", ""))
        if partial and not reason.startswith(INTERRUPTED):
            summary = {**summary, "stopped_because": INTERRUPTED}
        # Last of the results: a folder with a summary has all its tables. Only then may the parts go.
        atomic_write.write_text(self.path / "summary.json", to_json(summary))
        for name in () if partial else ("parts", "checkpoint"):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def _write_model(self, model: Mapping[str, NDArray[Any]]) -> None:
        arrays = {name: np.ascontiguousarray(array) for name, array in model.items()}
        atomic_write.write_tensors(self.path / "model.safetensors", arrays)

    def _write_table(self, name: str, arrow: pa.Table) -> None:
        path = self.path / name
        atomic_write.make_folder(path.parent)
        settings = {"compression": "zstd", "use_dictionary": [each for each in arrow.column_names if each in _REPEATED]}
        write_table(path, arrow, **settings)


def folder_name(name: str, seed: int) -> str:
    """Returns `<name>-<seed>` as a valid file name for any scenario name."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")
    # File systems limit names in bytes; `ignore` drops a character cut in half.
    return f"{plain.encode()[:_LONGEST_NAME_BYTES].decode(errors='ignore') or 'run'}-{seed}"


def _make_free(parent: Path, name: str) -> Path:
    # Creating the folder is the test for a free name: two processes cannot both succeed.
    number = 1
    while True:
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return path
