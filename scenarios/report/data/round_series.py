"""Figures of a run by round, one column each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.round_graphs import (
    figure_rows,
    figures_of_round,
    graph_words,
    members_of_round,
    planned_edges,
)
from scenarios.metrics.communication.traffic import bytes_by_round

_FIGURES = (
    "round",
    "start_s",
    "end_s",
    "cohort",
    "updates_used",
    "updates_missing",
    "skipped",
    "noise_std",
    "loss",
    *(f"accuracy_{when}_{what}" for when in ("before", "after") for what in ("max", "mean", "min")),
)
# An eigenvalue solve per round: larger inputs would make a report take minutes.
_MOST_GAPS = 200
_MOST_NODES = 2000
_MOST_WORK = 200_000_000


def round_series(log: Log, protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Returns columns over the rounds: times, cohort, accuracy, loss, bytes by kind, cumulative bytes, and graphs.

    Args:
        protocol: the section of the resolved scenario; empty if it is not known.
    """
    columns: dict[str, Any] = {name: [record.get(name) for record in log.rounds] for name in _FIGURES}
    columns["leader"] = [_leader(record) for record in log.rounds]
    numbers = np.array(columns["round"], dtype=np.int64)
    by_kind = bytes_by_round(log.messages, numbers)
    columns["bytes"] = {kind: by_kind[:, code].tolist() for code, kind in enumerate(records.KINDS)}
    columns["bytes_so_far"] = bytes_until(log, np.array(columns["end_s"], dtype=np.float64)).tolist()
    columns["spectral_gap"] = spectral_gaps(log, protocol.get("mixing") == "metropolis")
    columns["graph"] = graph_texts(log, protocol)
    return columns


def graph_texts(log: Log, protocol: Mapping[str, Any]) -> list[str]:
    """Returns the figures of each round's planned graph in words; empty once the work exceeds a limit."""
    texts: list[str] = []
    known: dict[bytes, str] = {}
    work = 0
    for record in log.rounds:
        members, edges = members_of_round(log, record["round"]), planned_edges(log, record["round"])
        key = members.tobytes() + edges.tobytes()
        # A search from every node over every edge; a graph that stays is searched once.
        work += 0 if key in known else len(members) * (len(edges) + len(members))
        if work > _MOST_WORK:
            break
        if key not in known:
            rows = figure_rows(figures_of_round(log, record["round"], protocol))
            known[key] = f"{graph_words(protocol)}: {', '.join(f'{name} {value}' for name, value in rows)}."
        texts.append(known[key])
    return texts + [""] * (len(log.rounds) - len(texts))


def _leader(record: dict[str, Any]) -> int | None:
    leader = record.get("leader")
    return None if leader is None or leader < 0 else int(leader)


def bytes_until(log: Log, at_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns the bytes sent up to and including each point in time."""
    order = np.argsort(log.messages["sent_s"], kind="stable")
    # With a zero in front, so that index k is the sum of the first k messages.
    sums = np.concatenate([[0], np.cumsum(log.messages["size_bytes"][order])])
    found: NDArray[np.int64] = sums[np.searchsorted(log.messages["sent_s"][order], at_s, side="right")]
    return found


def spectral_gaps(log: Log, metropolis: bool = False) -> list[float | None]:
    """Returns the spectral gap of each round's averaging; None if nothing was averaged or it was not computed.

    The weights are those of the updates that entered each aggregation, in the largest part of the cohort that they
    joined. A round with a leader reaches consensus at once, so its gap is 1.
    """
    rounds = log.aggregations["round"]
    gaps: list[float | None] = []
    for record in log.rounds[:_MOST_GAPS]:
        rows = np.flatnonzero((rounds == record["round"]) & ~log.aggregations["void"])
        degree = np.bincount(planned_edges(log, record["round"])[:, 1]) if metropolis else None
        gaps.append(_gap(log, rows, _leader(record) is not None, degree))
    return gaps + [None] * (len(log.rounds) - len(gaps))


def _gap(log: Log, rows: NDArray[np.int64], led: bool, degree: NDArray[np.int64] | None) -> float | None:
    """Returns the gap of one round; `degree` is each node's planned number of neighbours, for Metropolis weights."""
    from topologies.figures import parts_of
    from topologies.mixing import arrived_weights, spectral_gap, uniform_weights

    if not len(rows):
        return None
    # All members take the leader's mean, whatever the graph.
    if led:
        return 1.0
    pairs = np.stack([log.aggregations["contributor"][rows], log.aggregations["aggregator"][rows]], axis=1)
    # Renumbered, because the matrix needs consecutive indices.
    nodes, places = np.unique(pairs, return_inverse=True)
    part = parts_of(places.reshape(-1, 2), len(nodes))
    # Parts that exchanged nothing have no common limit, and the gap of the whole would be 0 whatever happens in them.
    largest = np.flatnonzero(part == np.bincount(part).argmax())
    pairs = pairs[np.isin(pairs[:, 0], nodes[largest])]
    nodes, places = np.unique(pairs, return_inverse=True)
    if len(nodes) > _MOST_NODES or len(nodes) < 2:
        return None if len(nodes) > 1 else 0.0
    edges = places.reshape(-1, 2)
    try:
        if degree is not None:
            weights = arrived_weights(edges[edges[:, 0] != edges[:, 1]], degree[nodes])
        else:
            # Own updates that entered are rows of the table already: contributor and aggregator are then one node.
            weights = uniform_weights(edges, len(nodes), include_own=False)
        # The solver's rounding errors may take the gap slightly out of [0, 1].
        return float(np.clip(round(spectral_gap(weights), 9), 0.0, 1.0))
    except ValueError:
        return None
