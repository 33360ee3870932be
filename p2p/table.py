"""Columns that grow: facts are appended to arrays, not kept as objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST_CAPACITY = 256


class Table:
    """Named numpy columns of one length. `table["sent_s"]` is a view; assigning into the view changes the table.

    Whoever gathers rows to write them together sets `before_read`, which is called before anybody looks.
    """

    __slots__ = ("_columns", "_length", "before_read")

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = {name: np.empty(_FIRST_CAPACITY, dtype=dtype) for name, dtype in columns.items()}
        self._length = 0
        self.before_read: Callable[[], None] | None = None

    def __len__(self) -> int:
        if self.before_read is not None:
            self.before_read()
        return self._length

    def __getitem__(self, name: str) -> NDArray[Any]:
        if self.before_read is not None:
            self.before_read()
        return self._columns[name][: self._length]

    @property
    def names(self) -> list[str]:
        """The columns' names, in the order of the file."""
        return list(self._columns)

    def append(self, **values: object) -> int:
        """Adds one row, every column named, and returns its number."""
        row = self._length
        if row == len(next(iter(self._columns.values()))):
            self._reserve(row + 1)
        for name, column in self._columns.items():
            column[row] = values[name]
        self._length = row + 1
        return row

    def extend(self, count: int, **values: object) -> NDArray[np.int64]:
        """Adds `count` rows from arrays (or scalars, repeated) and returns their numbers."""
        first, last = self._length, self._length + count
        self._reserve(last)
        for name, column in self._columns.items():
            column[first:last] = values[name]
        self._length = last
        return np.arange(first, last)

    def _reserve(self, length: int) -> None:
        capacity = len(next(iter(self._columns.values())))
        if length <= capacity:
            return
        for name, column in self._columns.items():
            grown = np.empty(max(length, 2 * capacity), dtype=column.dtype)
            grown[: self._length] = column[: self._length]
            self._columns[name] = grown
