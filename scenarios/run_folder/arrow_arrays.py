"""Arrow arrays made from their buffers.

`pyarrow.array` imports pandas, where it is installed, to see whether it was given one of its objects: a seventh of a
second in every run that needs none of it. Buffers are also shared with numpy instead of copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def from_numpy(values: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """Returns numbers or truth values as an array, with nulls where `nulls` is true."""
    import pyarrow as pa

    # Arrow marks what is valid, one bit each, the lowest first; without nulls the buffer is left out.
    validity = None if nulls is None or not nulls.any() else _bits(~nulls)
    plain = _bits(values) if values.dtype == np.bool_ else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, plain])


def from_numbers(values: Sequence[float | bool | None], dtype: str) -> pa.Array:
    """Returns Python numbers or truth values as an array of a numpy type; None is null."""
    nulls = np.array([value is None for value in values], dtype=np.bool_)
    return from_numpy(np.array([0 if value is None else value for value in values], dtype=dtype), nulls)


def from_values(values: Sequence[Any]) -> pa.Array:
    """Returns values of one kind as an array: strings, truth values, numbers, or lists of these; None is null."""
    import pyarrow as pa

    # By exact type: a truth value is an int to `isinstance`.
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {str}:
        return from_strings(values)
    if kinds == {list}:
        return _from_lists(values)
    if not kinds <= {bool, int, float}:
        raise TypeError(f"a column has values of one kind, not {values!r:.200}")
    return from_numbers(values, "bool" if kinds == {bool} else "i8" if kinds == {int} else "f8")


def _from_lists(values: Sequence[list[Any] | None]) -> pa.Array:
    import pyarrow as pa

    items = from_values([item for value in values for item in value or ()])
    # A null is a list of no items, with its bit unset.
    ends = np.cumsum([0, *(len(value or ()) for value in values)], dtype=np.int32)
    buffers = [_validity(values), pa.py_buffer(ends)]
    return pa.Array.from_buffers(pa.list_(items.type), len(values), buffers, children=[items])


def from_strings(values: Sequence[str | None]) -> pa.Array:
    """Returns strings as an array; None is null."""
    import pyarrow as pa

    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [_validity(values), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def from_bytes(values: Sequence[bytes | None], width: int) -> pa.Array:
    """Returns byte strings of one width as an array; None is null."""
    import pyarrow as pa

    joined = b"".join(bytes(width) if value is None else value for value in values)
    return pa.Array.from_buffers(pa.binary(width), len(values), [_validity(values), pa.py_buffer(joined)])


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    valid = np.array([value is not None for value in values], dtype=np.bool_)
    return None if valid.all() else _bits(valid)


def _bits(values: NDArray[np.bool_]) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(values, bitorder="little"))
