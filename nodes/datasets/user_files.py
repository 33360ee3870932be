"""Reads user data from npz, csv or parquet files and converts its columns to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nodes.datasets.dataset import Floats, one_hot
from p2p.config.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

Cells = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class FileRecords:
    """The content of a file: features [n, ...], raw labels [n], and the owner of each record if there is one."""

    features: Floats
    labels: Cells
    owners: Cells | None


def read_records(path: Path, label: str, client: str | None) -> FileRecords:
    """Reads the records in `path`; its suffix gives the format. Raises UserError if it is missing or malformed."""
    readers = {".npz": _read_npz, ".csv": _read_table, ".parquet": _read_table}
    if path.suffix not in readers:
        raise _problem(path, f"must end in {', '.join(readers)}; convert it")
    if not path.is_file():
        raise _problem(path, "no such file; give a path relative to the scenario file or to the data folder")
    records = readers[path.suffix](path, label, client)
    _check(path, records)
    return records


def _read_npz(path: Path, label: str, client: str | None) -> FileRecords:
    import zipfile

    try:
        # No pickles: loading one could run code from the file.
        with np.load(path, allow_pickle=False) as arrays:
            stored = dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _problem(
            path, f"cannot be read as npz ({error}); save it with numpy.savez(path, x=..., {label}=...)"
        ) from error
    _require_columns(path, ["x", label, *([client] if client else [])], list(stored))
    return FileRecords(_to_floats(path, "x", stored["x"]), stored[label], stored[client] if client else None)


def _read_table(path: Path, label: str, client: str | None) -> FileRecords:
    table = _load_table(path)
    special = [label, *([client] if client else [])]
    _require_columns(path, special, table.column_names)
    features = [_column(path, name, table) for name in table.column_names if name not in special]
    if not features:
        raise _problem(path, "has no column besides label and client; add features")
    owners = np.asarray(table.column(client).to_pylist()) if client else None
    return FileRecords(np.concatenate(features, axis=1), np.asarray(table.column(label).to_pylist()), owners)


def _load_table(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        return csv.read_csv(path) if path.suffix == ".csv" else parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise _problem(
            path, f"cannot be read as {path.suffix[1:]} ({str(error).splitlines()[0]}); check its format"
        ) from error


def _column(path: Path, name: str, table: pa.Table) -> Floats:
    """Converts a numeric column to one feature, a text column to one feature per distinct text."""
    values = table.column(name).to_numpy()
    if values.dtype.kind in "biuf":  # bool, signed, unsigned, float
        return _to_floats(path, name, values)[:, None]
    # As text, so that missing cells can be sorted among the others; they become a category of their own.
    texts = np.asarray([str(value) for value in values])
    return one_hot(texts, np.unique(texts))


def _to_floats(path: Path, name: str, values: Cells) -> Floats:
    if values.dtype.kind not in "biuf":
        raise _problem(path, f"`{name}` holds {values.dtype}, not numbers; convert it")
    return values.astype(np.float32)


def _require_columns(path: Path, wanted: Sequence[str], there: Sequence[str]) -> None:
    for name in wanted:
        if name not in there:
            raise _problem(path, f"has no `{name}`, only {', '.join(map(str, there))}; name another")


def _check(path: Path, records: FileRecords) -> None:
    count = len(records.features)
    if records.features.ndim < 2 or count < 2:
        raise _problem(
            path, f"features have shape {list(records.features.shape)}; at least two records of features are needed"
        )
    for what, column in (("labels", records.labels), ("clients", records.owners)):
        if column is not None and column.shape != (count,):
            raise _problem(
                path, f"{what} have shape {list(column.shape)}, the features {count} records; make them match"
            )
        # Missing values (None) and mixed types give NumPy's dtype object.
        if column is not None and (
            column.dtype.kind == "O" or (column.dtype.kind == "f" and not np.isfinite(column).all())
        ):
            raise _problem(path, f"{what} have missing or mixed values; fill them in")
    # Once over everything: a NaN would spread to every model that averages one trained on it.
    if not np.isfinite(records.features).all():
        raise _problem(path, "has missing or infinite features; fill them in")


def _problem(path: Path, fault: str) -> UserError:
    return UserError(f"data.path = {path}: {fault}")
