"""The `observations` folder of a run: parts while it goes on, one table and one tensor file per observer at its end.

A part is a safetensors file with the rows' columns (`rows.NAME`), the truth (`truth.origin`), the vectors of messages
(`round-N`) and the models of the view (`model-N`) since the part before.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError
from privacy.attacks.observation_columns import ADDRESS_BYTES, COLUMNS, DIRECTIONS, OBSERVED_KINDS, UNKNOWN
from privacy.attacks.observations import Observations
from scenarios.run_folder import atomic_write
from scenarios.run_folder.arrow_arrays import from_bytes, from_numpy, from_strings
from scenarios.run_folder.parquet_files import read_table, write_table
from scenarios.run_folder.tensor_format import header_text

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
FOLDER = "observations"
PARTS = "observations/parts"
TRUTH = "observations/truth"
_BUFFER_BYTES = 2**20
_PART = re.compile(r"(.+)-(\d+)-(\d+)\.safetensors")
_NULLABLE = ("round", "by", "size_bytes", "other", "identity", "vector")
_WORDS = {"kind": OBSERVED_KINDS, "direction": DIRECTIONS}

Arrays = Mapping[str, NDArray[Any]]


def write_parts(run: Path, name: str, number: int, parts: Sequence[Arrays]) -> None:
    """Writes what an observer has seen up to the end of round `number`."""
    for place, arrays in enumerate(parts):
        atomic_write.make_folder(run / FOLDER)
        atomic_write.make_folder(run / PARTS)
        path = run / PARTS / f"{name}-{number}-{place}.safetensors"
        atomic_write.write_tensors(path, arrays)


def drop_parts_after(run: Path, last_round: int) -> None:
    """Removes parts of rounds that will be run again, and merged files."""
    for path in (run / PARTS).glob("*.safetensors"):
        match = _PART.fullmatch(path.name)
        if match is None or int(match[2]) > last_round:
            path.unlink(missing_ok=True)
    for path in [*(run / FOLDER).glob("*.*"), *(run / TRUTH).glob("*.*")]:
        path.unlink(missing_ok=True)


def merge_parts(run: Path, headers: Mapping[str, Mapping[str, Any]], *, keep_parts: bool) -> None:
    """Writes the files of every observer from its parts."""
    for name, header in headers.items():
        files = _part_files(run, name)
        columns, origin = _rows(files)
        _merge_tensors(run / FOLDER / f"{name}.safetensors", files)
        atomic_write.make_folder(run / TRUTH)
        write_table(run / TRUTH / f"{name}.parquet", _truth_table(origin))
        # Last: a table without its tensors would promise vectors that are not there.
        write_table(run / FOLDER / f"{name}.parquet", _table(columns, {**header, "format": FORMAT}))
    if not keep_parts:
        shutil.rmtree(run / PARTS, ignore_errors=True)


def observed_names(run: Path) -> list[str]:
    """Returns the observers of a run."""
    return sorted(path.stem for path in (run / FOLDER).glob("*.parquet"))


def read_observations(run: Path, name: str) -> tuple[Observations, dict[str, Any]]:
    """Returns an observer's rows and what its file says about itself."""
    import pyarrow as pa

    path = run / FOLDER / f"{name}.parquet"
    try:
        table = read_table(path)
        header = json.loads((table.schema.metadata or {})[b"peerveil"])
        if header["format"] != FORMAT:
            raise ValueError(f"format {header['format']} is not {FORMAT}")
        return _observations(table), header
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise UserError(f"RUN = {path}: is damaged ({error}); run the scenario again") from error


def read_truth(run: Path, name: str) -> NDArray[np.int64]:
    """Returns the true sender of each row."""
    import pyarrow as pa

    path = run / TRUTH / f"{name}.parquet"
    try:
        return np.asarray(read_table(path).column("origin")).astype(np.int64)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise UserError(f"RUN = {path}: is missing or damaged ({error}); run the scenario again") from error


def read_tensor(run: Path, name: str, tensor: str) -> NDArray[np.float32]:
    """Returns one tensor of an observer: `round-N` or `model-N`."""
    from safetensors import SafetensorError, safe_open

    path = run / FOLDER / f"{name}.safetensors"
    try:
        with safe_open(path, framework="numpy") as file:
            found: NDArray[np.float32] = file.get_tensor(tensor)
            return found
    except OSError as error:
        raise UserError(f"{path} is missing or damaged ({error}); run the scenario again") from error
    except SafetensorError as error:
        raise UserError(f"{path} has no {tensor} ({error}); keep this round and run again") from error


def _part_files(run: Path, name: str) -> list[Path]:
    found = [(_PART.fullmatch(path.name), path) for path in (run / PARTS).glob("*.safetensors")]
    mine = [(int(match[2]), int(match[3]), path) for match, path in found if match and match[1] == name]
    return [path for _, _, path in sorted(mine)]


def _rows(files: Sequence[Path]) -> tuple[dict[str, NDArray[Any]], NDArray[np.int32]]:
    from safetensors import safe_open

    parts: dict[str, list[NDArray[Any]]] = {"truth.origin": [np.zeros(0, dtype="i4")]}
    parts |= {f"rows.{name}": [np.zeros(0, dtype=dtype)] for name, dtype in COLUMNS.items()}
    parts["rows.sender"] = [np.zeros((0, ADDRESS_BYTES), dtype=np.uint8)]
    for path in files:
        with safe_open(path, framework="numpy") as file:
            for key in set(file.keys()) & parts.keys():
                parts[key].append(file.get_tensor(key))
    columns = {key.partition(".")[2]: np.concatenate(arrays) for key, arrays in parts.items()}
    return columns, columns.pop("origin")


class _Piece(NamedTuple):
    """Where a part keeps a tensor, or some rows of one."""

    path: Path
    start: int
    rows: int
    width: int

    @property
    def size_bytes(self) -> int:
        return 4 * self.rows * self.width


def _merge_tensors(path: Path, files: Sequence[Path]) -> None:
    """Writes all vectors into one file, a buffer at a time: together they may not fit into memory."""
    names: dict[str, list[_Piece]] = {}
    for file in files:
        for key, piece in _pieces(file):
            names.setdefault(key, []).append(piece)
    header, end = {}, 0
    for key, pieces in names.items():
        begin, end = end, end + sum(piece.size_bytes for piece in pieces)
        shape = [sum(piece.rows for piece in pieces), pieces[0].width]
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = header_text(header)
    everything = [piece for pieces in names.values() for piece in pieces]
    atomic_write.write_with(path, lambda temporary: _write_tensors(temporary, text, everything))


def _pieces(path: Path) -> Iterator[tuple[str, _Piece]]:
    """Yields the tensors of messages and models in a part, which safetensors stores as plain float32 rows."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    for key, value in header.items():
        if key.startswith(("round-", "model-")):
            yield key, _Piece(path, 8 + length + value["data_offsets"][0], *value["shape"])


def _write_tensors(path: Path, header: bytes, pieces: Sequence[_Piece]) -> None:
    # One buffer for all: tensors of their own would cost several times the copying in new pages of memory.
    buffer = memoryview(bytearray(_BUFFER_BYTES))
    with path.open("wb", buffering=0) as out:
        out.write(header)
        for piece in pieces:
            _copy(piece, out, buffer)


def _copy(piece: _Piece, out: RawIOBase, buffer: memoryview) -> None:
    left = piece.size_bytes
    with piece.path.open("rb", buffering=0) as file:
        file.seek(piece.start)
        while left:
            got = file.readinto(buffer[: min(left, len(buffer))])
            if not got:
                raise OSError(f"{piece.path} ends before its vectors do")
            _write_all(out, buffer[:got])
            left -= got


def _write_all(out: RawIOBase, data: memoryview) -> None:
    """Writes all bytes; unbuffered files may take fewer at a time, as a disk that fills up does."""
    while data:
        data = data[out.write(data) or 0 :]


def _table(columns: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> pa.Table:
    import pyarrow as pa

    arrays: dict[str, Any] = {}
    for name in COLUMNS:
        values = columns[name]
        if name in _WORDS:
            codes = from_numpy(values, values == UNKNOWN)
            arrays[name] = pa.DictionaryArray.from_arrays(codes, from_strings(_WORDS[name]))
        else:
            arrays[name] = from_numpy(values, values == UNKNOWN if name in _NULLABLE else None)
    addresses = [row.tobytes() if row.any() else None for row in columns["sender"]]
    arrays["sender"] = from_bytes(addresses, ADDRESS_BYTES)
    return pa.table(arrays).replace_schema_metadata({"peerveil": json.dumps(header)})


def _observations(table: pa.Table) -> Observations:
    columns: dict[str, NDArray[Any]] = {}
    for name, dtype in COLUMNS.items():
        values = table.column(name).combine_chunks()
        if name in _WORDS:
            code = {word: number for number, word in enumerate(_WORDS[name])} | {None: UNKNOWN}
            columns[name] = np.array([code[word] for word in values.to_pylist()], dtype=dtype)
        else:
            columns[name] = np.asarray(values.fill_null(UNKNOWN)).astype(dtype)
    blank = b"\0" * ADDRESS_BYTES
    sender = b"".join(address or blank for address in table.column("sender").to_pylist())
    return Observations(columns, np.frombuffer(sender, np.uint8).reshape(-1, ADDRESS_BYTES))


def _truth_table(origin: NDArray[np.int32]) -> pa.Table:
    import pyarrow as pa

    return pa.table({"origin": from_numpy(origin)})
