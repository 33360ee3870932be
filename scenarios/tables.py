"""A log as Arrow tables, with words for codes and null for nobody, and back.

Column names are those of the run folder; extra columns stand after the promised ones. pyarrow is imported on use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from p2p import records
from p2p.log import Log
from p2p.table import Table
from scenarios.traffic import Rows, bytes_by_round, messages_by_round, wasted_per_message

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
"""Version of the run folder's files."""
LOGGED = ("messages", "spans", "dropouts", "graphs", "privacy", "aggregations")
"""The tables that are columns in the log."""
TABLES = (*LOGGED, "rounds")
"""Every table of a run folder; `<name>.parquet`."""

_COLUMNS: dict[str, dict[str, str]] = {
    "messages": records.MESSAGES,
    "spans": records.SPAN_COLUMNS,
    "dropouts": records.DROPOUT_COLUMNS,
    "graphs": records.GRAPH_COLUMNS,
    "privacy": records.PRIVACY_COLUMNS,
    "aggregations": records.AGGREGATION_COLUMNS,
}
WORDS = cast("Mapping[str, Mapping[str, tuple[str, ...]]]", records.WORDS)
"""For each table, the columns that hold codes and the words behind them."""
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
    "skipped": "bool_",
    "noise_std": "float64",
    **{f"accuracy_{when}_{what}": "float64" for when in ("before", "after") for what in ("max", "mean", "min")},
    "loss": "float64",
    **{f"epsilon_{view}": "float64" for view in ("published", "local", "peer_worst", "model")},
}


def to_arrow(name: str, table: Table, rows: Rows = slice(None)) -> pa.Table:
    """The table called `name` (some `rows` of it, or all) as it stands in its file."""
    import pyarrow as pa

    columns: dict[str, Any] = {"id": pa.array(np.arange(len(table))[rows])} if name == "messages" else {}
    for column in sorted(table.names, key=lambda column: column in _LAST):
        columns[column] = _column(name, column, table[column][rows])
    if name == "messages":
        columns["wasted_bytes"] = pa.array(wasted_per_message(table, rows))
    return pa.table(columns)


def _column(name: str, column: str, values: NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    words = WORDS.get(name, {}).get(column)
    if words is not None:
        return pa.DictionaryArray.from_arrays(pa.array(values), pa.array(words, pa.string()))
    if column in _WHO:
        return _masked(values, values == records.NOBODY)
    if column in _WHEN:
        return _masked(values, ~np.isfinite(values))
    if values.dtype.kind == "f":
        return _masked(values, np.isnan(values))
    return pa.array(values)


def _masked(values: NDArray[Any], mask: NDArray[np.bool_]) -> pa.Array:
    """Nulls where the mask says so; without any, the values where they lie."""
    import pyarrow as pa

    return pa.array(values, mask=mask if mask.any() else None)


def from_arrow(name: str, arrow: pa.Table) -> Table:
    """The log's table again; columns that only the file has (ids, sums) are left out."""
    table = Table(_COLUMNS[name])
    columns = {column: _values(name, column, arrow.column(column)) for column in table.names}
    table.extend(arrow.num_rows, **columns)
    return table


def _values(name: str, column: str, values: pa.ChunkedArray) -> NDArray[Any]:
    words = WORDS.get(name, {}).get(column)
    if words is not None:
        return _codes(values.combine_chunks(), words)
    if column in _WHO:
        return np.asarray(values.fill_null(records.NOBODY))
    dtype = _COLUMNS[name][column]
    return np.asarray(values.fill_null(np.nan) if dtype == "f8" else values)


def _codes(values: Any, words: tuple[str, ...]) -> NDArray[np.int8]:
    encoded = values if hasattr(values, "dictionary") else values.dictionary_encode()
    code = {word: number for number, word in enumerate(words)}
    recode = np.array([code[word] for word in encoded.dictionary.to_pylist()], dtype=np.int8)
    return recode[np.asarray(encoded.indices)] if len(recode) else np.zeros(0, dtype=np.int8)


def rounds_to_arrow(rounds: Sequence[Mapping[str, Any]], messages: Table) -> pa.Table:
    """One row per round: what the run recorded at its end, and its bytes by kind."""
    import pyarrow as pa

    numbers = np.array([record["round"] for record in rounds], dtype=np.int64)
    columns: dict[str, Any] = {}
    for name, kind in _ROUND_TYPES.items():
        values = [_missing_is_none(name, record.get(name)) for record in rounds]
        columns[name] = pa.array(values, getattr(pa, kind)())
    for name in dict.fromkeys(key for record in rounds for key in record if key not in _ROUND_TYPES):
        columns[name] = pa.array([_missing_is_none(name, record.get(name)) for record in rounds])
    columns["messages"] = pa.array(messages_by_round(messages, numbers))
    by_kind = bytes_by_round(messages, numbers)
    columns["bytes"] = pa.array(by_kind.sum(axis=1))
    for code, kind in enumerate(records.KINDS):
        columns[f"bytes_{kind}"] = pa.array(by_kind[:, code])
    return pa.table(columns)


def _missing_is_none(name: str, value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    nobody = name == "leader" and plain == records.NOBODY
    return None if nobody or (isinstance(plain, float) and np.isnan(plain)) else plain


def rounds_from_arrow(arrow: pa.Table) -> list[dict[str, Any]]:
    """The round records again, with the sums the file adds."""
    records_: list[dict[str, Any]] = arrow.to_pylist()
    for record in records_:
        if record["leader"] is None:
            record["leader"] = records.NOBODY
    return records_


def log_to_arrow(log: Log) -> dict[str, pa.Table]:
    """Every table of a run folder."""
    return dict(each_as_arrow(log))


def each_as_arrow(log: Log) -> Iterator[tuple[str, pa.Table]]:
    """One table of a run folder after the other, each made when it is asked for."""
    for name in LOGGED:
        yield name, to_arrow(name, getattr(log, name))
    yield "rounds", rounds_to_arrow(log.rounds, log.messages)
    if log.faults:
        yield "faults", faults_to_arrow(log.faults)


def faults_to_arrow(faults: Sequence[Mapping[str, Any]]) -> pa.Table:
    """What went wrong and when; the nodes as text, such as `3, 7`."""
    import pyarrow as pa

    return pa.table(
        {
            "kind": pa.array([fault["kind"] for fault in faults], pa.string()),
            "who": pa.array([", ".join(map(str, fault["who"])) for fault in faults], pa.string()),
            "start_s": pa.array([fault["start_s"] for fault in faults], pa.float64()),
            "end_s": pa.array([fault["end_s"] for fault in faults], pa.float64()),
        }
    )


def measured_from(log: Log, first_round: int) -> Log:
    """The log without what belongs to rounds before `first_round`, so that a warm-up stays out of the figures."""
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
