"""The engine of `fair` sharing: FairShare for the bytes, a heap for what has left and is still on its way."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from p2p.fair import BOTTLENECKS, FairShare
from p2p.sharing import Ended, Rates, Transfer


class FairEngine:
    """Transfers share the links max-min fairly; a message arrives its latency after its last byte has left.

    What is handed over at one instant is collected and enters in one filling, however many calls bring it; until
    then `next_s` tells a moment before which nothing can end, so a caller may be woken for nothing, never too late.
    """

    def __init__(self, up: Rates, down: Rates, grid_s: float | None = None) -> None:
        self._share = FairShare(up, down, grid_s)
        self._up, self._down = up.tolist(), down.tolist()
        self._under_way: dict[int, Transfer] = {}
        self._waiting: list[Transfer] = []
        self._waiting_s = -np.inf
        self._soonest_s = np.inf
        self._arriving: list[tuple[float, int, int, int, Transfer, str]] = []
        self._order = 0

    def start(self, now_s: float, transfers: Sequence[Transfer]) -> None:
        """Takes transfers handed over now."""
        if now_s > self._waiting_s or not self._waiting:
            self._enter()
            self._share_to(now_s)
            self._waiting_s, self._soonest_s = now_s, self._share.soonest_s()
        for transfer in transfers:
            self._order += 1
            transfer.order, transfer.started_s = self._order, now_s
            rate = self._up[transfer.src] if transfer.cut else min(self._up[transfer.src], self._down[transfer.dst])
            least_s = transfer.size_bytes / rate if rate else np.inf
            self._soonest_s = min(self._soonest_s, now_s + least_s)
        self._waiting += transfers

    def run_ahead(self, limit_s: float) -> None:
        """Lets bytes leave, as far as the next arrival or the limit."""
        while limit_s > self._waiting_s:
            next_s = self.next_s()
            if next_s >= limit_s or (self._arriving and self._arriving[0][0] <= next_s):
                return
            self._enter()
            self._share_to(next_s)

    def next_s(self) -> float:
        """When to advance next: no ending comes before."""
        while self._arriving and self._arriving[0][4].started_s == np.inf:  # aborted since
            heappop(self._arriving)
        left_s = self._soonest_s if self._waiting else self._share.next_event_s()
        return min(left_s, self._arriving[0][0]) if self._arriving else left_s

    def advance(self, now_s: float) -> list[Ended]:
        """What has arrived by now, or has left if it was cut."""
        self._enter()
        self._share_to(now_s)
        ended = []
        while self._arriving and self._arriving[0][0] <= now_s:
            time_s, _, _, _, transfer, held = heappop(self._arriving)
            if transfer.started_s < np.inf:  # not aborted since
                ended.append(Ended(time_s, transfer, held))
        return ended

    def abort(self, now_s: float, transfers: Sequence[Transfer]) -> list[float]:
        """Ends transfers at once and frees their links; the bytes of each that had left."""
        self._enter()
        self._share_to(now_s)
        unsent = self._share.abort(now_s, np.array([transfer.row for transfer in transfers], dtype=np.int64))
        for transfer in transfers:
            self._under_way.pop(transfer.row, None)
            transfer.started_s = np.inf
        return [transfer.size_bytes - left for transfer, left in zip(transfers, unsent.tolist(), strict=True)]

    def set_capacity(self, now_s: float, node: int, up: float, down: float) -> None:
        """Changes a node's links for everything under way, from now on."""
        self._enter()
        self._share_to(now_s)
        self._up[node], self._down[node] = up, down
        self._share.set_capacity(now_s, node, up, down)

    def _enter(self) -> None:
        """Hands what was collected to the sharing, as of the instant at which it came."""
        if not self._waiting:
            return
        columns = [(t.row, t.src, -1 if t.cut else t.dst) for t in self._waiting]
        rows, src, dst = np.array(columns, dtype=np.int64).T
        sizes = np.array([t.size_bytes for t in self._waiting], dtype=np.float64)
        self._share.start(self._waiting_s, rows, src, dst, sizes)
        self._under_way.update((t.row, t) for t in self._waiting)
        self._waiting = []

    def _share_to(self, now_s: float) -> None:
        """Everything that has left by now is on its way."""
        for row, left_s, held in self._share.advance(now_s).rows():
            transfer = self._under_way.pop(row)
            transfer.left_s = left_s
            end_s = left_s if transfer.cut else left_s + transfer.latency_s
            key = (end_s, transfer.dst, transfer.src, transfer.order)
            heappush(self._arriving, (*key, transfer, BOTTLENECKS[held]))
