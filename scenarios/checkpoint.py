"""The state of a run between two rounds, on disk: what `--resume` goes on from.

One file, replaced in one step, so that the last whole checkpoint is there at every instant. Events are not in it: they
are replayed from the start. What it holds of them is a chain of digests, by which the replay is recognised.
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

from p2p.errors import UserError
from p2p.log import Log
from scenarios import atomic
from scenarios.fresh_rows import FreshRows, count_rows

FORMAT = 1
FILE = "checkpoint/state.safetensors"
EVENT_TABLES = ("messages", "spans", "dropouts", "graphs")
_DIGEST_BYTES = 32

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A run after some rounds.

    Attributes:
        scenario_sha256: of the resolved scenario and its plug-ins.
        round_number: the last round that had closed; 0 before the first.
        resumes: how often the run has been resumed; its keys are drawn accordingly.
        chain: the events' digest after each round, [rounds, 32] bytes.
        arrays: models and all else that was learnt, by name.
    """

    scenario_sha256: str
    round_number: int = 0
    resumes: int = 0
    chain: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, _DIGEST_BYTES), dtype=np.uint8))
    arrays: Arrays = field(default_factory=dict)

    def part(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays called `name.x`, by `x`."""
        return {key.partition(".")[2]: array for key, array in self.arrays.items() if key.partition(".")[0] == name}


class EventChain:
    """Digests of a run's events, one after each round: over the rows that are new, and the digest before.

    Rows are hashed as they stand when the round closes; times are rounded to 1 us, as in `digest.events`.
    """

    def __init__(self) -> None:
        self._fresh = FreshRows()
        self._links: list[bytes] = []

    def extend(self, log: Log) -> NDArray[np.uint8]:
        """Takes in what happened since the last call; the chain so far, [rounds, 32] bytes."""
        digest = hashlib.sha256(self._links[-1] if self._links else b"peerveil chain 1\n")
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
    """Replaces the folder's checkpoint."""
    from safetensors.numpy import save_file

    arrays = {"chain": checkpoint.chain} | dict(checkpoint.arrays)
    arrays = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    told = {
        "format": FORMAT,
        "scenario_sha256": checkpoint.scenario_sha256,
        "round": checkpoint.round_number,
        "resumes": checkpoint.resumes,
    }
    metadata = {"peerveil": json.dumps(told), "sha256": _checksum(json.dumps(told), arrays)}
    path = folder / FILE
    path.parent.mkdir(exist_ok=True)
    atomic.write_with(path, lambda temporary: save_file(arrays, temporary, metadata))


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The folder's checkpoint, if it has one.

    Raises:
        UserError: it is damaged, or of another format.
    """
    path = folder / FILE
    if not path.exists():
        return None
    metadata, arrays = _read(path)
    told = _told(path, metadata.get("peerveil", ""))
    if told["format"] != FORMAT:
        cure = f"this peerveil resumes format {FORMAT}; use the version that began the run, or start it anew"
        raise UserError(f"--resume = {path}: has format {told['format']}; {cure}")
    if metadata.get("sha256") != _checksum(metadata["peerveil"], arrays):
        raise _damaged(path, "its checksum does not match")
    chain = arrays.pop("chain")
    names = {"scenario_sha256": told["scenario_sha256"], "round_number": told["round"], "resumes": told["resumes"]}
    return Checkpoint(**names, chain=chain, arrays=arrays)


def _read(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise _damaged(path, str(error)) from error


def _told(path: Path, text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(told, dict) or not {"format", "scenario_sha256", "round", "resumes"} <= told.keys():
        raise _damaged(path, "it does not say what it is")
    return told


def _damaged(path: Path, why: str) -> UserError:
    return UserError(f"--resume = {path}: is damaged ({why}); run the scenario anew into another folder")


def _checksum(told: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(told.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return digest.hexdigest()
