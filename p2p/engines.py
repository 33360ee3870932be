"""The engines of `ideal` and `fifo` sharing: queues on a heap, exact in floating point.

Every sum is formed in one fixed order (start + duration, then + latency), so equal inputs give equal bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import ClassVar

import numpy as np

from p2p.parcels import Wave
from p2p.sharing import Arrive, Rates, Transfer

# What an entry on the fifo engine's heap stands for, in the order in which one instant is worked off: links are
# freed before first bytes are queued, so that all first bytes of an instant are served by sender, then order.
_LEFT, _SERVED, _FIRST_BYTE, _ARRIVED = range(4)


class NoWaves:
    """For engines that look at each message: they carry no waves."""

    in_turn: ClassVar[bool] = False

    def carry(self, now_s: float, wave: Wave) -> bool:
        """Every message of it has to be handed over by itself."""
        return False

    def ground(self, now_s: float, waves: Sequence[tuple[Wave, Sequence[int]]]) -> None:
        """There are none."""


class IdealEngine(NoWaves):
    """Each transfer alone: arrives at t + S/min(U, D) + L."""

    def __init__(self, up: Rates, down: Rates) -> None:
        self._up, self._down = up.tolist(), down.tolist()
        self._heap: list[tuple[float, int, int, int, Transfer]] = []
        self._order = 0

    def start(self, now_s: float, transfers: Sequence[Transfer]) -> None:
        """Takes transfers handed over now."""
        for transfer in transfers:
            rate = self._rate(transfer)
            transfer.started_s = now_s
            transfer.left_s = now_s + transfer.size_bytes / rate
            end_s = transfer.left_s if transfer.cut else transfer.left_s + transfer.latency_s
            self._order += 1
            heappush(self._heap, (end_s, transfer.dst, transfer.src, self._order, transfer))

    def next_s(self) -> float:
        """When the next transfer ends."""
        return self._heap[0][0] if self._heap else np.inf

    def under_way(self) -> Iterable[Transfer]:
        """What has not ended yet."""
        return [entry[4] for entry in self._heap if entry[4].started_s < np.inf]

    def work(self, limit: Callable[[], float], arrive: Arrive) -> None:
        """Tells of the endings up to the limit."""
        heap = self._heap
        while heap and heap[0][0] <= limit():
            time_s, dst, src, _, transfer = heappop(heap)
            if transfer.started_s < np.inf:
                held = "uplink" if transfer.cut or self._up[src] <= self._down[dst] else "downlink"
                arrive(time_s, transfer, held if self._rate(transfer) < np.inf else "latency")

    def _rate(self, transfer: Transfer) -> float:
        up: float = self._up[transfer.src]
        return up if transfer.cut else min(up, self._down[transfer.dst])

    def abort(self, now_s: float, transfers: Sequence[Transfer]) -> list[float]:
        """Ends transfers at once."""
        return [_abandon(transfer, now_s) for transfer in transfers]

    def set_capacity(self, now_s: float, node: int, up: float, down: float) -> None:
        """Holds for transfers handed over from now on."""
        self._up[node], self._down[node] = up, down


class FifoEngine(NoWaves):
    """One queue per uplink and per downlink.

    A message that starts to leave at `a` has left at `b = a + S/U`; its first byte is at the receiver at `a + L`;
    the downlink takes it at `c >= a + L` and is free again at `c + S/D`; it arrives at `max(b + L, c + S/D)`.
    """

    in_turn: ClassVar[bool] = True

    def __init__(self, up: Rates, down: Rates) -> None:
        self._up, self._down = up.tolist(), down.tolist()
        self._uplinks: dict[int, deque[Transfer]] = {}
        self._downlinks: dict[int, deque[Transfer]] = {}
        self._heap: list[tuple[float, int, int, int, Transfer]] = []
        self._started = 0
        self._ended: list[tuple[Transfer, str]] = []

    def start(self, now_s: float, transfers: Sequence[Transfer]) -> None:
        """Takes transfers handed over now; those that find their uplink free begin to leave."""
        for transfer in transfers:
            self._started += 1
            transfer.order = self._started
            if self._up[transfer.src] == np.inf:
                self._begin(transfer, now_s)
                continue
            queue = self._uplinks.setdefault(transfer.src, deque())
            queue.append(transfer)
            if len(queue) == 1:
                self._begin(transfer, now_s)

    def next_s(self) -> float:
        """When the next step of any transfer is due."""
        return self._heap[0][0] if self._heap else np.inf

    def under_way(self) -> Iterable[Transfer]:
        """What has not ended yet."""
        queues = [*self._uplinks.values(), *self._downlinks.values()]
        queued = [transfer for queue in queues for transfer in queue]
        moving = [entry[4] for entry in self._heap if entry[4].started_s < np.inf]
        return {transfer.row: transfer for transfer in [*queued, *moving]}.values()

    def work(self, limit: Callable[[], float], arrive: Arrive) -> None:
        """Works off the steps on the links up to the limit, and tells of the endings of each instant."""
        heap, steps = self._heap, (self._on_left, self._on_served, self._on_first_byte, self._on_arrived)
        limit_s = limit()
        while heap and heap[0][0] <= limit_s:
            time_s = heap[0][0]
            while heap and heap[0][0] == time_s:
                _, step, _, _, transfer = heappop(heap)
                if transfer.started_s < np.inf:  # not aborted since
                    steps[step](transfer, time_s)
            if self._ended:
                ended, self._ended = self._ended, []
                for transfer, held in sorted(ended, key=_by_instant) if len(ended) > 1 else ended:
                    if transfer.started_s < np.inf:
                        arrive(time_s, transfer, held)
                limit_s = limit()

    def abort(self, now_s: float, transfers: Sequence[Transfer]) -> list[float]:
        """Takes transfers out of their queues; whoever waited behind them goes on at once."""
        left = [_abandon(transfer, now_s) for transfer in transfers]
        gone = {id(transfer) for transfer in transfers}
        for node in sorted({transfer.src for transfer in transfers}):
            _withdraw(self._uplinks.get(node), gone, lambda head: self._begin(head, now_s))
        for node in sorted({transfer.dst for transfer in transfers}):
            _withdraw(self._downlinks.get(node), gone, lambda head: self._serve(head, now_s))
        return left

    def set_capacity(self, now_s: float, node: int, up: float, down: float) -> None:
        """Holds for messages that begin to leave, or to be served, from now on."""
        self._up[node], self._down[node] = up, down

    def _begin(self, transfer: Transfer, start_s: float) -> None:
        transfer.started_s = start_s
        transfer.left_s = start_s + transfer.size_bytes / self._up[transfer.src]
        heap, src, order = self._heap, transfer.src, transfer.order
        heappush(heap, (transfer.left_s, _LEFT, src, order, transfer))
        if transfer.cut:
            return
        if self._down[transfer.dst] == np.inf:
            heappush(heap, (transfer.left_s + transfer.latency_s, _ARRIVED, src, order, transfer))
        else:
            heappush(heap, (start_s + transfer.latency_s, _FIRST_BYTE, src, order, transfer))

    def _on_left(self, transfer: Transfer, time_s: float) -> None:
        if transfer.cut:
            self._ended.append((transfer, "uplink"))
        queue = self._uplinks.get(transfer.src)
        if queue and queue[0] is transfer:
            queue.popleft()
            if queue:
                self._begin(queue[0], time_s)

    def _on_first_byte(self, transfer: Transfer, time_s: float) -> None:
        queue = self._downlinks.setdefault(transfer.dst, deque())
        queue.append(transfer)
        if len(queue) == 1:
            self._serve(transfer, time_s)

    def _serve(self, transfer: Transfer, time_s: float) -> None:
        served_s = time_s + transfer.size_bytes / self._down[transfer.dst]
        heap, src, order = self._heap, transfer.src, transfer.order
        arrived_s = max(transfer.left_s + transfer.latency_s, served_s)
        heappush(heap, (served_s, _SERVED, src, order, transfer))
        heappush(heap, (arrived_s, _ARRIVED, src, order, transfer))

    def _on_served(self, transfer: Transfer, time_s: float) -> None:
        queue = self._downlinks[transfer.dst]
        queue.popleft()
        if queue:
            self._serve(queue[0], time_s)

    def _on_arrived(self, transfer: Transfer, time_s: float) -> None:
        by_uplink_s = transfer.left_s + transfer.latency_s
        waited = transfer.left_s > transfer.handed_s
        held = "downlink" if time_s > by_uplink_s else "uplink" if waited else "latency"
        self._ended.append((transfer, held))


def _withdraw(queue: deque[Transfer] | None, gone: set[int], go_on: Callable[[Transfer], None]) -> None:
    """Takes transfers out of a link's queue; if the link was working on one of them, the next in line begins."""
    if not queue:
        return
    idle = id(queue[0]) in gone
    left = [transfer for transfer in queue if id(transfer) not in gone]
    queue.clear()
    queue.extend(left)
    if idle and queue:
        go_on(queue[0])


def _abandon(transfer: Transfer, now_s: float) -> float:
    """Marks a transfer as over and returns the bytes that had left by now."""
    if transfer.started_s > now_s:
        share = 0.0
    elif transfer.left_s <= now_s:
        share = 1.0
    else:
        share = (now_s - transfer.started_s) / (transfer.left_s - transfer.started_s)
    transfer.started_s = np.inf
    return share * transfer.size_bytes


def _by_instant(ended: tuple[Transfer, str]) -> tuple[int, int]:
    return ended[0].dst, ended[0].src
