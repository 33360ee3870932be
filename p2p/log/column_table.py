"""Growable column tables: records are appended to arrays instead of being kept as objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST_CAPACITY = 256
# Appends of at most _FEW_ROWS are buffered until _ROWS_AT_ONCE rows are pending: the cost of a NumPy assignment
# hardly depends on the number of rows.
_FEW_ROWS, _ROWS_AT_ONCE = 200, 4096


class Table:
    """Named NumPy columns of equal length; `table["sent_s"]` is a view, and assigning into it changes the table.

    A writer that buffers rows elsewhere sets `before_read`, which is called before every read.
    """

    __slots__ = ("_columns", "_length", "_pending", "_pending_rows", "_rows", "before_read")

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = {name: np.empty(_FIRST_CAPACITY, dtype=dtype) for name, dtype in columns.items()}
        self._length = 0
        self._pending: list[tuple[int, dict[str, object]]] = []
        self._pending_rows = 0
        self._rows: list[tuple[object, ...]] = []
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
        # Two buffers, single rows and groups of rows; flushing one before using the other keeps the row order.
        if self._pending:
            self._write_pending()
        rows = self._rows
        rows.append(row)
        number = self._length + len(rows) - 1
        if len(rows) >= _ROWS_AT_ONCE:
            self._write_pending()
        return number

    def add_all(self, rows: Sequence[tuple[object, ...]]) -> None:
        """Adds rows, each with its values in the order of the columns."""
        if self._pending:
            self._write_pending()
        self._rows += rows
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._write_pending()

    def extend(self, count: int, **values: object) -> NDArray[np.int64]:
        """Adds `count` rows from arrays (or repeated scalars) and returns their indices."""
        if self._rows:
            self._write_pending()
        first = self._length + self._pending_rows
        # Buffered groups hold scalars and lists only; arrays are written at once.
        if count <= _FEW_ROWS and not any(isinstance(value, np.ndarray) for value in values.values()):
            self._defer(count, values)
        else:
            self._write_pending()
            self._write(count, values)
        return np.arange(first, first + count)

    def stretch(self, length: int) -> None:
        """Makes the table so long; the new rows hold nothing yet, and their owner writes them before any read."""
        self._write_pending()
        self._grow(length)
        self._length = max(self._length, length)

    def reserve(self, count: int) -> None:
        """Reserves capacity for `count` more rows."""
        self._write_pending()
        # A large reservation is exact: doubling it as well would waste as much memory again.
        self._grow(self._length + count, exactly=count >= self._length)

    def _defer(self, count: int, values: dict[str, object]) -> None:
        """Buffers a small group of rows."""
        self._pending.append((count, values))
        self._pending_rows += count
        if self._pending_rows >= _ROWS_AT_ONCE:
            self._write_pending()

    def _write_pending(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._write(len(rows), dict(zip(self._columns, zip(*rows, strict=True), strict=True)))
        if not self._pending:
            return
        pending, count = self._pending, self._pending_rows
        self._pending, self._pending_rows = [], 0
        counts = [rows for rows, _ in pending]
        self._write(count, {name: _column([values[name] for _, values in pending], counts) for name in self._columns})

    def _write(self, count: int, values: Mapping[str, object]) -> None:
        first, last = self._length, self._length + count
        self._grow(last)
        for name, column in self._columns.items():
            column[first:last] = values[name]
        self._length = last

    def _grow(self, length: int, *, exactly: bool = False) -> None:
        capacity = len(next(iter(self._columns.values())))
        if length <= capacity:
            return
        for name, column in self._columns.items():
            # Doubling makes the copies of all appends together linear in the final length.
            grown = np.empty(length if exactly else max(length, 2 * capacity), dtype=column.dtype)
            grown[: self._length] = column[: self._length]
            self._columns[name] = grown


def _column(parts: list[Any], counts: list[int]) -> NDArray[Any]:
    """Concatenates the values of groups, each a scalar to repeat or a list of its count."""
    if not any(isinstance(part, list) for part in parts):
        return np.repeat(np.array(parts), counts)
    pieces = zip(parts, counts, strict=True)
    return np.array([one for part, count in pieces for one in (part if isinstance(part, list) else [part] * count)])
