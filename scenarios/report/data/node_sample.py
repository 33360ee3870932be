"""Selects the nodes a chart shows: all if they fit, otherwise the notable ones and an even sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from p2p.log.log import Log
from scenarios.metrics.communication.critical_path import CriticalStep
from scenarios.metrics.communication.roles import Roles, leaders

MOST_ROWS = 200


def shown_nodes(
    log: Log, roles: Roles, paths: Sequence[Sequence[CriticalStep]], most: int = MOST_ROWS
) -> NDArray[np.int64]:
    """Returns the node ids to show, sorted.

    If there are too many: services, nodes on critical paths (longest first), leaders and dropouts fill at most half
    of the rows, and an even sample of the other nodes the rest.
    """
    active = active_nodes(log)
    if len(active) <= most:
        return active
    services = active[active >= roles.clients]
    wanted = [
        # Relays and intruders are among the services and may be many.
        *services[: most // 4].tolist(),
        *_blamed(paths),
        *leaders(log).values(),
        *np.unique(log.dropouts["node"]),
    ]
    # The order of `wanted` is the priority; duplicates count once.
    first = list(dict.fromkeys(int(node) for node in wanted))[: most // 2]
    rest = np.setdiff1d(active, first)
    # Evenly spaced and not random: the same run gives the same page.
    sample = rest[np.linspace(0, len(rest) - 1, most - len(first)).astype(np.int64)]
    return np.union1d(np.array(first, dtype=np.int64), sample)


def active_nodes(log: Log) -> NDArray[np.int64]:
    """Returns every node that appears in a message or span."""
    named = [log.messages["sender"], log.messages["receiver"], log.spans["node"]]
    nodes = np.unique(np.concatenate(named)).astype(np.int64)
    known: NDArray[np.int64] = nodes[nodes >= 0]
    return known


def sample_note(shown: int, of: int) -> str:
    """Returns a note if not all nodes are shown, otherwise an empty string."""
    if shown >= of:
        return ""
    return (
        f"{shown} of {of:,} nodes are shown: services, the nodes that held rounds up, leaders, dropouts, "
        "and an even sample of the others."
    )


def _blamed(paths: Sequence[Sequence[CriticalStep]]) -> list[int]:
    """Returns the nodes on critical paths by their total time there, longest first; ties by id."""
    seconds: dict[int, float] = {}
    for step in (step for path in paths for step in path):
        seconds[step.blamed] = seconds.get(step.blamed, 0.0) + step.duration_s
    return sorted(seconds, key=lambda node: (-seconds[node], node))
