"""Atomic file writes: a temporary file in the same folder is renamed into place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from p2p.config.errors import UserError
from scenarios.run_folder.tensor_format import write_arrays


class CannotWriteError(UserError):
    """A file cannot be written: the disk is full, or the folder may not be written. No fault of what is computed."""


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path` atomically."""
    write_with(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: dict[str, str] | None = None) -> None:
    """Writes arrays as a safetensors file atomically."""
    write_with(path, lambda temporary: write_arrays(temporary, arrays, metadata))


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary path and renames the file to `path` on success."""
    # In the same folder: a rename is atomic only within one file system.
    temporary = path.with_name(f".{path.name}.part")
    try:
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise _unwritable(path, error) from error


def make_folder(path: Path) -> None:
    """Makes a folder inside an existing one, unless it is there."""
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> CannotWriteError:
    why = error.strerror or str(error)
    return CannotWriteError(f"{path}: cannot be written ({why}); free the disk or choose another --out")
