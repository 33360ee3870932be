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
_ROOM, _COUNT, _SHARE = range(3)
NOTHING = 1e-280  # stands for no room, so that a share of no room by no flows is infinite; and below what a rate can be
_MANY_PAIRS, _FEW_LINKS = 100, 4
_MANY = 1e15  # flows of a frozen link, whose room is infinite: its share stays infinite whatever is taken away


class PairFilling:
    """The water level of each link: a flow's max-min fair rate is the lower level of its two links.

    The uplink of node i is link i, its downlink is link nodes + i. In each pass either all uplinks below the lowest
    downlink freeze, or all downlinks below the lowest uplink: none of them shares a flow with a lower link.
    """

    def __init__(self, up: Floats, down: Floats) -> None:
        self._nodes = len(up)
        self._capacity = np.concatenate([up, down]).astype(np.float64)
        links = len(self._capacity)
        self._links = np.arange(links)
        self._flows = np.zeros((links, links))
        self._change = np.zeros(links)
        self._touched: dict[int, None] = {}
        self._weights = np.ones((2, links, 1))
        self._frozen_in = np.full(links, _NEVER)
        # How each link stood before each pass (free capacity, free flows, share of each), and where the pass ended.
        self._states = np.empty((8, 3, links))
        self._brims = np.empty(8)
        self._passes = 0

    def add(self, src: Ids, dst: Ids, number: float = 1.0) -> None:
        """Adds (or, by -1, takes away) one flow for each pair."""
        if len(src) > _MANY_PAIRS:
            self._add_many(src, dst + self._nodes, number)
            return
        for up, down in zip(src.tolist(), (dst + self._nodes).tolist(), strict=True):
            self._flows[up, down] += number
            self._flows[down, up] += number
            self._change[up] += number
            self._change[down] += number
            self._touched[up] = self._touched[down] = None

    def _add_many(self, up: Ids, down: Ids, number: float) -> None:
        links = len(self._capacity)
        pairs = np.concatenate([up * links + down, down * links + up])
        self._flows += number * np.bincount(pairs, minlength=links * links).reshape(links, links)
        ends = np.concatenate([up, down])
        self._change += number * np.bincount(ends, minlength=links)
        self._touched |= dict.fromkeys(ends.tolist())

    def set_capacity(self, node: int, up: float, down: float) -> None:
        """From the next filling on."""
        self._capacity[node], self._capacity[self._nodes + node] = up, down
        self._passes = 0

    def levels(self) -> Floats:
        """Of each link; infinite where it holds nobody back."""
        with np.errstate(divide="ignore"):  # a link without free flows: its share is infinite
            first = self._first_pass_to_redo()
            if not self._passes:
                self._states[0, _ROOM], self._states[0, _COUNT] = self._capacity, np.add.reduce(self._flows, axis=1)
                _divide(*self._states[0])
            self._frozen_in[self._frozen_in >= first] = _NEVER
            self._passes = 1 + self._fill(first)
        last = np.minimum(self._frozen_in, self._passes - 1)  # in which all shares of unfrozen links are infinite
        shares: Floats = self._states[last, _SHARE, self._links]
        shares[shares <= NOTHING] = 0.0
        return shares

    def _fill(self, number: int) -> int:
        """Does all passes from `number` on and returns the number of the last one, which freezes nothing."""
        state = self._states[number].copy()
        room, count, share = state
        free, up, down = state[:_SHARE], share[: self._nodes], share[self._nodes :]
        lowest, total = np.minimum.reduce, np.add.reduce  # bound here: a pass costs about 15 calls of numpy
        while True:
            lowest_up, lowest_down = float(lowest(up)), float(lowest(down))
            brim = lowest_up if lowest_up > lowest_down else lowest_down
            self._room_for(number + 1)
            self._states[number], self._brims[number] = state, brim
            if lowest_up == lowest_down == np.inf:
                return number
            frozen = (share < brim if lowest_up != lowest_down else share <= brim).nonzero()[0]
            self._frozen_in[frozen] = number
            weights = self._weights[:, : len(frozen)]
            weights[_ROOM, :, 0] = share[frozen]
            free -= total(self._flows.take(frozen, axis=0) * weights, axis=1)
            room[frozen], count[frozen] = np.inf, _MANY
            _divide(room, count, share)
            number += 1

    def _room_for(self, passes: int) -> None:
        if passes > len(self._brims):
            self._states = np.concatenate([self._states, np.empty_like(self._states)])
            self._brims = np.concatenate([self._brims, np.empty_like(self._brims)])

    def _first_pass_to_redo(self) -> int:
        """Enters the flows that came and went into the remembered passes, as far as these hold.

        A pass holds if no link with such flows was, or would now be, at its brim or below: then the same links freeze
        at the same levels and take the same from the others. The last one's brim is infinite, so it never holds.
        """
        touched = list(self._touched)
        self._touched.clear()
        changes = [self._change.item(link) for link in touched]
        self._change[touched] = 0.0
        if not self._passes:
            return 0
        if len(touched) > _FEW_LINKS:
            return self._first_of_many(np.array(touched), np.array(changes))
        number, links = 0, list(zip(touched, changes, strict=True))
        while self._enter_into(number, links):
            number += 1
        return number

    def _enter_into(self, number: int, links: list[tuple[int, float]]) -> bool:
        """Enters what came and went on some links into one remembered pass; whether it holds."""
        state, brim = self._states[number], self._brims.item(number)
        holds = brim < np.inf
        for link, change in links:
            count, room, before = state.item(_COUNT, link) + change, state.item(_ROOM, link), state.item(_SHARE, link)
            share = (room if room > NOTHING else NOTHING) / count if count else np.inf
            state[_COUNT, link], state[_SHARE, link] = count, share
            holds = holds and before > brim and share > brim
        return holds

    def _first_of_many(self, touched: Ids, change: Floats) -> int:
        """The same for all passes at once."""
        states = self._states[: self._passes, :, touched].transpose(1, 0, 2)
        before = states[_SHARE].copy()
        states[_COUNT] += change
        _divide(*states)
        lowest = np.minimum(before, states[_SHARE]).min(axis=1, initial=np.inf)
        first = int((lowest > self._brims[: self._passes]).argmin())
        self._states[: first + 1, :, touched] = states[:, : first + 1].transpose(1, 0, 2)
        return first


def _divide(room: Floats, count: Floats, share: Floats) -> None:
    """What each free flow of a link would get; infinite where there is none."""
    np.maximum(room, NOTHING, out=share)
    np.divide(share, count, out=share)
