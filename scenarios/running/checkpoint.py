"""The checkpoint of a run between two rounds, from which `--resume` continues.

It is one file, replaced atomically, so that a complete checkpoint exists at all times. Events are not stored: they are
replayed from the start. A chain of digests verifies that the replay equals the original run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError
from p2p.log.log import Log
from scenarios.run_folder import atomic_write
from scenarios.run_folder.new_rows import FreshRows, count_rows

FORMAT = 1
FILE = "checkpoint/state.safetensors"
EVENT_TABLES = ("messages", "spans", "dropouts", "graphs")
_DIGEST_BYTES = 32

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The state of a run after some rounds.

    Attributes:
        scenario_sha256: digest of the resolved scenario and its plug-ins.
        round_number: the last closed round; 0 before the first.
        resumes: how often the run has been resumed; keys are drawn accordingly.
        chain: the digest of the events after each round, [rounds, 32] bytes.
        arrays: models and all other learning state, by name.
    """

    scenario_sha256: str
    round_number: int = 0
    resumes: int = 0
    chain: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, _DIGEST_BYTES), dtype=np.uint8))
    arrays: Arrays = field(default_factory=dict)

    def part(self, name: str) -> dict[str, NDArray[Any]]:
        """Returns the arrays named `name.x`, by `x`."""
        return {key.partition(".")[2]: array for key, array in self.arrays.items() if key.partition(".")[0] == name}


class EventChain:
    """A hash chain over a run's events: each link covers the previous link and the rows new in a round.

    Rows are hashed in their state at the close of the round; times are rounded to 1 us, as in `digest.events`.
    """

    def __init__(self) -> None:
        self._fresh = FreshRows()
        self._links: list[bytes] = []

    def extend(self, log: Log) -> NDArray[np.uint8]:
        """Adds a link for the rows since the last call; returns the chain so far, [rounds, 32] bytes."""
        digest = hashlib.sha256(self._links[-1] if self._links else b"peerveil chain 1\n")
        # Only new and changed rows are hashed: hashing the whole log every round would be quadratic.
        rows = self._fresh.take(log)
        for name in EVENT_TABLES:
            table = getattr(log, name)
            digest.update(f"{name} {count_rows(rows[name])}\n".encode())
            for column in table.names:
                values = table[column][rows[name]]
                digest.update((np.round(values, 6) if values.dtype.kind == "f" else values).tobytes())
        self._links.append(digest.digest())
        return np.frombuffer(b"".join(self._links), dtype=np.uint8).reshape(-1, _DIGEST_BYTES)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Replaces the folder's checkpoint atomically."""
    arrays = {"chain": checkpoint.chain} | dict(checkpoint.arrays)
    # safetensors writes the raw buffer, which must be contiguous.
    arrays = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    header = {
        "format": FORMAT,
        "scenario_sha256": checkpoint.scenario_sha256,
        "round": checkpoint.round_number,
        "resumes": checkpoint.resumes,
    }
    metadata = {"peerveil": json.dumps(header), "sha256": _checksum(json.dumps(header), arrays)}
    atomic_write.make_folder((folder / FILE).parent)
    atomic_write.write_tensors(folder / FILE, arrays, metadata)


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """Returns the folder's checkpoint, or None if it has none.

    Raises:
        UserError: the checkpoint is damaged, or of another format.
    """
    path = folder / FILE
    if not path.exists():
        return None
    metadata, arrays = _read(path)
    header = _header(path, metadata.get("peerveil", ""))
    # The format comes first: another one may define the checksum differently.
    if header["format"] != FORMAT:
        cure = f"this peerveil resumes format {FORMAT}; use the version that began the run, or start it anew"
        raise UserError(f"--resume = {path}: has format {header['format']}; {cure}")
    if metadata.get("sha256") != _checksum(metadata["peerveil"], arrays):
        raise _damaged(path, "its checksum does not match")
    chain = arrays.pop("chain")
    return Checkpoint(
        scenario_sha256=header["scenario_sha256"],
        round_number=header["round"],
        resumes=header["resumes"],
        chain=chain,
        arrays=arrays,
    )


def _read(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise _damaged(path, str(error)) from error


def _header(path: Path, text: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(header, dict) or not {"format", "scenario_sha256", "round", "resumes"} <= header.keys():
        raise _damaged(path, "it does not say what it is")
    return header


def _damaged(path: Path, why: str) -> UserError:
    return UserError(f"--resume = {path}: is damaged ({why}); run the scenario anew into another folder")


def _checksum(header: str, arrays: Arrays) -> str:
    """Returns a SHA-256 over the header and all arrays with their names, types and shapes."""
    digest = hashlib.sha256(header.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return digest.hexdigest()
