"""Readers of published data sets in their original formats: idx (MNIST family), CIFAR binary batches, UCI Adult.

Every reader validates its input and raises UserError with the file's path. A wrong or truncated file therefore never
causes a traceback or silently wrong data.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError

Bytes = NDArray[np.uint8]
CIFAR_RECORD_BYTES = 1 + 3 * 32 * 32
ADULT_COLUMNS = 15


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a data set: its folder, the checksum of each of its files, and where to obtain them."""

    name: str
    folder: str
    origin: str
    checksums: Mapping[str, str]

    def locate(self, data_dir: Path) -> list[Path]:
        """Returns the files in the order of `checksums`; an unpacked file stands in for an absent .gz.

        Raises:
            UserError: names all missing files.
        """
        wanted = [data_dir / self.folder / file for file in self.checksums]
        found = [_existing(path) for path in wanted]
        missing = [path for path, there in zip(wanted, found, strict=True) if there is None]
        if missing:
            raise UserError([self._missing(path) for path in missing])
        return [path for path in found if path is not None]

    def _missing(self, path: Path) -> str:
        return (
            f"data.name = {self.name}: the file {path} is missing; get it from {self.origin}"
            f" ({self.checksums[path.name]}) and put it there, or name the folder above {self.folder}/"
            " with --data-dir DIR or PEERVEIL_DATA"
        )


def resolve_data_dir(option: Path | None) -> Path:
    """Returns the folder of the data sets: the option, else PEERVEIL_DATA, else the user's cache."""
    if option is not None:
        return option.expanduser()
    # An empty variable counts as none.
    if named := os.environ.get("PEERVEIL_DATA"):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "peerveil"


def read_idx(path: Path, dimensions: int) -> Bytes:
    """Reads the array of an idx file of unsigned bytes, gzipped or plain."""
    blob = read_bytes(path)
    header = 4 + 4 * dimensions
    # Magic number of the idx format: two zero bytes, 8 for unsigned bytes, the number of dimensions.
    if len(blob) < header or blob[:4] != bytes([0, 0, 8, dimensions]):
        raise malformed(path, f"does not begin like an idx file of bytes in {dimensions} dimensions")
    shape = [int(size) for size in np.frombuffer(blob[4:header], dtype=">u4")]
    # A truncated file would otherwise be read as fewer or garbled records.
    if len(blob) - header != np.prod(shape, dtype=np.int64):
        raise malformed(path, f"says {' x '.join(map(str, shape))} bytes and holds {len(blob) - header}")
    return np.frombuffer(blob, dtype=np.uint8, offset=header).reshape(shape)


def read_cifar_batch(path: Path) -> tuple[Bytes, Bytes]:
    """Reads images [n, 3, 32, 32] and labels [n] of one CIFAR-10 binary batch."""
    blob = read_bytes(path)
    if not blob or len(blob) % CIFAR_RECORD_BYTES:
        raise malformed(path, f"holds {len(blob)} bytes, not a multiple of {CIFAR_RECORD_BYTES}")
    records = np.frombuffer(blob, dtype=np.uint8).reshape(-1, CIFAR_RECORD_BYTES)
    # A record is its label, then a plane for each colour.
    return records[:, 1:].reshape(-1, 3, 32, 32), check_labels(records[:, 0], 10, path)


def read_adult(path: Path) -> list[list[str]]:
    """Reads the rows of adult.data or adult.test as text.

    Comments, blank lines and the full stop after each label of adult.test are dropped.
    """
    try:
        text = read_bytes(path).decode("ascii")
    except UnicodeDecodeError as error:
        raise malformed(path, "is not ASCII text") from error
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("|")]
    rows = [[cell.strip() for cell in line.rstrip(" .").split(",")] for line in lines]
    for row in rows:
        if len(row) != ADULT_COLUMNS or row[-1] not in ("<=50K", ">50K"):
            raise malformed(path, f"has a row that is not 14 attributes and an income class: {','.join(row)[:80]!r}")
    if not rows:
        raise malformed(path, "has no rows")
    return rows


def check_labels(labels: Bytes, classes: int, path: Path) -> Bytes:
    """Returns the labels unchanged; raises UserError if one is not below `classes`."""
    if len(labels) and int(labels.max()) >= classes:
        raise malformed(path, f"has the label {int(labels.max())}, only 0 to {classes - 1} exist")
    return labels


def _existing(path: Path) -> Path | None:
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    return next((candidate for candidate in (path, plain) if candidate.is_file()), None)


def read_bytes(path: Path) -> bytes:
    """Returns the bytes of a file, unpacked if it is gzipped."""
    try:
        blob = path.read_bytes()
        return gzip.decompress(blob) if path.suffix == ".gz" else blob
    except (OSError, EOFError, zlib.error) as error:
        raise malformed(path, f"cannot be read ({error})") from error


def malformed(path: Path, fault: str) -> UserError:
    """Returns the error about a file that is not what it should be."""
    return UserError(f"data file {path}: {fault}; fetch it again")
