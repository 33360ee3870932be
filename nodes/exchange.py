"""The exchange of a foretold round: everyone sends to some others, averages once it has heard from all, and reports.

A report may share its sender's uplink with updates that are still leaving, and delay them; these delay averages and
reports of others, and so on. Cause comes before effect, so looking again and again ends with the one consistent
answer, mostly after two or three turns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.foretelling import Foretelling, Load, Sendings
from p2p.records import BOTTLENECK

Nodes = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST_TURNS = 100


class Exchange(NamedTuple):
    """What comes of it.

    Attributes:
        averages_s: when each member has all that it expects, and averages
        first_s: when the first of that has come
        heard: for each member whom it heard from, in the order of arrival
    """

    updates: Sendings
    reports: Sendings
    averages_s: Floats
    first_s: Floats
    heard: Nodes


def exchange(
    links: Foretelling, update: Load, report: Load, proxy: int, members: Nodes, edges: Nodes, sends_s: Floats
) -> Exchange | None:
    """Foretells an exchange along edges that are sorted, with as many to each member as from it; None if it cannot.

    Args:
        update: the bytes of one update
        report: the bytes of one report to the proxy
        sends_s: when each member sends
    """
    degree = len(edges) // len(members)
    if not links.fits(edges, degree):
        return None
    latencies, size_bytes = links.latencies(edges), int(update.size_bytes)
    by_receiver = np.argsort(edges[:, 1], kind="stable")
    left_s = links.leave_s(members, degree, size_bytes, sends_s)
    for _ in range(_MOST_TURNS):
        arrived_s = np.repeat(left_s, degree) + latencies
        arrivals_s = arrived_s[by_receiver].reshape(-1, degree)
        averages_s = np.maximum(arrivals_s.max(axis=1), sends_s)
        before_s = left_s
        left_s, reported_s = links.joined(members, degree, size_bytes, sends_s, averages_s, int(report.size_bytes))
        if np.array_equal(left_s, before_s):
            break
    else:
        return None
    sent_s, lefts_s = np.repeat(sends_s, degree), np.repeat(left_s, degree)
    head, sizes, held = update[:2], update[2:], BOTTLENECK["uplink"]
    updates = Sendings(*head, edges[:, 0], edges[:, 1], *sizes, sent_s, lefts_s, arrived_s, held)
    reports = links.to_hub(report, members, proxy, averages_s, reported_s)
    in_turn = np.argsort(arrivals_s, axis=1, kind="stable")
    heard = np.take_along_axis(edges[by_receiver, 0].reshape(-1, degree), in_turn, axis=1)
    return Exchange(updates, reports, averages_s, arrivals_s.min(axis=1), heard)
