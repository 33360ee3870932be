"""Chart data on privacy: epsilon per view, epsilon spent over time, and received updates by sender."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.privacy.privacy_verdict import epsilon_of
from scenarios.report.data.run_data import RunData

_MOST_SQUARES = 120
VIEWS = (("local", ("local",)), ("worst peer", ("peer", "worst")), ("median peer", ("peer", "median")))


def privacy_data(run_data: RunData) -> dict[str, Any]:
    """Returns all privacy data of a page."""
    return {
        "views": views_of(run_data.summary.get("privacy") or {}),
        "published": epsilon_of((run_data.summary.get("privacy") or {}).get("published")),
        "budget": budget_of(run_data.run.scenario),
        "spent": spent_by_round(run_data.log),
        "seen": who_saw_what(run_data),
    }


def views_of(privacy: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns the rigorous epsilon of each view in the summary."""
    rigorous = privacy.get("rigorous") or {}
    paths = (*VIEWS, ("model", ("model",)), ("coalition", ("coalition",)))
    found = {view: epsilon_of(_at(rigorous, path)) for view, path in paths}
    return {view: epsilon for view, epsilon in found.items() if epsilon is not None}


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def budget_of(scenario: Mapping[str, Any]) -> float | None:
    """Returns the epsilon the scenario allows: the budget's, or the one the noise was calibrated for."""
    # The budget first, since it is what ends the run.
    for path in (("budget", "epsilon"), ("noise", "calibrate", "epsilon")):
        value = _at(scenario.get("privacy"), path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def spent_by_round(log: Log) -> dict[str, Any]:
    """Returns min, median and max by round of the published and rigorous (local) epsilon spent so far.

    Where single records are protected, also of the epsilon of one record.

    Clients that have not released yet do not count.
    """
    numbers = np.unique(log.privacy["round"])
    spent: dict[str, Any] = {"round": numbers.tolist()}
    per_record = ("record",) if not np.isnan(log.privacy["record"]).all() else ()
    for name in ("published", "rigorous", *per_record):
        # A client that sits out a round keeps the epsilon of its last release.
        latest: dict[int, float] = {}
        spread: list[tuple[float | None, ...]] = []
        for number in numbers:
            rows = log.privacy["round"] == number
            latest.update(zip(log.privacy["node"][rows].tolist(), log.privacy[name][rows].tolist(), strict=True))
            spread.append(_spread(np.array(list(latest.values()))))
        spent[name] = {what: [row[place] for row in spread] for place, what in enumerate(("min", "median", "max"))}
    return spent


def _spread(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    # NaN: a release whose figure was not written yet, or a client without such a figure.
    known = values[~np.isnan(values)]
    if not len(known):
        return (None, None, None)
    return float(known.min()), float(np.median(known)), float(known.max())


def who_saw_what(run_data: RunData) -> dict[str, Any]:
    """Returns how many updates of each node reached each other node, late ones included; many nodes are grouped."""
    messages = run_data.log.messages
    kinds = [records.KIND["update"], records.KIND["share"]]
    came = np.isin(messages["kind"], kinds) & (messages["outcome"] == records.OUTCOME["delivered"])
    # Hops to relays do not count, only the final delivery.
    came &= messages["receiver"] == messages["destination"]
    sender, receiver = messages["origin"][came].astype(np.int64), messages["receiver"][came].astype(np.int64)
    nodes = np.unique(np.concatenate([sender, receiver]))
    if not len(nodes):
        return {"names": [], "counts": [], "group": 1}
    # Ceiling divisions: nodes per group, and groups.
    size = -(-len(nodes) // _MOST_SQUARES)
    groups = -(-len(nodes) // size)
    counts = np.zeros((groups, groups), dtype=np.int64)
    # `add.at`: plain indexing would count repeated pairs once.
    np.add.at(counts, (np.searchsorted(nodes, receiver) // size, np.searchsorted(nodes, sender) // size), 1)
    names = [_group_name(run_data, nodes[start : start + size]) for start in range(0, len(nodes), size)]
    return {"names": names, "counts": counts.tolist(), "group": size}


def _group_name(run_data: RunData, nodes: NDArray[np.int64]) -> str:
    return run_data.label(int(nodes[0])) if len(nodes) == 1 else f"{nodes[0]}-{nodes[-1]}"
