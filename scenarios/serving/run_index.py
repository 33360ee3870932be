"""Finds the runs in a folder and reads what a list of them shows. Nothing outside the folder is read.

Links are not followed: neither to folders, nor for files of a run. A run is named to others by a number that is made
from its path, never by the path itself, so a request cannot ask for another place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.metrics.privacy.privacy_verdict import epsilon_of
from scenarios.run_folder.json_text import plain

_DEEPEST = 4
_MOST_RUNS = 5000
_MOST_BYTES = 20_000_000
"""A summary is a few kilobytes; a larger file is no summary of ours."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run of a folder.

    Attributes:
        key: its number for others, made from its place.
        place: its path inside the folder.
        state: `done`, `interrupted`, `running`, `killed` or `damaged`.
        trouble: how many warnings and diagnoses it has.
    """

    key: str
    place: str
    scenario: str
    seed: int | None
    protocol: str
    state: str
    rounds: int
    planned: int | None
    accuracy: float | None
    simulated_s: float | None
    bytes: int | None
    epsilon: float | str | None
    trouble: int
    changed: float

    def to_json(self) -> dict[str, Any]:
        """Returns the entry as plain data."""
        made: dict[str, Any] = plain(asdict(self))
        return made


def find_runs(folder: Path) -> dict[str, tuple[Path, RunEntry]]:
    """Returns the runs below a folder by key, newest first."""
    if not folder.is_dir():
        raise UserError(f"FOLDER = {folder}: is not a folder; give one that holds runs, such as `runs`")
    root = folder.resolve()
    found = {}
    for path in _run_folders(root, 0):
        place = path.relative_to(root).as_posix()
        # A hash and no path: what comes back in a request can only name a run that was listed.
        key = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        found[key] = (path, _entry(path, key, place if place != "." else root.name))
        if len(found) >= _MOST_RUNS:
            break
    return dict(sorted(found.items(), key=lambda item: (-item[1][1].changed, item[1][1].place)))


def _run_folders(folder: Path, depth: int) -> Iterator[Path]:
    """Yields the run folders below; a run holds no other runs."""
    if is_run(folder):
        yield folder
        return
    if depth >= _DEEPEST:
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        # Hidden folders hold what is being made, such as cells that are unpacked.
        if not name.startswith("."):
            yield from _run_folders(folder / name, depth + 1)


def is_run(path: Path) -> bool:
    """Returns whether a folder is a run's: it has a summary, or parts of one under way."""
    return _own_file(path / "summary.json") or ((path / "parts").is_dir() and not (path / "parts").is_symlink())


def has_links(path: Path) -> bool:
    """Returns whether a file of a run is a link; such a run is not opened, since the link may lead anywhere."""
    for folder, names, files in os.walk(path):
        if any((Path(folder) / name).is_symlink() for name in (*names, *files)):
            return True
    return False


def _own_file(path: Path) -> bool:
    # A link could show a file from outside the folder to those who may see the page.
    return path.is_file() and not path.is_symlink()


def _entry(path: Path, key: str, place: str) -> RunEntry:
    summary, scenario = _read_json(path / "summary.json"), _read_scenario(path / "scenario.yaml")
    known: Mapping[str, Any] = summary or {}
    head = known.get("headline") if isinstance(known.get("headline"), dict) else {}
    rounds = _whole(known.get("rounds_completed")) if summary else _rounds_so_far(path)
    epsilon = epsilon_of(_at(head, "epsilon", "rigorous_local"))
    return RunEntry(
        key=key,
        place=place,
        scenario=str(known.get("scenario") or scenario.get("name") or path.name)[:80],
        seed=_whole(known.get("seed", scenario.get("seed"))),
        protocol=str(known.get("protocol") or scenario.get("protocol.kind") or "")[:80],
        state=_state(path, summary),
        rounds=rounds or 0,
        planned=_whole(known.get("rounds_planned", scenario.get("rounds"))),
        accuracy=_number(_at(head, "accuracy", "collected")),
        simulated_s=_number(known.get("simulated_s")),
        bytes=_whole(_at(known, "bytes", "sent")),
        epsilon="inf" if epsilon == float("inf") else epsilon,
        trouble=sum(len(known[name]) for name in ("warnings", "diagnosis") if isinstance(known.get(name), list)),
        changed=_changed(path),
    )


def _state(path: Path, summary: Mapping[str, Any] | None) -> str:
    if summary is not None:
        return "interrupted" if str(summary.get("stopped_because", "")).startswith("interrupted") else "done"
    if (path / "summary.json").exists():
        return "damaged"
    return "running" if _is_locked(path / "checkpoint" / "lock") else "killed"


def _is_locked(path: Path) -> bool:
    """Returns whether a process holds a run's lock; the lock is not taken from it."""
    if not _own_file(path):
        return False
    try:
        import fcntl
    except ImportError:  # not a POSIX system: a run under way cannot be told from a killed one
        return False
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _rounds_so_far(path: Path) -> int:
    """Returns the last round that a run under way has written."""
    try:
        names = os.listdir(path / "parts")
    except OSError:
        return 0
    numbers = [int(match[1]) for name in names if (match := re.fullmatch(r"rounds-(\d{1,9})\.parquet", name))]
    return max(numbers, default=0)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        if not _own_file(path) or path.stat().st_size > _MOST_BYTES:
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _read_scenario(path: Path) -> dict[str, Any]:
    """Returns a few keys of a resolved scenario, by their lines: parsing the YAML of all runs takes long."""
    try:
        if not _own_file(path) or path.stat().st_size > _MOST_BYTES:
            return {}
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found: dict[str, Any] = {}
    for key in ("name", "seed", "rounds"):
        match = re.search(rf"^{key}: *(.{{1,200}})$", text, re.MULTILINE)
        if match:
            value = match[1].strip().strip("'\"")
            found[key] = int(value) if key != "name" and value.isdecimal() and len(value) < 19 else value
    kind = re.search(r"^protocol:\n(?:  .*\n)*?  kind: *(\S{1,80})$", text, re.MULTILINE)
    return found | ({"protocol.kind": kind[1]} if kind else {})


def _changed(path: Path) -> float:
    for name in ("summary.json", "parts", "."):
        try:
            return (path / name).lstat().st_mtime
        except OSError:
            continue
    return 0.0


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
