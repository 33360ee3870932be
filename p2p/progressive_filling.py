"""Max-min fair rates over uplinks and downlinks, by progressive filling. Pure functions on arrays.

An allocation is max-min fair if every flow has a bottleneck: a saturated link on which no flow is faster. Filling
raises all rates together; a link that is full freezes its flows. Two ways to the same rates:

* `max_min_rates` works on flows and freezes, in each pass, every link whose fair share is no larger than that of
  any link its flows touch. Passes stay few when the graph is sparse, whatever its size.
* `link_levels` works on a matrix that counts the flows of each pair, and freezes by turns all uplinks below the
  lowest downlink and all downlinks below the lowest uplink. For many flows among few nodes, again and again.

Only + - * / in a fixed order, so equal input gives equal bits on any machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

UPLINK, DOWNLINK, NO_LINK = 0, 1, 2
"""What holds a flow back; NO_LINK if both its links are unlimited."""


class Allocation(NamedTuple):
    """Bytes per second of each flow, and the link that holds it back."""

    rates: Floats
    bottleneck: NDArray[np.int8]


def max_min_rates(src: Ids, dst: Ids, up: Floats, down: Floats) -> Allocation:
    """The max-min fair rate of each flow from `src` to `dst`, given what each node can send and receive.

    Capacities may be infinite; a flow between two unlimited links has an infinite rate. A flow over a link of no
    capacity has rate zero. Where both links hold a flow back equally, its uplink is named.
    """
    rates = np.empty(len(src))
    bottleneck = np.empty(len(src), dtype=np.int8)
    todo: Ids | None = None  # None: all flows, which spares a copy of large arrays in the first pass
    room_up, room_down = up.astype(np.float64), down.astype(np.float64)
    while len(src):
        share_up = _share(room_up, np.bincount(src, minlength=len(up)))[src]
        share_down = _share(room_down, np.bincount(dst, minlength=len(down)))[dst]
        by_up = _lowest_for_all(src, share_up > share_down, len(up))
        done = by_up | _lowest_for_all(dst, share_down > share_up, len(down))
        frozen = np.flatnonzero(done)
        rate = np.minimum(share_up[frozen], share_down[frozen])
        where = frozen if todo is None else todo[frozen]
        rates[where] = rate
        bottleneck[where] = np.where(rate == np.inf, NO_LINK, np.where(by_up[frozen], UPLINK, DOWNLINK))
        _take(room_up, src[frozen], rate)
        _take(room_down, dst[frozen], rate)
        going = np.flatnonzero(~done)
        todo = going if todo is None else todo[going]
        src, dst = src[going], dst[going]
    return Allocation(rates, bottleneck)


def link_levels(flows: Floats, flows_t: Floats, up: Floats, down: Floats) -> tuple[Floats, Floats]:
    """The water level of each uplink and downlink: a flow's rate is the lower level of its two links.

    Args:
        flows: number of flows from each node (row) to each node (column); `flows_t` is its transpose, contiguous.

    Returns:
        Infinite for links that hold nobody back.
    """
    sides = [_Side(flows, up), _Side(flows_t, down)]
    while True:
        low, high = sides if sides[0].lowest <= sides[1].lowest else sides[::-1]
        if low.lowest == np.inf:
            return sides[0].level, sides[1].level
        high.give_up(*low.freeze(high.lowest))


class _Side:
    """All uplinks, or all downlinks, while they fill."""

    __slots__ = ("count", "flows", "level", "lowest", "room", "share")

    def __init__(self, flows: Floats, capacity: Floats) -> None:
        self.flows = flows
        self.room = capacity.copy()
        self.count = np.add.reduce(flows, axis=1)
        self.level = np.full(len(capacity), np.inf)
        self._update()

    def freeze(self, threshold: float) -> tuple[Floats, Floats]:
        """Fixes the level of all links up to the threshold; what their flows take from the links opposite, and how many."""
        frozen = np.flatnonzero(self.share <= threshold) if threshold < np.inf else np.flatnonzero(self.share < np.inf)
        level = np.maximum(self.share[frozen], 0.0)
        self.level[frozen] = level
        self.share[frozen] = np.inf
        self.count[frozen] = 0.0
        self.lowest = float(np.minimum.reduce(self.share))
        flows = self.flows[frozen]
        return np.add.reduce(flows * level[:, None], axis=0), np.add.reduce(flows, axis=0)

    def give_up(self, rate: Floats, count: Floats) -> None:
        """Loses flows that were fixed on the other side. Links frozen before have a count of at most zero."""
        self.room -= rate
        self.count -= count
        self._update()

    def _update(self) -> None:
        self.share = np.full(len(self.room), np.inf)
        np.divide(self.room, self.count, out=self.share, where=self.count > 0)
        self.lowest = float(np.minimum.reduce(self.share))


def _share(room: Floats, count: Ids) -> Floats:
    return np.maximum(room, 0.0) / np.maximum(count, 1)


def _lowest_for_all(link: Ids, other_is_lower: NDArray[np.bool_], links: int) -> NDArray[np.bool_]:
    """For each flow: whether its link's share is the lower one for every flow on that link."""
    lowest = np.ones(links, dtype=np.bool_)
    lowest[link[other_is_lower]] = False
    return lowest[link]


def _take(room: Floats, link: Ids, rate: Floats) -> None:
    finite = rate < np.inf
    if not finite.all():
        link, rate = link[finite], rate[finite]
    room -= np.bincount(link, weights=rate, minlength=len(room))
