"""Reads a run folder: merged tables, or the parts of a killed run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2p.config.errors import UserError
from p2p.log.log import Log
from scenarios.run_folder import arrow_tables
from scenarios.run_folder.arrow_tables import FORMAT
from scenarios.run_folder.parquet_files import read_table
from scenarios.run_folder.table_checks import check_table, table_schema
from scenarios.run_folder.writer import INTERRUPTED

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class StoredRun:
    """A run read from its folder; tables are read on first use.

    Attributes:
        path: the folder.
        summary: the content of `summary.json`, or None if the run was killed before writing it.
        scenario_text: the resolved scenario.
        environment: versions and machine; empty if the file is missing.
    """

    path: Path
    summary: dict[str, Any] | None
    scenario_text: str
    environment: dict[str, Any]

    @cached_property
    def log(self) -> Log:
        """The log of the run, as it was in memory."""
        tables = {name: self.table(name) for name in arrow_tables.TABLES}
        log = Log()
        for name, table in tables.items():
            self._check_columns(name, table)
            try:
                value = (
                    arrow_tables.rounds_from_arrow(table) if name == "rounds" else arrow_tables.from_arrow(name, table)
                )
            except KeyError as error:
                raise UserError(
                    f"RUN = {self.path}: {name}.parquet is damaged ({error}); run the scenario again"
                ) from error
            setattr(log, name, value)
        return log

    def _check_columns(self, name: str, table: pa.Table) -> None:
        """Raises a `UserError` if a table lacks columns of the log, as tables of earlier versions do."""
        absent = [column for column in table_schema(name).names if column not in table.column_names]
        if name != "rounds" and absent:
            why = f"{name}.parquet has no column {', '.join(absent)}, so another version of peerveil wrote it"
            raise UserError(f"RUN = {self.path}: {why}; use that version, or run the scenario again")

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The resolved scenario's keys."""
        import yaml

        try:
            content = yaml.safe_load(self.scenario_text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            why = str(error).splitlines()[0]
            raise UserError(f"RUN = {self.path}: scenario.yaml is damaged ({why}); run the scenario again") from error
        return content if isinstance(content, dict) else {}

    def table(self, name: str) -> pa.Table:
        """Returns the table called `name`, merged from parts if the run was killed."""
        whole = self.path / f"{name}.parquet"
        # The summary is written last: without it a merged table may be missing or stem from an earlier attempt.
        if self.summary is not None or not (self.path / "parts").is_dir():
            return _read(name, whole)
        return _merge(name, _parts(self.path, name))


def open_run(path: Path) -> StoredRun:
    """Opens a run folder; raises a `UserError` with the reason if it is not one."""
    if not path.is_dir():
        raise UserError(f"RUN = {path}: is not a folder; give a folder that `peerveil run` wrote")
    summary = _json(path / "summary.json")
    environment = _json(path / "environment.json") or {}
    if summary is None and not (path / "parts").is_dir():
        raise UserError(f"RUN = {path}: has no summary.json and no parts; {_cure(path)}")
    # A killed run has no summary; its environment holds the format too.
    _check_format(path, (summary or environment).get("format", FORMAT))
    return StoredRun(path, summary, _text(path / "scenario.yaml"), environment)


def finished_summary(path: Path) -> dict[str, Any] | None:
    """Returns the summary of a finished run folder; None for an unfinished, interrupted or unreadable one."""
    try:
        summary = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    ended = isinstance(summary, dict) and not str(summary.get("stopped_because", "")).startswith(INTERRUPTED)
    return summary if ended else None


def _cure(path: Path) -> str:
    """Names the run folders inside, as several seeds or scenarios with one --out leave them."""
    inside = sorted(found.name for found in path.iterdir() if _looks_like_run(found))
    if not inside:
        return "give a folder that `peerveil run` wrote"
    one = f"`{path / inside[0]}`"
    if len(inside) == 1:
        return f"it holds a run, {inside[0]}; give {one}"
    return f"it holds {len(inside)} runs, such as {inside[0]}; give `{path}/*` for all or {one} for one"


def _looks_like_run(path: Path) -> bool:
    return (path / "summary.json").is_file() or (path / "parts").is_dir()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, ValueError) as error:
        raise UserError(f"RUN = {path}: is damaged ({error}); run the scenario again") from error


@contextmanager
def explaining_damage(path: Path) -> Iterator[None]:
    """Turns errors of computing with a folder's content into a `UserError`.

    Types and ranges are checked on reading. Tables, summary and scenario can still contradict each other in any way.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MemoryError) as error:
        why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no details'}"
        raise UserError(
            f"RUN = {path}: cannot be read as a run ({why}); its files are damaged or contradict each other, or "
            "peerveil is wrong: run the scenario again, and report it if that does not help"
        ) from error


def _check_format(path: Path, number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise UserError(f"RUN = {path}: format {number!r} is unknown; give a folder that `peerveil run` wrote")
    if number > FORMAT:
        raise UserError(
            f"RUN = {path}: has format {number} and this peerveil reads up to {FORMAT}; install a newer one"
        )


def _json(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"RUN = {path}: is damaged ({error}); run the scenario again") from error
    if not isinstance(content, dict):
        raise UserError(f"RUN = {path}: is not a JSON object; give a folder that `peerveil run` wrote")
    return content


def _read(name: str, path: Path) -> pa.Table:
    import pyarrow as pa

    try:
        table = read_table(path)
        check_table(name, table)
        return table
    except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
        why = "is missing" if not path.exists() else f"is damaged ({error})"
        raise UserError(f"RUN = {path}: {why}; run the scenario again") from error


def _parts(path: Path, name: str) -> list[Path]:
    # Sorted by number, not by name: later parts hold the final state of messages that appear twice.
    found = [(re.fullmatch(rf"{name}-(-?\d+)\.parquet", part.name), part) for part in (path / "parts").iterdir()]
    return [part for match, part in sorted((int(match[1]), part) for match, part in found if match)]


def _merge(name: str, parts: list[Path]) -> pa.Table:
    import pyarrow as pa

    if not parts:
        # Killed before the first part: an empty table with the right columns.
        return table_schema(name).empty_table()
    tables = [_read(name, part) for part in parts]
    # A round may record more than others do; the log's own columns are in every part or, of another version, in none.
    own = set(table_schema(name).names)
    try:
        if len({frozenset(own.intersection(table.column_names)) for table in tables}) > 1:
            raise ValueError("they have different columns")
        merged = pa.concat_tables(tables, promote_options="permissive")
        if name == "messages" and "id" not in merged.column_names:
            raise ValueError("they have no ids")
    except (ValueError, pa.ArrowException) as error:
        why = str(error).splitlines()[0]
        where = f"RUN = {parts[0].parent}: parts of {name}"
        raise UserError(f"{where} do not fit together ({why}); run the scenario again") from error
    return _last_of_each_id(merged) if name == "messages" else merged


def _last_of_each_id(messages: pa.Table) -> pa.Table:
    """Keeps the last row of each id: a message in flight when a part was written appears again once it has ended."""
    ids = np.asarray(messages.column("id"))
    # np.unique finds first occurrences, hence the reversal.
    _, from_the_end = np.unique(ids[::-1], return_index=True)
    return messages.take(len(ids) - 1 - from_the_end)
