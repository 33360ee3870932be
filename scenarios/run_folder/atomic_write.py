"""Atomic file writes: a temporary file in the same folder is renamed into place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from p2p.config.errors import UserError


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path` atomically."""
    write_with(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary path and renames the file to `path` on success."""
    # In the same folder: a rename is atomic only within one file system.
    temporary = path.with_name(f".{path.name}.part")
    try:
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        why = error.strerror or str(error)
        raise UserError(f"{path}: cannot be written ({why}); free the disk or choose another --out") from error
