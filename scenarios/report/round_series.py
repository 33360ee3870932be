"""Figures of a run by round, one column each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.traffic import bytes_by_round

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


def round_series(log: Log) -> dict[str, Any]:
    """Returns columns over the rounds: times, cohort, accuracy, loss, bytes by kind, and cumulative bytes."""
    columns: dict[str, Any] = {name: [record.get(name) for record in log.rounds] for name in _FIGURES}
    columns["leader"] = [_leader(record) for record in log.rounds]
    numbers = np.array(columns["round"], dtype=np.int64)
    by_kind = bytes_by_round(log.messages, numbers)
    columns["bytes"] = {kind: by_kind[:, code].tolist() for code, kind in enumerate(records.KINDS)}
    columns["bytes_so_far"] = bytes_until(log, np.array(columns["end_s"], dtype=np.float64)).tolist()
    columns["spectral_gap"] = spectral_gaps(log)
    return columns


def _leader(record: dict[str, Any]) -> int | None:
    leader = record.get("leader")
    return None if leader is None or leader < 0 else int(leader)


def bytes_until(log: Log, at_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns the bytes sent up to and including each point in time."""
    order = np.argsort(log.messages["sent_s"], kind="stable")
    sums = np.concatenate([[0], np.cumsum(log.messages["size_bytes"][order])])
    found: NDArray[np.int64] = sums[np.searchsorted(log.messages["sent_s"][order], at_s, side="right")]
    return found


def spectral_gaps(log: Log) -> list[float | None]:
    """Returns the spectral gap of each round's averaging; None if nothing was averaged or it was not computed.

    The weights are those of the updates that entered each aggregation. A round with a leader reaches consensus at
    once, so its gap is 1.
    """
    rounds = log.aggregations["round"]
    gaps: list[float | None] = []
    for record in log.rounds[:_MOST_GAPS]:
        rows = np.flatnonzero((rounds == record["round"]) & ~log.aggregations["void"])
        gaps.append(_gap(log, rows, _leader(record) is not None))
    return gaps + [None] * (len(log.rounds) - len(gaps))


def _gap(log: Log, rows: NDArray[np.int64], led: bool) -> float | None:
    from topologies.mixing import spectral_gap, uniform_weights

    if not len(rows):
        return None
    # All members take the leader's mean, whatever the graph.
    if led:
        return 1.0
    pairs = np.stack([log.aggregations["contributor"][rows], log.aggregations["aggregator"][rows]], axis=1)
    # Renumbered, because the matrix needs consecutive indices.
    nodes, places = np.unique(pairs, return_inverse=True)
    if len(nodes) > _MOST_NODES:
        return None
    try:
        weights = uniform_weights(places.reshape(-1, 2), len(nodes), include_own=False)
        # The solver's rounding errors may take the gap slightly out of [0, 1].
        return float(np.clip(round(spectral_gap(weights), 9), 0.0, 1.0))
    except ValueError:
        return None
