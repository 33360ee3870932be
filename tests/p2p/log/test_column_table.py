"""Columns that grow keep what was put into them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.log.column_table import Table


@pytest.mark.slow
@given(st.lists(st.one_of(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=700)), max_size=12))
def test_rows_come_out_as_they_went_in(pieces: list[int | list[int]]) -> None:
    """Appending and extending in any order, across many growths, equals one list."""
    table = Table({"a": "i8", "b": "f8"})
    expected: list[int] = []
    for piece in pieces:
        if isinstance(piece, int):
            assert table.append(a=piece, b=0.5) == len(expected)
            expected.append(piece)
        else:
            table.extend(len(piece), a=piece, b=0.5)
            expected.extend(piece)
    assert table["a"].tolist() == expected
    assert table["b"].tolist() == [0.5] * len(expected)
    assert len(table) == len(expected)


def test_a_column_is_a_view() -> None:
    """Assigning into a column changes the table, and only its rows."""
    table = Table({"a": "i4"})
    table.extend(3, a=[1, 2, 3])
    table["a"][1] = 9
    assert table["a"].tolist() == [1, 9, 3]
    assert table["a"].dtype == np.int32
    assert table.names == ["a"]


def test_single_rows_keep_their_values() -> None:
    """Every type of a column, absent times and the largest counts included."""
    table = Table({"yes": "?", "code": "i1", "attempt": "i2", "node": "i4", "size": "i8", "at_s": "f8"})
    rows = [(True, 3, 300, -1, 2**60 + 1, np.nan), (False, -1, 0, 2**31 - 1, 0, 0.1)]
    assert table.add(rows[0]) == 0
    table.add_all(rows)
    assert table.add(rows[1]) == 3
    assert table["size"].tolist() == [2**60 + 1, 2**60 + 1, 0, 0]
    assert list(zip(*(table[name].tolist()[1:3] for name in table.names[:-1]), strict=True)) == [r[:-1] for r in rows]
    np.testing.assert_array_equal(table["at_s"], [np.nan, np.nan, 0.1, 0.1])
