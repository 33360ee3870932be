"""Files that are either whole or not there: written beside their place, then renamed into it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from p2p.errors import UserError


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path` in one step."""
    write_with(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a file beside `path` and renames it into place when that has succeeded."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        why = error.strerror or str(error)
        raise UserError(f"{path}: cannot be written ({why}); free the disk or choose another --out") from error
