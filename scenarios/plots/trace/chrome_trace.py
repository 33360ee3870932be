"""A run as Chrome trace events for Perfetto and chrome://tracing, with times in microseconds.

Nodes are threads. Nested spans are slices; a span that overlaps another only in part is an asynchronous pair, since
overlapping slices would break the viewer. Transfers are asynchronous pairs at their sender, with an arrow from the
sending slice to the receiving slice. Bytes in flight and accuracy are counters; losses, dropouts and faults are
instants.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from scenarios.plots.trace.spans import span_events
from scenarios.plots.trace.transfers import counter_events, transfer_events
from scenarios.report.data.node_sample import active_nodes
from scenarios.report.data.run_data import RunData

MOST_TRACKS = 200
MOST_EVENTS = 500_000
NODES, RUN = 1, 2
Event = dict[str, Any]


def chrome_trace(
    run_data: RunData,
    *,
    rounds: Sequence[int] | None = None,
    nodes: NDArray[np.int64] | None = None,
    most_tracks: int | None = MOST_TRACKS,
    most_events: int | None = MOST_EVENTS,
) -> dict[str, Any]:
    """Returns the trace; `otherData.notes` lists omissions."""
    notes: list[str] = []
    chosen = _choose(run_data, nodes, most_tracks, notes)
    events = [*_names(run_data, chosen), *_round_events(run_data, rounds), *_instants(run_data, chosen, rounds)]
    slices, busy = span_events(run_data, chosen, rounds)
    events += slices
    # Leaves some room for the counters.
    room = None if most_events is None else max(0, most_events - len(events) - 2 * len(run_data.log.rounds))
    transfers, left_out = transfer_events(run_data, chosen, rounds, busy, room)
    if left_out:
        notes.append(
            f"{left_out:,} messages are left out (at most {most_events:,} events); --rounds or --all shows them"
        )
    counters = counter_events(run_data, rounds, 2000)
    # Metadata first, then by time; the sort is stable, so enclosing slices stay before enclosed ones.
    ordered = sorted([*events, *transfers, *counters], key=lambda event: (event["ph"] != "M", event.get("ts", 0)))
    other = {"scenario": run_data.name, "seed": str(run_data.summary.get("seed")), "notes": notes}
    return {"displayTimeUnit": "ms", "otherData": other, "traceEvents": ordered}


def trace_text(trace: dict[str, Any]) -> str:
    """Returns the trace as JSON, one event per line."""
    events = ",\n".join(json.dumps(event, separators=(",", ":"), allow_nan=False) for event in trace["traceEvents"])
    head = json.dumps({key: value for key, value in trace.items() if key != "traceEvents"}, allow_nan=False)
    return f'{head[:-1]}, "traceEvents": [\n{events}\n]}}\n'


def _choose(
    run_data: RunData, nodes: NDArray[np.int64] | None, most: int | None, notes: list[str]
) -> NDArray[np.int64]:
    """Returns the nodes to show: services first, then clients, each by time spent training and sending."""
    active = active_nodes(run_data.log) if nodes is None else nodes
    spans = run_data.log.spans
    working = np.isin(spans["name"], [records.SPAN[name] for name in ("train", "send", "share", "broadcast")])
    seconds = np.zeros(int(active.max(initial=0)) + 1)
    rows = np.flatnonzero(working & (spans["node"] < len(seconds)))
    np.add.at(seconds, spans["node"][rows], spans["end_s"][rows] - spans["start_s"][rows])
    order = active[np.argsort(-seconds[active], kind="stable")]
    services = order[order >= run_data.roles.clients]
    # Services first, so that the limit cuts off clients only.
    order = np.concatenate([services, order[order < run_data.roles.clients]])
    if most is not None and len(order) > most:
        notes.append(f"{most} of {len(order):,} nodes are shown, slowest first; --nodes or --all shows others")
    return order[:most]


def _names(run_data: RunData, nodes: NDArray[np.int64]) -> list[Event]:
    named = [
        {"ph": "M", "pid": NODES, "name": "process_name", "args": {"name": "nodes"}},
        {"ph": "M", "pid": NODES, "name": "process_sort_index", "args": {"sort_index": 2}},
        {"ph": "M", "pid": RUN, "name": "process_name", "args": {"name": f"run {run_data.name}"}},
        {"ph": "M", "pid": RUN, "name": "process_sort_index", "args": {"sort_index": 1}},
        {"ph": "M", "pid": RUN, "tid": 0, "name": "thread_name", "args": {"name": "rounds"}},
    ]
    for place, node in enumerate(nodes.tolist()):
        at = {"ph": "M", "pid": NODES, "tid": node}
        named.append({**at, "name": "thread_name", "args": {"name": run_data.label(node)}})
        named.append({**at, "name": "thread_sort_index", "args": {"sort_index": place}})
    return named


def _round_events(run_data: RunData, rounds: Sequence[int] | None) -> list[Event]:
    return [
        {
            "ph": "X",
            "pid": RUN,
            "tid": 0,
            "name": f"round {record['round']}",
            "ts": microseconds(record["start_s"]),
            "dur": microseconds(record["end_s"]) - microseconds(record["start_s"]),
            "args": {"cohort": record.get("cohort"), "accuracy": record.get("accuracy_after_mean")},
        }
        for record in run_data.log.rounds
        if rounds is None or record["round"] in rounds
    ]


def _instants(run_data: RunData, nodes: NDArray[np.int64], rounds: Sequence[int] | None) -> list[Event]:
    table = run_data.log.dropouts
    chosen = np.isin(table["node"], nodes) & np.isfinite(table["at_s"])
    if rounds is not None:
        chosen &= np.isin(table["round"], rounds)
    found: list[Event] = [
        {
            "ph": "i",
            "s": "t",
            "pid": NODES,
            "tid": int(table["node"][row]),
            "ts": microseconds(table["at_s"][row]),
            "name": f"{records.WHATS[table['what'][row]]}: {records.DROPOUT_REASONS[table['reason'][row]]}",
        }
        for row in np.flatnonzero(chosen).tolist()
    ]
    for start_s, end_s, kind, who in run_data.faults:
        for at_s, word in ((start_s, "begins"), (end_s, "ends")):
            if np.isfinite(at_s):
                name = f"fault {word}: {kind} {who}"
                found.append({"ph": "i", "s": "g", "pid": RUN, "tid": 0, "ts": microseconds(at_s), "name": name})
    return found


def microseconds(time_s: float) -> int:
    """Converts seconds to whole microseconds."""
    return round(float(time_s) * 1_000_000)
