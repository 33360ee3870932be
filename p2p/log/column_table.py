"""Growable column tables: records are appended to arrays instead of being kept as objects."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST_CAPACITY = 256
# Single rows are buffered until so many are pending: the cost of a NumPy assignment hardly depends on their number.
_ROWS_AT_ONCE = 4096
_STRUCT_CODES = {"?": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "f8": "d"}


class Table:
    """Named NumPy columns of equal length; `table["sent_s"]` is a view, and assigning into it changes the table.

    A writer that buffers rows elsewhere sets `before_read`, which is called before every read.
    """

    __slots__ = ("_columns", "_full_bytes", "_length", "_pack", "_row_bytes", "_row_type", "_rows", "before_read")

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = {name: np.empty(_FIRST_CAPACITY, dtype=dtype) for name, dtype in columns.items()}
        self._length = 0
        # Single rows, packed one behind the other: half the time of tuples, and a fraction of their memory.
        self._rows = bytearray()
        self._pack = struct.Struct("=" + "".join([_STRUCT_CODES[dtype] for dtype in columns.values()])).pack
        self._row_type = np.dtype(list(columns.items()))
        self._row_bytes = self._row_type.itemsize
        self._full_bytes = _ROWS_AT_ONCE * self._row_bytes
        self.before_read: Callable[[], None] | None = None

    def __len__(self) -> int:
        if self.before_read is not None:
            self.before_read()
        self._write_pending()
        return self._length

    def __getitem__(self, name: str) -> NDArray[Any]:
        if self.before_read is not None:
            self.before_read()
        self._write_pending()
        return self._columns[name][: self._length]

    def written(self, name: str) -> NDArray[Any]:
        """Returns a column without calling `before_read`; for use by the buffering writer itself."""
        self._write_pending()
        return self._columns[name][: self._length]

    @property
    def names(self) -> list[str]:
        """Names of the columns, in the order of the file."""
        return list(self._columns)

    def append(self, **values: object) -> int:
        """Adds one row with all columns named and returns its index."""
        return self.add(tuple([values[name] for name in self._columns]))

    def add(self, row: tuple[object, ...]) -> int:
        """Adds one row with the values in the order of the columns and returns its index."""
        rows = self._rows
        number = self._length + len(rows) // self._row_bytes
        rows += self._pack(*row)
        if len(rows) >= self._full_bytes:
            self._write_pending()
        return number

    def add_all(self, rows: Sequence[tuple[object, ...]]) -> None:
        """Adds rows, each with its values in the order of the columns."""
        pack = self._pack
        self._rows += b"".join([pack(*row) for row in rows])
        if len(self._rows) >= self._full_bytes:
            self._write_pending()

    def extend(self, count: int, **values: object) -> None:
        """Adds `count` rows from columns, or from scalars that all of them have."""
        # What is buffered comes first, so that rows keep their order.
        self._write_pending()
        self._write(count, values)

    def stretch(self, length: int) -> None:
        """Makes the table so long; the new rows hold nothing yet, and their owner writes them before any read."""
        self._write_pending()
        self._grow(length)
        self._length = max(self._length, length)

    def _write_pending(self) -> None:
        if self._rows:
            rows, self._rows = np.frombuffer(self._rows, dtype=self._row_type), bytearray()
            self._write(len(rows), {name: rows[name] for name in self._columns})

    def _write(self, count: int, values: Mapping[str, object]) -> None:
        first, last = self._length, self._length + count
        self._grow(last)
        for name, column in self._columns.items():
            column[first:last] = values[name]
        self._length = last

    def _grow(self, length: int) -> None:
        capacity = len(next(iter(self._columns.values())))
        if length <= capacity:
            return
        for name, column in self._columns.items():
            # Doubling makes the copies of all appends together linear in the final length.
            grown = np.empty(max(length, 2 * capacity), dtype=column.dtype)
            grown[: self._length] = column[: self._length]
            self._columns[name] = grown
