"""Progressive filling for many flows among few nodes, solved again and again while flows come and go.

Works on the number of flows of each pair instead of on flows, and remembers the passes of the last filling: one is
done again only if the flows that came or went since could change it. The levels are the same bits as from scratch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

_NEVER = np.iinfo(np.int64).max


class PairFilling:
    """The water level of each link: a flow's max-min fair rate is the lower level of its two links.

    The uplink of node i is link i, its downlink is link nodes + i. In each pass either all uplinks below the lowest
    downlink freeze, or all downlinks below the lowest uplink: none of them shares a flow with a lower link.
    """

    def __init__(self, up: Floats, down: Floats) -> None:
        self._nodes = len(up)
        self._capacity = np.concatenate([up, down]).astype(np.float64)
        links = len(self._capacity)
        self._flows = np.zeros((links, links))
        self._change = np.zeros(links)
        self._touched = np.zeros(links, dtype=np.bool_)
        self._level = np.full(links, np.inf)
        self._frozen_in = np.full(links, _NEVER)
        self._passes = 0
        # How things stood before each pass: free capacity, free flows, share of each, and the level it filled to.
        self._room, self._count, self._share = (np.empty((8, links)) for _ in range(3))
        self._brim = np.empty(8)

    def add(self, src: Ids, dst: Ids, number: float = 1.0) -> None:
        """Adds (or, by -1, takes away) one flow for each pair."""
        down = dst + self._nodes
        np.add.at(self._flows, (src, down), number)
        np.add.at(self._flows, (down, src), number)
        for links in (src, down):
            np.add.at(self._change, links, number)
            self._touched[links] = True

    def set_capacity(self, node: int, up: float, down: float) -> None:
        """From the next filling on."""
        self._capacity[node], self._capacity[self._nodes + node] = up, down
        self._passes = 0

    def levels(self) -> Floats:
        """Of each link; infinite where it holds nobody back."""
        first = self._first_pass_to_redo()
        if self._passes:
            room, count, share = self._room[first].copy(), self._count[first].copy(), self._share[first].copy()
        else:
            room, count, share = self._capacity.copy(), np.add.reduce(self._flows, axis=1), np.empty(len(self._level))
            _divide(room, count, share)
        undone = self._frozen_in >= first
        self._level[undone] = np.inf
        self._frozen_in[undone] = _NEVER
        self._fill(first, room, count, share)
        return self._level

    def _fill(self, number: int, room: Floats, count: Floats, share: Floats) -> None:
        """All passes from `number` on. The last one remembered freezes nothing."""
        up, down = share[: self._nodes], share[self._nodes :]
        while True:
            lowest_up, lowest_down = np.minimum.reduce(up), np.minimum.reduce(down)
            brim = max(lowest_up, lowest_down)
            self._remember(number, room, count, share, brim)
            if min(lowest_up, lowest_down) == np.inf:
                self._passes = number + 1
                return
            frozen = np.flatnonzero(share < brim if lowest_up != lowest_down else share <= brim)
            self._frozen_in[frozen] = number
            self._freeze(frozen, room, count, share)
            number += 1

    def _freeze(self, frozen: Ids, room: Floats, count: Floats, share: Floats) -> None:
        """Fixes the level of these links and takes their flows off the links opposite."""
        level = np.maximum(share[frozen], 0.0)
        self._level[frozen] = level
        flows = self._flows[frozen]
        count -= np.add.reduce(flows, axis=0)
        flows *= level[:, None]
        room -= np.add.reduce(flows, axis=0)
        count[frozen] = 0.0
        _divide(room, count, share)

    def _remember(self, number: int, room: Floats, count: Floats, share: Floats, brim: float) -> None:
        if number == len(self._brim):
            self._room, self._count, self._share = (
                np.concatenate([rows, np.empty_like(rows)]) for rows in (self._room, self._count, self._share)
            )
            self._brim = np.concatenate([self._brim, np.empty_like(self._brim)])
        self._room[number], self._count[number], self._share[number] = room, count, share
        self._brim[number] = brim

    def _first_pass_to_redo(self) -> int:
        """Enters the flows that came and went into the remembered passes, as far as these hold.

        A pass holds if no link with such flows was, or would now be, at its brim or below: then the same links freeze
        at the same levels and take the same from the others. The last one's brim is infinite, so it never holds.
        """
        touched = np.flatnonzero(self._touched)
        change = self._change[touched]
        self._change[touched], self._touched[touched] = 0.0, False
        if not self._passes:
            return 0
        past = slice(0, self._passes)
        before = self._share[past, touched]
        count = self._count[past, touched] + change
        share = np.empty(count.shape)
        _divide(self._room[past, touched], count, share)
        holds = np.minimum(before, share).min(axis=1, initial=np.inf) > self._brim[past]
        first = int(np.argmin(holds))
        self._count[: first + 1, touched], self._share[: first + 1, touched] = count[: first + 1], share[: first + 1]
        return first


def _divide(room: Floats, count: Floats, share: Floats) -> None:
    """What each free flow of a link would get; infinite where there is none."""
    free = count > 0
    np.divide(room, count, out=share, where=free)
    np.copyto(share, np.inf, where=~free)
