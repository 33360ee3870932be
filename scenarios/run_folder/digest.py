"""Digests of a run: equal events give an equal digest, regardless of the order in which they were recorded.

Rows are hashed, not files. Times are whole microseconds, ids are left out, and codes are hashed as their words, so a
new entry in a code table changes no digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.column_table import Table
from p2p.log.log import Log
from scenarios.run_folder.arrow_tables import WORDS

_COLUMNS = {
    "messages": (
        ("sent_s", "sender", "receiver", "kind", "attempt"),
        ("round", "size_bytes", "overhead_bytes", "arrived_s", "outcome", "reason", "bottleneck"),
    ),
    "spans": (("start_s", "node", "name"), ("round", "end_s")),
    "dropouts": (("at_s", "node", "aggregator", "what"), ("round", "reason")),
    "graphs": (("round", "sender", "receiver"), ()),
}
"""The hashed columns of each table: the sort keys, and the others."""
_NEVER = np.iinfo(np.int64).min
_MOST = 1 << 62
_ROWS_AT_ONCE = 1 << 16
"""Rows are hashed in blocks, which bounds the memory for the copies in sorted order."""
Integers = NDArray[Any]


def events_digest(log: Log) -> str:
    """Returns a SHA-256 over the messages, spans, dropouts and graphs of a run."""
    # The number is the version of the digest's definition.
    digest = hashlib.sha256(b"peerveil events 1\n")
    for name in _COLUMNS:
        for piece in _canonical(name, getattr(log, name)):
            digest.update(piece)
    return digest.hexdigest()


def learning_digest(
    rounds: Sequence[Mapping[str, Any]],
    client_accuracy: NDArray[Any] | None,
    collected_accuracy: float | None,
    collected_loss: float | None,
) -> str:
    """Returns a SHA-256 over all bits of the accuracies and losses of every round and of the end."""
    digest = hashlib.sha256(b"peerveil learning 1\n")
    for record in rounds:
        figures = sorted(name for name in record if name.startswith("accuracy_") or name == "loss")
        line = " ".join(f"{name}={_bits(record[name])}" for name in figures)
        digest.update(f"{int(record['round'])} {line}\n".encode())
    digest.update(f"collected {_bits(collected_accuracy)} {_bits(collected_loss)}\n".encode())
    if client_accuracy is not None:
        digest.update(np.ascontiguousarray(client_accuracy, dtype="<f8").tobytes())
    return digest.hexdigest()


def _bits(value: Any) -> str:
    return "-" if value is None or np.isnan(value) else float(value).hex()


def _canonical(name: str, table: Table) -> Iterator[bytes]:
    """Yields the canonical bytes of a table: a header with its words, then its rows in sorted order."""
    keys, others = _COLUMNS[name]
    words, columns = [], {}
    for column in keys + others:
        columns[column], present = _integers(name, column, table[column])
        words.append(f"{column}={','.join(present)}")
    order = _order([columns[column] for column in keys], [columns[column] for column in others])
    yield f"{name} {len(order)} {' '.join(words)}\n".encode()
    row = np.dtype([(column, "<i8") for column in columns])
    for start in range(0, len(order), _ROWS_AT_ONCE):
        picked = order[start : start + _ROWS_AT_ONCE]
        rows = np.empty(len(picked), dtype=row)
        for column, values in columns.items():
            rows[column] = values[picked]
        yield rows.tobytes()


def _integers(name: str, column: str, values: NDArray[Any]) -> tuple[Integers, list[str]]:
    """Returns canonical integers and the words they index: whole microseconds, or ranks among the words present."""
    words = WORDS.get(name, {}).get(column)
    if words is not None:
        codes = np.flatnonzero(np.bincount(values, minlength=len(words)))
        present = sorted(words[code] for code in codes)
        # Ranks among the words that occur: unused words of a code table have no influence.
        place = np.zeros(len(words), dtype=np.int8)
        place[codes] = [present.index(words[code]) for code in codes]
        return place[values], present
    if values.dtype.kind != "f":
        return values, []
    # Rounded to 1 us, so that last-bit differences of machines and compilers do not change the digest.
    finite = np.isfinite(values)
    if finite.all():
        return np.rint(values * 1e6).astype(np.int64), []
    return np.where(finite, np.rint(np.where(finite, values, 0.0) * 1e6).astype(np.int64), _NEVER), []


def _order(keys: list[Integers], others: list[Integers]) -> NDArray[np.intp]:
    """Returns the order of rows by `keys`; the other columns are compared only if the keys leave a tie."""
    packed = _packed(keys)
    order = np.lexsort(packed[::-1])
    tied = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for key in packed:
        in_order = key[order]
        tied &= in_order[1:] == in_order[:-1]
    # lexsort takes its most important key last.
    return np.lexsort((keys + others)[::-1]) if others and tied.any() else order


def _packed(keys: list[Integers]) -> list[Integers]:
    """Combines sort columns into fewer ones of the same order, as many per 62-bit number as fit."""
    packed: list[Integers] = []
    room = 0
    for key in keys if len(keys[0]) else ():
        low = int(key.min())
        # Mixed radix: each column takes as much room as its range of values.
        span = int(key.max()) - low + 1
        if span <= room:
            packed[-1] = packed[-1] * span + (key.astype(np.int64) - low)
            room //= span
        else:
            packed.append(key.astype(np.int64) - low if span < _MOST else key)
            room = _MOST // span
    return packed or keys
