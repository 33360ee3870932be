"""Arrays made from buffers are those that pyarrow makes from the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from scenarios.run_folder.arrow_arrays import from_bytes, from_numbers, from_numpy, from_strings, from_values


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "f4", "f8", "bool"])
@pytest.mark.parametrize("length", [0, 1, 8, 21])
def test_numbers_with_and_without_nulls(dtype: str, length: int) -> None:
    """Also columns of a larger table, whose values are not contiguous."""
    values = np.arange(3 * length).reshape(length, 3).astype(dtype)[:, 1]
    nulls = np.arange(length) % 3 == 1
    for mask in (None, np.zeros(length, dtype=bool), nulls):
        made = from_numpy(values, mask)
        made.validate(full=True)
        assert made.equals(pa.array(values, mask=mask))
    assert from_numpy(values, nulls).null_count == nulls.sum()


def test_not_a_number_is_no_null() -> None:
    """Only the mask says what is null."""
    assert from_numpy(np.array([1.0, np.nan])).null_count == 0


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", None, "", "äöü", "x" * 300], pa.string()),
        ([True, None, False], pa.bool_()),
        ([1, None, 2**40], pa.int64()),
        ([1, 2.5, None], pa.float64()),
        ([None, [0, 2], [], [5]], pa.list_(pa.int64())),
        ([["a"], ["b", "c"]], pa.list_(pa.string())),
        ([None, None], pa.null()),
        ([], pa.null()),
    ],
)
def test_values_of_one_kind(values: list[Any], kind: pa.DataType) -> None:
    """The kind follows from the values."""
    made = from_values(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


@pytest.mark.parametrize("values", [["a", 1], [[1], 2], [b"a"]])
def test_kinds_do_not_mix(values: list[Any]) -> None:
    """Such a column has no type."""
    with pytest.raises(TypeError, match="values of one kind"):
        from_values(values)


def test_numbers_of_a_given_type() -> None:
    """A column of nulls alone has a type too, so that parts can be merged."""
    assert from_numbers([None, None], "f8").equals(pa.array([None, None], pa.float64()))
    assert from_numbers([None, 3], "int32").equals(pa.array([None, 3], pa.int32()))


def test_bytes_of_one_width() -> None:
    """Addresses; an unknown one is null."""
    addresses = [bytes(range(32)), None, bytes(32)]
    made = from_bytes(addresses, 32)
    made.validate(full=True)
    assert made.equals(pa.array(addresses, pa.binary(32)))
    assert from_strings([]).equals(pa.array([], pa.string()))
