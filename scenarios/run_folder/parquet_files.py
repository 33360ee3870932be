"""Parquet files with a checksum for each page: damage inside a file is told, instead of read as other rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.run_folder import atomic_write

if TYPE_CHECKING:
    import pyarrow as pa


def write_table(path: Path, table: pa.Table, **settings: Any) -> None:
    """Writes a table atomically."""
    import pyarrow.parquet as pq

    atomic_write.write_with(
        path, lambda temporary: pq.write_table(table, temporary, write_page_checksum=True, **settings)
    )


def read_table(path: Path) -> pa.Table:
    """Reads one file, also one without checksums; raises OSError if it does not have the bytes that were written."""
    import pyarrow.parquet as pq

    # One file: a folder in its place would otherwise be read as all files in it.
    return pq.ParquetFile(path, page_checksum_verification=True).read()
