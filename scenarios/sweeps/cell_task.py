"""Runs one cell, in whatever process the executor chose: claims it, resumes or starts it, and says how it ended."""

from __future__ import annotations

import errno
import io
import os
import platform
import shutil
import tarfile
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from p2p.config.errors import UserError
from scenarios.loading.load import parse_scenario
from scenarios.loading.plugins import blaming_plugins
from scenarios.loading.yaml_text import parse_yaml
from scenarios.run_folder.atomic_write import CannotWriteError
from scenarios.run_folder.reader import finished_summary
from scenarios.schema import Scenario
from scenarios.sweeps.identity import cell_key, cell_keys
from scenarios.sweeps.store import Store
from scenarios.sweeps.worker_memory import CycleCollector

State = Literal["done", "failed", "claimed", "stopped", "interrupted"]
_NOTE_EVERY_S = 0.5
_ONE_AT_A_TIME = threading.Lock()
"""A run tunes the collector and torch's threads of its process; an executor with threads runs cells one by one."""
_CYCLES = CycleCollector()
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


@dataclass(frozen=True, slots=True)
class CellTask:
    """What a worker needs to run a cell; plain data, so that any executor can send it.

    Attributes:
        key: the cell's key
        label: the cell in words
        text: the resolved scenario
        origin: folder of the scenario's file
        allow_plugins: whether plug-ins may be imported
        store: folder of the store
        token: the store's token; a worker that does not see it works in a folder of its own
        data_dir: folder of the data sets; none takes the worker's own
    """

    key: str
    label: str
    text: str
    origin: str
    allow_plugins: bool
    store: str
    token: str
    data_dir: str | None


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """How a cell ended.

    Attributes:
        state: done; failed (by itself); claimed (another process has it); stopped (the disk, not the cell);
            interrupted
        message: why it failed or stopped
        seconds: wall time of the run
        worker: machine and process
        archive: the run folder as a tar file, if the worker does not see the store
    """

    key: str
    state: State
    message: str = ""
    seconds: float = 0.0
    worker: str = ""
    archive: bytes | None = field(default=None, repr=False)
    trace: str = field(default="", repr=False)

    def note(self) -> dict[str, Any]:
        """Returns what the store keeps about the cell."""
        noted = {"state": self.state, "message": self.message, "seconds": self.seconds, "worker": self.worker}
        return noted | ({"trace": self.trace} if self.trace else {})


def run_cell(task: CellTask) -> CellOutcome:
    """Runs a cell and returns how it ended; raises nothing that the cell itself causes."""
    with _ONE_AT_A_TIME:
        try:
            return _run_here(task)
        finally:
            _CYCLES.after_cell()


def _run_here(task: CellTask) -> CellOutcome:
    store = Store(Path(task.store))
    if not store.is_shared(task.token):
        return _run_elsewhere(task)
    try:
        return _run_claimed(task, store)
    except OSError as error:
        return _stopped(task, error)


def unpack(outcome: CellOutcome, store: Store, label: str) -> None:
    """Puts the run folder that came over the wire into the store; complete or not at all."""
    target = store.folder(outcome.key, label)
    with tempfile.TemporaryDirectory(dir=store.path, prefix=".unpack-") as temporary:
        inside = Path(temporary) / "run"
        with tarfile.open(fileobj=io.BytesIO(outcome.archive or b"")) as archive:
            # The filter refuses links and paths that lead out of the folder: the archive came over the wire.
            archive.extractall(inside, filter="data")
        # What another machine began and lost is replaced.
        shutil.rmtree(target, ignore_errors=True)
        # A rename is atomic on one file system, hence the temporary folder inside the store.
        inside.rename(target)


def _run_claimed(task: CellTask, store: Store) -> CellOutcome:
    with store.claim(task.key) as mine:
        if not mine:
            return CellOutcome(task.key, "claimed")
        folder = store.folder(task.key, task.label)
        # Asked again under the claim: another process may have finished it since the sweep looked.
        finished = finished_summary(folder)
        if finished is not None:
            return _found(task, store, finished)
        notes = _RoundNotes(task.key, store)
        notes.begin()
        outcome = _attempt(task, folder, notes)
        # Stopped and interrupted cells are left as they are, so that the next sweep takes them up.
        if outcome.state in ("done", "failed"):
            store.note(task.key, outcome.note())
        return outcome


def _found(task: CellTask, store: Store, summary: Mapping[str, Any]) -> CellOutcome:
    """Returns the outcome of a cell that has finished before; one killed between summary and note is noted now."""
    noted = store.state(task.key)
    if noted.get("state") == "done":
        return CellOutcome(task.key, "done", seconds=float(noted.get("seconds") or 0.0))
    outcome = CellOutcome(task.key, "done", seconds=float(summary.get("wall_s") or 0.0), worker=_worker())
    store.note(task.key, outcome.note())
    return outcome


def _run_elsewhere(task: CellTask) -> CellOutcome:
    """Runs a cell into a temporary folder and returns the folder's content."""
    with tempfile.TemporaryDirectory(prefix="peerveil-cell-") as temporary:
        folder = Path(temporary) / "run"
        outcome = _attempt(task, folder, None)
        if outcome.state != "done":
            return outcome
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, arcname=".")
        return replace(outcome, archive=packed.getvalue())


class _RoundNotes:
    """Notes the round that a cell has reached, for the live table; not more often than twice a second."""

    def __init__(self, key: str, store: Store) -> None:
        self._key, self._store, self._next_s = key, store, 0.0
        self._state: dict[str, Any] = {"state": "running", "round": 0, "worker": _worker()}

    def begin(self) -> None:
        self._store.note(self._key, self._state)
        self._next_s = time.monotonic() + _NOTE_EVERY_S

    def __call__(self, row: Mapping[str, Any]) -> None:
        if time.monotonic() >= self._next_s:
            self._state["round"] = int(row["round"])
            self.begin()


def _attempt(task: CellTask, folder: Path, notes: _RoundNotes | None) -> CellOutcome:
    began_s = time.perf_counter()
    state: State = "done"
    message = trace = ""
    try:
        summary = _run(task, folder, notes)
        if str(summary.get("stopped_because", "")).startswith("interrupted"):
            state = "interrupted"
    except CannotWriteError as error:
        state, message = "stopped", str(error)
    except KeyboardInterrupt:
        state = "interrupted"
    except OSError as error:
        # A full disk would fail every cell after this one; it is no property of the cell.
        if error.errno in _DISK:
            return _stopped(task, error)
        state, message, trace = "failed", f"{type(error).__name__}: {error}", traceback.format_exc()
    except UserError as error:
        state, message = "failed", str(error)
    except Exception as error:
        # A bad cell fails alone: the sweep goes on, and its table has the message.
        state, message, trace = "failed", f"{type(error).__name__}: {error}", traceback.format_exc()
    return CellOutcome(task.key, state, message, time.perf_counter() - began_s, _worker(), trace=trace)


def _run(task: CellTask, folder: Path, notes: _RoundNotes | None) -> Mapping[str, Any]:
    from scenarios.running.run import run_scenario

    data_dir = None if task.data_dir is None else Path(task.data_dir)
    scenario = parse_scenario(task.text, task.label, Path(task.origin), allow_plugins=task.allow_plugins)
    _check_identity(task, scenario, data_dir)
    listeners = () if notes is None else (notes,)
    begun = folder.is_dir() and any(folder.iterdir())
    # One thread: the sweep fills the cores with cells.
    with blaming_plugins(scenario.plugins):
        if begun:
            try:
                scenario = _called_as_before(scenario, folder)
                return run_scenario(scenario, folder, data_dir=data_dir, threads=1, resume=True, listeners=listeners)[0]
            except CannotWriteError:
                raise
            except (UserError, ValueError):
                # No resume: damaged by the kill, or a scenario that cannot resume. What was begun is lost, no more.
                shutil.rmtree(folder)
        return run_scenario(scenario, folder, data_dir=data_dir, threads=1, listeners=listeners)[0]


def _called_as_before(scenario: Scenario, folder: Path) -> Scenario:
    """Takes name and question from the interrupted run: another sweep may have begun it under another name."""
    file = folder / "scenario.yaml"
    if not file.is_file():
        # Killed in its first moments, before it had a name.
        return scenario
    stored = parse_yaml(file.read_text(encoding="utf-8"))
    return replace(scenario, name=stored["name"], question=stored["question"])


def _check_identity(task: CellTask, scenario: Scenario, data_dir: Path | None) -> None:
    # Computed by the worker from its own files: equal keys promise equal results.
    found = cell_key(cell_keys(scenario, data_dir), scenario.seed)
    if found != task.key:
        raise UserError(
            f"{_worker()}: has another version of peerveil, torch, the data or a plug-in than the machine that sweeps; "
            "install the same there"
        )


def _stopped(task: CellTask, error: OSError) -> CellOutcome:
    where = f"{error.filename}: " if error.filename else ""
    cure = "free the disk, or check the rights"
    return CellOutcome(task.key, "stopped", f"{where}{error.strerror or error}; {cure}", worker=_worker())


def _worker() -> str:
    return f"{platform.node()}:{os.getpid()}"
