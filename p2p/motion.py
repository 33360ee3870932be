"""The transfers under way, as columns: each a straight line of bytes left over time until its rate changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from p2p.progressive_filling import DOWNLINK, UPLINK

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

_FASTEST = 1e200  # an infinite rate would turn the bytes left of a dropped flow into not-a-number
_FEW = 32


class Motion:
    """One slot per transfer, in the order of starting. A dropped one has infinitely many bytes left and no id.

    Attributes:
        names: ids, senders and receivers, row by row
        lines: started_s, left, since_s, rate, by_up_s and finish_s, row by row
        left: bytes left at `since_s`, from when on the flow runs at `rate`
        by_up: whether the uplink holds it back
        by_up_s: seconds before `since_s` in which it did
        order: slots by end, once ends are known to change no rate; the first `told` of them have ended
    """

    __slots__ = (
        *("by_up", "by_up_s", "dst", "finish_s", "ids", "left", "lines", "names", "order", "rate", "since_s", "src"),
        *("started_s", "told"),
    )

    def __init__(self, names: Ids, lines: Floats, by_up: NDArray[np.bool_]) -> None:
        self.names, self.lines, self.by_up = names, lines, by_up
        self.ids, self.src, self.dst = names
        self.started_s, self.left, self.since_s, self.rate, self.by_up_s, self.finish_s = lines
        self.order: Ids | None = None
        self.told = 0

    @classmethod
    def none(cls) -> Motion:
        """Nothing under way."""
        return cls(np.empty((3, 0), dtype=np.int64), np.empty((6, 0)), np.empty(0, dtype=np.bool_))

    @classmethod
    def started(cls, time_s: float, ids: Ids, src: Ids, dst: Ids, sizes: Floats) -> Motion:
        """Transfers that begin now, still without a rate."""
        new = cls(np.array([ids, src, dst]), np.zeros((6, len(ids))), np.zeros(len(ids), dtype=np.bool_))
        new.started_s[:] = new.since_s[:] = time_s
        new.left[:], new.finish_s[:] = sizes, np.inf
        return new

    def joined(self, other: Motion) -> Motion:
        """These, then the others."""
        if not len(self.ids):
            return other
        names, lines = (np.concatenate([self.names, other.names], axis=1), np.hstack([self.lines, other.lines]))
        return Motion(names, lines, np.concatenate([self.by_up, other.by_up]))

    def alive(self) -> Ids:
        """Slots still under way."""
        alive = self.left < np.inf
        if self.order is not None:
            alive[self.order[: self.told]] = False
        return np.flatnonzero(alive)

    def slots(self, ids: Ids) -> Ids:
        """Where these ids are; -1 for those no longer under way."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        order = np.argsort(self.ids, kind="stable")
        found = order[np.searchsorted(self.ids, ids, sorter=order).clip(max=len(order) - 1)]
        return np.where(self.ids[found] == ids, found, -1)

    def left_at(self, time_s: float, slots: Ids) -> Floats:
        """Bytes that have not left yet."""
        left: Floats = np.maximum(self.left[slots] - self.rate[slots] * (time_s - self.since_s[slots]), 0.0)
        return left

    def held_by(self, slots: Ids) -> NDArray[np.int8]:
        """The link that held each back for at least half of its time, if it goes on as now to its end."""
        finish_s, since_s = self.finish_s[slots], self.since_s[slots]
        by_up_s = self.by_up_s[slots] + np.where(self.by_up[slots], finish_s - since_s, 0.0)
        by_up = 2 * by_up_s >= finish_s - self.started_s[slots]
        return np.where(by_up, UPLINK, DOWNLINK).astype(np.int8)

    def turned(self, time_s: float, rate: Floats, by_up: NDArray[np.bool_]) -> Motion:
        """The same transfers with new rates from now on. Those whose rate stays keep their line, bit for bit."""
        rate = np.minimum(rate, _FASTEST)
        turns = ((rate != self.rate) | (by_up != self.by_up)).nonzero()[0]
        new = Motion(self.names, self.lines.copy(), by_up)
        ran_s = time_s - self.since_s[turns]
        left = np.maximum(self.left[turns] - self.rate[turns] * ran_s, 0.0)
        new.left[turns], new.since_s[turns] = left, time_s
        new.by_up_s[turns] += np.where(self.by_up[turns], ran_s, 0.0)
        new.rate[:] = rate
        with np.errstate(divide="ignore", invalid="ignore"):
            new.finish_s[turns] = time_s + left / rate[turns]
        new.order = new._known_order()
        return new

    def _known_order(self) -> Ids | None:
        """The order of ends, if all have equally much left from one instant on: then no end changes a rate."""
        if not len(self.left) or self.left[0] != self.left[-1] or self.left.min() != self.left.max():
            return None
        if self.since_s.min() != self.since_s.max():
            return None
        return np.argsort(self.finish_s, kind="stable")

    def next_end(self) -> float:
        """When the next transfer ends at these rates."""
        if self.order is not None:
            return self.next_steady()
        return float(self.finish_s.min()) if len(self.finish_s) else np.inf

    def next_steady(self) -> float:
        """The next end in the known order."""
        if self.order is None or self.told == len(self.order):
            return np.inf
        return float(self.finish_s[self.order[self.told]])

    def pop_steady(self, time_s: float) -> Ids:
        """Slots that end up to now, in the known order; they are taken as ended."""
        if self.order is None:
            return np.empty(0, dtype=np.int64)
        upto = int(np.searchsorted(self.finish_s, time_s, side="right", sorter=self.order))
        slots = self.order[self.told : upto]
        self.told = upto
        return slots

    def unsteady(self) -> Ids:
        """Forgets the known order; returns the slots that have ended and are still to be dropped."""
        gone = np.empty(0, dtype=np.int64) if self.order is None else self.order[: self.told]
        self.order, self.told = None, 0
        return gone

    def frees_somebody(self, slots: Ids, nodes: int) -> bool:
        """Whether a link that these transfers use holds back another one, which would be faster without them."""
        going_on = self.left < np.inf
        going_on[slots] = False
        up, down = np.zeros(nodes, dtype=np.bool_), np.zeros(nodes, dtype=np.bool_)
        up[self.src[slots]] = down[self.dst[slots]] = True
        return bool((going_on & np.where(self.by_up, up[self.src], down[self.dst])).any())

    def drop(self, slots: Ids) -> None:
        """Takes transfers out."""
        self.left[slots] = self.finish_s[slots] = np.inf
        self.ids[slots] = -1

    def compact(self) -> Motion:
        """The same without dropped slots, if they are many."""
        alive = np.flatnonzero(self.left < np.inf)
        if len(alive) and len(self.ids) < max(_FEW, 2 * len(alive)):
            return self
        return Motion(self.names[:, alive], self.lines[:, alive], self.by_up[alive])
