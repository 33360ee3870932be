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
        first = len(expected)
        if isinstance(piece, int):
            assert table.append(a=piece, b=0.5) == first
            expected.append(piece)
        else:
            assert table.extend(len(piece), a=piece, b=0.5).tolist() == list(range(first, first + len(piece)))
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
