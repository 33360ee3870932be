"""The store of cells: ordinary run folders called by settings and key, with claims and states beside them.

Claims are locks of the operating system, which end with the process that holds them; so a worker that was killed leaves
none behind. Folders shared over a network must support `flock` (NFS 4, Lustre with `-o flock`).
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.run_folder import atomic_write
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import finished_summary

KEY_IN_NAME = 16
_BOOK = ".cells"
_TOKEN = "token"  # noqa: S105 - no secret: tells whether a worker sees the same folder
_LONGEST_BYTES = 150


class Store:
    """A folder with one run folder per cell."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, Path] = {}

    def prepare(self) -> str:
        """Makes the folder if needed; returns its token, by which a worker finds out whether it sees the same disk."""
        try:
            self._book.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"--store = {self.path}: cannot be written ({error.strerror or error}); choose another folder"
            ) from error
        token = self._book / _TOKEN
        if not token.exists():
            # Linked, not renamed: of two processes that start together, the first one's token stays.
            mine = self._book / f"{_TOKEN}-{uuid.uuid4().hex}"
            atomic_write.write_text(mine, mine.name)
            with suppress(FileExistsError):
                os.link(mine, token)
            mine.unlink()
        return token.read_text(encoding="utf-8")

    def is_shared(self, token: str) -> bool:
        """Returns whether this process sees the store that has this token."""
        try:
            return (self._book / _TOKEN).read_text(encoding="utf-8") == token
        except OSError:
            return False

    def find(self, key: str) -> Path | None:
        """Returns the folder of a cell, whatever the sweep that began it called it."""
        if key[:KEY_IN_NAME] not in self._known:
            self.refresh()
        return self._known.get(key[:KEY_IN_NAME])

    def refresh(self) -> None:
        """Reads the names of the folders again."""
        with suppress(OSError):
            self._known = {
                # By the key at the end: the label in front is for people and may differ between sweeps.
                entry.name.rpartition("--")[2]: Path(entry.path)
                for entry in os.scandir(self.path)
                if "--" in entry.name and not entry.name.startswith(".") and entry.is_dir()
            }

    def folder(self, key: str, label: str) -> Path:
        """Returns the folder of a cell that may not exist yet."""
        plain = re.sub(r"[^\w.,=+-]+", "-", label.replace(", ", ",")).strip("-.,")
        # In bytes: file systems limit names to 255 of them, and a letter may take several.
        short = plain.encode()[:_LONGEST_BYTES].decode(errors="ignore")
        return self.find(key) or self.path / f"{short}--{key[:KEY_IN_NAME]}"

    def summary(self, key: str, look: bool = True) -> dict[str, Any] | None:
        """Returns the summary of a finished cell, else None; without `look` new folders are not searched for."""
        path = self.find(key) if look else self._known.get(key[:KEY_IN_NAME])
        return None if path is None else finished_summary(path)

    def state(self, key: str) -> dict[str, Any]:
        """Returns what was last noted about a cell: running, done or failed; empty if nothing was."""
        try:
            content = json.loads((self._book / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def note(self, key: str, state: Mapping[str, Any]) -> None:
        """Notes the state of a cell; only the holder of its claim does."""
        atomic_write.write_text(self._book / f"{key}.json", to_json(state))

    def forget(self, key: str) -> None:
        """Removes what was noted about a cell, so that it is tried again."""
        (self._book / f"{key}.json").unlink(missing_ok=True)

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Holds the cell for this process; yields False if another one holds it."""
        import fcntl

        # The file stays: without it, a process that has it open and one that makes it anew could both hold the cell.
        with (self._book / f"{key}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def is_claimed(self, key: str) -> bool:
        """Returns whether a living process holds the cell."""
        import fcntl

        # Read, not written: the state of a store is told to people who may not write there, too.
        try:
            with (self._book / f"{key}.lock").open() as file:
                # Shared, so that two who ask do not see each other as holders.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @property
    def _book(self) -> Path:
        return self.path / _BOOK
