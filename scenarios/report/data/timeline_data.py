"""The data of a page's timeline and topology charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.critical_path import CriticalStep, critical_paths
from scenarios.report.data.message_columns import FATES, collect_message_columns, pack_by_round
from scenarios.report.data.node_layout import positions
from scenarios.report.data.node_sample import active_nodes, sample_note, shown_nodes
from scenarios.report.data.outages import down_rows, events_of_rounds, happened_s, outages
from scenarios.report.data.run_data import RunData

MOST_DRAWN = 1010
"""Nodes of the graph: a thousand clients and the services."""
MOST_ROUNDS_OF_PATHS = 500
"""Runs with more rounds show no critical paths: following one scans the round's messages at every step."""


def picture_data(run_data: RunData) -> dict[str, Any]:
    """Returns nodes, spans, messages, dropouts, faults and critical paths by round; nodes are given by true id."""
    log = run_data.log
    paths = _paths(run_data)
    nodes = shown_nodes(log, run_data.roles, list(paths.values()))
    # A graph can show more nodes than a timeline has rows.
    # The union, so that a node of the timeline is never missing in the graph.
    drawn = np.union1d(nodes, shown_nodes(log, run_data.roles, [], most=MOST_DRAWN))
    flows = collect_message_columns(log, drawn)
    base_s = _bases(log)
    return {
        "nodes": {"id": nodes.tolist(), "name": [run_data.label(node) for node in nodes.tolist()]},
        "note": sample_note(len(nodes), len(active_nodes(log))),
        "drawn": _drawn(run_data, drawn),
        "stays": run_data.protocol.get("redraw", "every_round") != "every_round",
        "drawn_note": sample_note(len(drawn), len(active_nodes(log))),
        "message_note": flows.note,
        "span_names": list(records.SPANS),
        "kinds": list(records.KINDS),
        "fates": list(FATES),
        "base_s": {str(number): start_s for number, start_s in sorted(base_s.items())},
        "end_s": {str(int(record["round"])): float(record["end_s"]) for record in log.rounds},
        "spans": pack_by_round(_spans(run_data, nodes), base_s),
        "messages": pack_by_round(flows.columns, base_s),
        "dropouts": _dropouts(run_data, drawn),
        "events": [event for event in events_of_rounds(run_data) if event[1] in set(nodes.tolist())],
        "faults": [list(fault) for fault in run_data.faults],
        "paths": {str(number): [_step(step) for step in path] for number, path in paths.items()},
        "budget": _budget(log, drawn),
        "accuracy": _accuracy(log, drawn),
    }


def _paths(run_data: RunData) -> dict[int, list[CriticalStep]]:
    log = run_data.log
    if not len(log.messages) or len(log.rounds) > MOST_ROUNDS_OF_PATHS:
        return {}
    return {record["round"]: path for record, path in critical_paths(log, run_data.roles.node("proxy"))}


def _bases(log: Log) -> dict[int, float]:
    """Returns each round's time origin: its start, or its first message or span if that is earlier."""
    base_s = {int(record["round"]): float(record["start_s"]) for record in log.rounds}
    # Outages are cut to the rounds that they fall into, and may have begun long before.
    seen = log.spans["name"] != records.SPAN["down"]
    tables = ((log.messages["round"], log.messages["sent_s"]), (log.spans["round"][seen], log.spans["start_s"][seen]))
    for rounds, times_s in tables:
        for number in np.unique(rounds).tolist():
            first_s = float(times_s[rounds == number].min())
            base_s[number] = min(base_s.get(number, first_s), first_s)
    # An interrupted round may have a graph and nothing else yet.
    for number in np.unique(log.graphs["round"]).tolist():
        base_s.setdefault(number, 0.0)
    return base_s


def _drawn(run_data: RunData, nodes: NDArray[np.int64]) -> dict[str, Any]:
    """Returns the nodes of the graph with their roles and places."""
    x, y = positions(run_data.log, run_data.roles, nodes, run_data.protocol)
    return {
        "id": nodes.tolist(),
        "name": [run_data.label(node) for node in nodes.tolist()],
        "role": [run_data.roles.role(node) for node in nodes.tolist()],
        "x": [round(float(value), 4) for value in x],
        "y": [round(float(value), 4) for value in y],
    }


def _spans(run_data: RunData, nodes: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Returns the spans of the shown nodes; an outage is in every round that it falls into, and makes none."""
    spans, down = run_data.log.spans, down_rows(run_data)
    kept = spans["name"] != records.SPAN["down"]
    columns = {name: np.concatenate([spans[name][kept], down[name]]) for name in down}
    rows = np.flatnonzero(np.isin(columns["node"], nodes))
    # By round, then node, then time: pack_by_round expects rounds together.
    rows = rows[np.lexsort((columns["start_s"][rows], columns["node"][rows], columns["round"][rows]))]
    return {name: column[rows] for name, column in columns.items()}


def _dropouts(run_data: RunData, nodes: NDArray[np.int64]) -> list[list[Any]]:
    """Returns rows `[round, node, what, reason, at_s]` of absences and dropouts.

    Missing updates are left out: the fate of their messages already shows them.
    """
    table, at_s = run_data.log.dropouts, happened_s(run_data)
    crashed = {outage.node for outage in outages(run_data) if outage.crashed}
    rows = np.flatnonzero(np.isin(table["node"], nodes) & (table["what"] != records.WHAT["missing"]))
    return [
        [
            int(table["round"][row]),
            int(table["node"][row]),
            records.WHATS[table["what"][row]],
            reason_words(records.DROPOUT_REASONS[table["reason"][row]], int(table["node"][row]) in crashed),
            float(at_s[row]),
        ]
        for row in rows.tolist()
    ]


def reason_words(reason: str, by_fault: bool) -> str:
    """Returns a reason as pictures name it: a node that no fault took down went offline by its own schedule."""
    return "went offline" if reason == "crashed" and not by_fault else reason


def _step(step: CriticalStep) -> list[Any]:
    return [step.what, step.node, step.receiver, step.start_s, step.end_s, step.held_back_by, step.waited_for]


def _budget(log: Log, nodes: NDArray[np.int64]) -> dict[str, Sequence[Any]]:
    """Returns the epsilon spent so far by the shown nodes, one row per release."""
    table = log.privacy
    rows = np.flatnonzero(np.isin(table["node"], nodes))
    rows = rows[np.lexsort((table["node"][rows], table["round"][rows]))]
    return {
        "round": table["round"][rows].tolist(),
        "node": table["node"][rows].tolist(),
        "published": _digits(table["published"][rows]),
        "rigorous": _digits(table["rigorous"][rows]),
    }


def _accuracy(log: Log, nodes: NDArray[np.int64]) -> dict[str, Sequence[Any]]:
    """Returns the accuracy of the shown nodes' models after each round in which they were evaluated."""
    shown = set(nodes.tolist())
    found = [
        (int(record["round"]), int(node), float(f"{accuracy:.6g}"))
        for record in log.rounds
        for node, accuracy in zip(
            # Rounds that were not evaluated have None here.
            record.get("evaluated_nodes") or (),
            record.get("evaluated_accuracy") or (),
            strict=False,
        )
        if node in shown
    ]
    columns = zip(*found, strict=True) if found else ((), (), ())
    return dict(zip(("round", "node", "accuracy"), (list(column) for column in columns), strict=True))


def _digits(values: NDArray[np.float64]) -> list[Any]:
    # Six digits suffice for a chart and keep the page small; JSON knows no NaN.
    return [float(f"{value:.6g}") if np.isfinite(value) else (None if np.isnan(value) else "inf") for value in values]
