"""Converts a log to Arrow tables and back; codes become words, absent nodes and times become null.

Column names are those of the run folder; extra columns follow the documented ones. pyarrow is slow to import and is
therefore imported on use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.column_table import Table
from p2p.log.log import Log
from scenarios.metrics.communication.traffic import Rows, bytes_by_round, messages_by_round, wasted_per_message
from scenarios.run_folder.arrow_arrays import from_numbers, from_numpy, from_strings, from_values

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
"""Version of the run folder's files."""
LOGGED = ("messages", "spans", "dropouts", "graphs", "privacy", "aggregations")
"""The tables the log stores by column."""
TABLES = (*LOGGED, "rounds")
"""Every table of a run folder, stored in `<name>.parquet`."""

_COLUMNS: dict[str, dict[str, str]] = {
    "messages": records.MESSAGES,
    "spans": records.SPAN_COLUMNS,
    "dropouts": records.DROPOUT_COLUMNS,
    "graphs": records.GRAPH_COLUMNS,
    "privacy": records.PRIVACY_COLUMNS,
    "aggregations": records.AGGREGATION_COLUMNS,
}
WORDS = cast("Mapping[str, Mapping[str, tuple[str, ...]]]", records.WORDS)
"""For each table, the columns that hold codes, and the words for these codes."""
_LAST = ("left_s", "left_bytes", "used", "origin", "destination", "previous")
_WHO = ("sender", "receiver", "aggregator", "origin", "destination", "previous")
_WHEN = ("left_s", "arrived_s")
_ROUND_TYPES = {
    "round": "int32",
    "start_s": "float64",
    "end_s": "float64",
    "cohort": "int32",
    "leader": "int32",
    "updates_used": "int64",
    "updates_missing": "int64",
    "skipped": "bool",
    "noise_std": "float64",
    **{f"accuracy_{when}_{what}": "float64" for when in ("before", "after") for what in ("max", "mean", "min")},
    "loss": "float64",
    **{f"epsilon_{view}": "float64" for view in ("published", "local", "peer_worst", "model")},
}


def to_arrow(name: str, table: Table, rows: Rows = slice(None)) -> pa.Table:
    """Returns the table called `name`, or some `rows` of it, with the columns of its file."""
    import pyarrow as pa

    # Ids are row numbers of the whole log, so that a part's rows can be matched with later parts.
    columns: dict[str, Any] = {"id": from_numpy(np.arange(len(table))[rows])} if name == "messages" else {}
    # A stable sort: documented columns first, in the order of the log.
    for column in sorted(table.names, key=lambda column: column in _LAST):
        columns[column] = _column(name, column, table[column][rows])
    if name == "messages":
        columns["wasted_bytes"] = from_numpy(wasted_per_message(table, rows))
    return pa.table(columns)


def _column(name: str, column: str, values: NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    words = WORDS.get(name, {}).get(column)
    if words is not None:
        return pa.DictionaryArray.from_arrays(from_numpy(values), from_strings(words))
    if column in _WHO:
        return from_numpy(values, values == records.NO_NODE)
    # A time that has not come is infinite or NaN in the log.
    if column in _WHEN:
        return from_numpy(values, ~np.isfinite(values))
    if values.dtype.kind == "f":
        return from_numpy(values, np.isnan(values))
    return from_numpy(values)


def from_arrow(name: str, arrow: pa.Table) -> Table:
    """Returns the log's table; columns that exist only in the file (ids, sums) are dropped."""
    table = Table(_COLUMNS[name])
    columns = {column: _values(name, column, arrow.column(column)) for column in table.names}
    table.extend(arrow.num_rows, **columns)
    return table


def _values(name: str, column: str, values: pa.ChunkedArray) -> NDArray[Any]:
    words = WORDS.get(name, {}).get(column)
    if words is not None:
        return _codes(values.combine_chunks(), words)
    if column in _WHO:
        return np.asarray(values.fill_null(records.NO_NODE))
    dtype = _COLUMNS[name][column]
    return np.asarray(values.fill_null(np.nan) if dtype == "f8" else values)


def _codes(values: Any, words: tuple[str, ...]) -> NDArray[np.int8]:
    # Words are matched by text, not by position: an older file may list them in another order.
    encoded = values if hasattr(values, "dictionary") else values.dictionary_encode()
    code = {word: number for number, word in enumerate(words)}
    recode = np.array([code[word] for word in encoded.dictionary.to_pylist()], dtype=np.int8)
    return recode[np.asarray(encoded.indices)] if len(recode) else np.zeros(0, dtype=np.int8)


def rounds_to_arrow(rounds: Sequence[Mapping[str, Any]], messages: Table) -> pa.Table:
    """Returns one row per round: the record of its end, and its bytes by kind."""
    import pyarrow as pa

    numbers = np.array([record["round"] for record in rounds], dtype=np.int64)
    columns: dict[str, Any] = {}
    # Explicit types: a column of only nulls would otherwise have no type, and parts could not be merged.
    for name, kind in _ROUND_TYPES.items():
        values = [_missing_is_none(name, record.get(name)) for record in rounds]
        columns[name] = from_numbers(values, kind)
    # Keys that only some scenarios record; dict.fromkeys removes duplicates and keeps their order.
    for name in dict.fromkeys(key for record in rounds for key in record if key not in _ROUND_TYPES):
        columns[name] = from_values([_missing_is_none(name, record.get(name)) for record in rounds])
    columns["messages"] = from_numpy(messages_by_round(messages, numbers))
    by_kind = bytes_by_round(messages, numbers)
    columns["bytes"] = from_numpy(by_kind.sum(axis=1))
    for code, kind in enumerate(records.KINDS):
        columns[f"bytes_{kind}"] = from_numpy(by_kind[:, code])
    return pa.table(columns)


def _missing_is_none(name: str, value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    no_leader = name == "leader" and plain == records.NO_NODE
    return None if no_leader or (isinstance(plain, float) and np.isnan(plain)) else plain


def rounds_from_arrow(arrow: pa.Table) -> list[dict[str, Any]]:
    """Returns the round records, with the sums added by the file."""
    records_: list[dict[str, Any]] = arrow.to_pylist()
    for record in records_:
        if record["leader"] is None:
            record["leader"] = records.NO_NODE
    return records_


def log_to_arrow(log: Log) -> dict[str, pa.Table]:
    """Returns every table of a run folder by name."""
    return dict(each_as_arrow(log))


def each_as_arrow(log: Log) -> Iterator[tuple[str, pa.Table]]:
    """Yields the tables of a run folder one by one, so that only one at a time takes memory."""
    for name in LOGGED:
        yield name, to_arrow(name, getattr(log, name))
    yield "rounds", rounds_to_arrow(log.rounds, log.messages)
    if log.faults:
        yield "faults", faults_to_arrow(log.faults)


def faults_to_arrow(faults: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Returns the table of faults; affected nodes are text, such as `3, 7`."""
    import pyarrow as pa

    return pa.table(
        {
            "kind": from_strings([fault["kind"] for fault in faults]),
            "who": from_strings([", ".join(map(str, fault["who"])) for fault in faults]),
            "start_s": from_numbers([fault["start_s"] for fault in faults], "f8"),
            "end_s": from_numbers([fault["end_s"] for fault in faults], "f8"),
        }
    )


def measured_from(log: Log, first_round: int) -> Log:
    """Returns the log without the rows of rounds before `first_round`, which excludes a warm-up from the figures."""
    kept = {name: _after(name, getattr(log, name), first_round) for name in LOGGED}
    measured = Log(rounds=[record for record in log.rounds if record["round"] >= first_round], faults=log.faults)
    for name, table in kept.items():
        setattr(measured, name, table)
    return measured


def _after(name: str, table: Table, first_round: int) -> Table:
    rows = np.flatnonzero(table["round"] >= first_round)
    kept = Table(_COLUMNS[name])
    kept.extend(len(rows), **{column: table[column][rows] for column in table.names})
    return kept
