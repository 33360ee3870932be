"""Max-min fair rates over uplinks and downlinks, by progressive filling. Pure functions on arrays.

An allocation is max-min fair if every flow has a bottleneck: a saturated link on which no flow is faster. Filling
raises all rates together, and a link that is full freezes its flows. Here every link is frozen, in one pass, whose fair
share is no larger than that of any link its flows touch; so passes stay few (some 15 for a million peers).
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
