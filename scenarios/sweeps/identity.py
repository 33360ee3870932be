"""The identity of a cell: equal for runs that must give equal results, whatever they are called.

It covers the resolved scenario without name and question, the source that computes runs, the SHA-256 of the data and
of plug-ins, and torch's version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from nodes.datasets.original_formats import resolve_data_dir
from scenarios.loading.writing.dump import dump_keys
from scenarios.schema import Scenario

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("p2p", "topologies", "privacy", "nodes", "scenarios")
NOT_RUNNING = ("cli", "report", "plots", "planning", "sweeps", "reproductions", "export", "catalog")
"""Folders of `scenarios/` that no run imports: changing them changes no result. A test watches the imports."""
_NO_SOURCE = (".pyc", ".so", ".part")


def cell_keys(scenario: Scenario, data_dir: Path | None) -> dict[str, Any]:
    """Returns all that decides a run's results, except its seed, as plain data."""
    keys = dump_keys(scenario, leave_out=("name", "question", "seed"))
    return {
        "scenario": _canonical(keys),
        "source": source_digest(),
        "data": data_digests(scenario.data, data_dir),
        "plugins": dict(sorted(scenario.plugins.items())),
        "torch": _version("torch"),
    }


def cell_key(keys: Mapping[str, Any], seed: int) -> str:
    """Returns the SHA-256 that names a cell."""
    # Sorted, so that the order in which keys were written has no influence.
    text = json.dumps([keys, seed], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def source_digest() -> str:
    """Returns the SHA-256 over every file of the packages that a run may import or read."""
    digest = hashlib.sha256()
    for path in sorted(_source_files()):
        # The name too: moving a file can change what is imported.
        digest.update(f"{path.relative_to(_ROOT).as_posix()}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def is_running_source(path: Path) -> bool:
    """Returns whether a file of the package is covered by the digest of the source."""
    parts = path.relative_to(_ROOT).parts
    outside = parts[0] == "scenarios" and len(parts) > 2 and parts[1] in NOT_RUNNING
    hidden = any(part.startswith((".", "__pycache__")) for part in parts)
    return parts[0] in _PACKAGES and not outside and not hidden and path.suffix not in _NO_SOURCE


def _source_files() -> list[Path]:
    found = (path for name in _PACKAGES for path in (_ROOT / name).rglob("*") if path.is_file())
    return [path for path in found if is_running_source(path)]


def data_digests(data: Any, data_dir: Path | None) -> dict[str, str]:
    """Returns the SHA-256 of each file that a published data set is read from.

    Raises:
        UserError: a file is missing.
    """
    source = getattr(data, "SOURCE", None)
    if source is None:
        return {}
    return {path.name: file_digest(path) for path in source.locate(resolve_data_dir(data_dir))}


def file_digest(path: Path) -> str:
    """Returns the SHA-256 of a file; read once per process as long as size and time stay the same."""
    found = path.stat()
    return _digest(str(path), found.st_size, found.st_mtime_ns)


@cache
def _digest(path: str, size: int, changed_ns: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _canonical(value: Any) -> Any:
    """Writes equal values alike: 1.0 as 1, and a file (the loader has made its path absolute) as its SHA-256.

    Moving a file changes nothing, changing its content does.
    """
    if isinstance(value, Mapping):
        return {key: _canonical(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) < 4096 and Path(value).is_absolute() and Path(value).is_file():
        return f"sha256 {file_digest(Path(value))}"
    return value


@cache
def _version(package: str) -> str | None:
    # Not torch.__version__: importing torch takes a second, and the identity is needed before any cell runs.
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
