"""Checks of tables read from a run folder: types, words and ranges, before anything computes with them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from p2p.log.log import Log
from scenarios.run_folder import arrow_tables

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 2**31
"""No count, round or node number of a run is larger; sizes in bytes are."""
NEVER_NULL = frozenset(("round", "start_s", "end_s", "sent_s", "cohort", "node", "kind", "size_bytes"))
"""Columns without which a row says nothing; every version has written them."""


def check_table(name: str, table: pa.Table) -> None:
    """Raises ValueError if a column that is there cannot be what a run writes; missing columns are no problem here."""
    for field in table_schema(name):
        if field.name in table.column_names:
            column = table.column(field.name)
            try:
                _check_column(name, field, column)
            except ValueError as error:
                raise ValueError(f"the column {field.name} {error}") from None


@cache  # a killed run has thousands of parts
def table_schema(name: str) -> pa.Schema:
    """Returns the columns and types of a table that a run writes."""
    return arrow_tables.log_to_arrow(Log())[name].schema


def _check_column(name: str, field: pa.Field, column: pa.ChunkedArray) -> None:
    from pyarrow import types

    words = arrow_tables.WORDS.get(name, {}).get(field.name)
    if words is not None:
        _check_words(column, words)
    elif types.is_boolean(field.type) != types.is_boolean(column.type):
        raise ValueError(f"holds {column.type}, not {field.type}")
    elif types.is_integer(field.type):
        _check_integers(field.name, column)
    elif types.is_floating(field.type):
        _check_floats(field.name, column)
    if column.null_count and field.name in NEVER_NULL:
        raise ValueError("has missing values")


def _check_words(column: pa.ChunkedArray, words: tuple[str, ...]) -> None:
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not types.is_string(kind) or column.null_count:
        raise ValueError("does not hold words")
    unknown = set(column.unique().to_pylist()) - set(words)
    if unknown:
        raise ValueError(f"has the unknown word {min(map(str, unknown))!r:.40}")


def _check_integers(name: str, column: pa.ChunkedArray) -> None:
    import pyarrow.compute as pc
    from pyarrow import types

    if not types.is_integer(column.type):
        raise ValueError(f"holds {column.type}, not whole numbers")
    ends = pc.min_max(column).as_py()
    if ends["min"] is not None and (ends["min"] < -1 or (ends["max"] >= _MOST and "bytes" not in name)):
        raise ValueError(f"has numbers from {ends['min']} to {ends['max']}")


def _check_floats(name: str, column: pa.ChunkedArray) -> None:
    import pyarrow.compute as pc
    from pyarrow import types

    if not types.is_floating(column.type):
        raise ValueError(f"holds {column.type}, not numbers")
    # A time that has not come is null in a file; an epsilon may be infinite.
    if name.endswith("_s") and not pc.all(pc.is_finite(column)).as_py() and len(column) > column.null_count:
        raise ValueError("has times that are not finite")
