"""Trace events of spans: slices where they nest, asynchronous pairs where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from scenarios.report.data.run_data import RunData

_NODES = 1
Event = dict[str, Any]
Busy = dict[int, NDArray[np.int64]]
"""For each node its slices' [start, end] in microseconds, sorted by start; arrows attach to slices."""


def span_events(run_data: RunData, nodes: NDArray[np.int64], rounds: Sequence[int] | None) -> tuple[list[Event], Busy]:
    """Returns the events of all spans of `nodes`, and the slices of each node."""
    spans = run_data.log.spans
    chosen = np.isin(spans["node"], nodes)
    if rounds is not None:
        chosen &= np.isin(spans["round"], rounds)
    rows = np.flatnonzero(chosen)
    start_us, end_us = (np.rint(spans[name][rows] * 1e6).astype(np.int64) for name in ("start_s", "end_s"))
    # Of spans with equal start the longest comes first: it encloses the others.
    order = np.lexsort((-end_us, start_us, spans["node"][rows]))
    events: list[Event] = []
    slices: dict[int, list[tuple[int, int]]] = {}
    open_ends: list[int] = []
    last = -1
    for place in order.tolist():
        row, start, end = int(rows[place]), int(start_us[place]), int(end_us[place])
        node = int(spans["node"][row])
        open_ends = [] if node != last else [until for until in open_ends if until > start]
        last = node
        name = records.SPANS[spans["name"][row]]
        at = {"pid": _NODES, "tid": node, "name": name, "ts": start, "args": {"round": int(spans["round"][row])}}
        # A span that outlives an open slice overlaps it only in part, which the viewer cannot show as a slice.
        if all(end <= until for until in open_ends):
            open_ends.append(end)
            slices.setdefault(node, []).append((start, end))
            events.append({"ph": "X", "dur": end - start, **at})
        else:
            events += _pair(at, end, f"s{row}")
    return events, {node: np.array(own, dtype=np.int64) for node, own in slices.items()}


def _pair(at: Event, end_us: int, number: str) -> list[Event]:
    start = {"ph": "b", "cat": "span", "id": number, **at}
    return [start, {**start, "ph": "e", "ts": end_us, "args": {}}]


def covered(busy: Busy, node: int, at_us: int) -> bool:
    """Returns whether the node has a slice at that time."""
    own = busy.get(node)
    if own is None:
        return False
    before = own[: int(np.searchsorted(own[:, 0], at_us, side="right"))]
    # Slices nest only a few levels deep, so looking back at eight of them finds an enclosing one.
    return bool(len(before)) and bool((before[-8:, 1] >= at_us).any())
