"""Max-min fair sharing in time: transfers start, share the access links, and end; exact between events.

Rates change only when a transfer starts or ends, or a capacity changes. In between every byte count is a straight
line, kept as (bytes left at a reference instant, rate). A flow whose rate does not change keeps its line, so its end
does not move by a bit whatever happens elsewhere, nor by how often the caller asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.motion import Motion
from p2p.pair_filling import NOTHING, PairFilling
from p2p.progressive_filling import DOWNLINK, NO_LINK, UPLINK, max_min_rates
from p2p.sharing import TOGETHER

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

PAIRED_NODES = 200
"""Up to so many nodes the filling keeps a matrix of pairs; beyond, on a grid, it works on flows."""
_ROOM = 1 - 1e-9
"""A downlink that is filled to the last bit is looked at more closely."""


def are_few(nodes: int) -> bool:
    """Whether everything is filled anew at each change; among more nodes only what feels it (p2p/local_share.py)."""
    return nodes <= PAIRED_NODES


class Finished(NamedTuple):
    """Transfers whose last byte has left: when, and the link that held them back most of the time."""

    ids: Ids
    finished_s: Floats
    bottleneck: NDArray[np.int8]

    def rows(self) -> list[tuple[int, float, int]]:
        """As (id, finished_s, bottleneck)."""
        return list(zip(self.ids.tolist(), self.finished_s.tolist(), self.bottleneck.tolist(), strict=True))


def joined(some: Sequence[Finished]) -> Finished:
    """One after the other."""
    if not some:
        return Finished(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int8))
    return some[0] if len(some) == 1 else Finished(*(np.concatenate(column) for column in zip(*some, strict=True)))


class FairShare:
    """Transfers under way over max-min fairly shared uplinks and downlinks.

    At one instant, whatever the order of calls: transfers that end there end first and free their links; then
    those that start, are aborted or meet a new capacity count, all in one filling.

    Guarantees:
        Exact up to rounding without `grid_s`. Flows of equal size that start together, with nothing else under way,
        need one filling until something new starts: on a flow's bottleneck nobody is faster, so nobody ends earlier.
        Ends do not depend on how the caller steps through time.

    Args:
        up, down: what each node can send and receive, bytes per second; may be infinite or zero.
        grid_s: fill only at multiples of this. A start waits for the next one, and capacity that an end frees lies idle
            until then: each start is less than `grid_s` late (see `grid_costs`), and nobody ever exceeds a link.
    """

    def __init__(self, up: Floats, down: Floats, grid_s: float | None = None) -> None:
        # One more node, unlimited, at index -1: the receiver of what never reaches a downlink.
        self._up, self._down = np.append(up, np.inf), np.append(down, np.inf)
        self._pairs = PairFilling(self._up, self._down) if are_few(len(up)) else None
        self._grid_s = grid_s
        self._flows = Motion.none()
        self._before: Motion | None = None
        self._now_s = self._filled_s = -np.inf
        self._due_s = self._next_s = np.inf
        self._ended: list[Finished] = []
        self._late_s: list[Floats] = []
        self._idle_bytes = 0.0

    def start(self, time_s: float, ids: Ids, src: Ids, dst: Ids, sizes: Floats) -> None:
        """Begins transfers now. `dst` -1: uses the sender's uplink alone (a message that will be lost)."""
        self._run_to(time_s)
        nodes = len(self._up)
        src, dst, sizes = src % nodes, dst % nodes, np.asarray(sizes, dtype=np.float64)
        free = (sizes <= 0) | ((self._up[src] == np.inf) & (self._down[dst] == np.inf))
        if free.any():
            self._report(ids[free], np.full(int(free.sum()), time_s), np.full(int(free.sum()), NO_LINK, dtype=np.int8))
            ids, src, dst, sizes = ids[~free], src[~free], dst[~free], sizes[~free]
        if not len(ids):
            return
        self._change(time_s)
        self._flows = self._flows.joined(Motion.started(time_s, ids, src, dst, sizes))
        if self._pairs:
            self._pairs.add(src, dst)
        if self._grid_s:
            self._late_s.append(np.full(len(ids), self._due_s - time_s))

    def join(self, time_s: float, ids: Ids, src: Ids, dst: Ids, lines: Floats, by_up: NDArray[np.bool_]) -> None:
        """Takes in transfers that did not meet anybody until now, each with its line so far (see `Motion.lines`)."""
        self._run_to(time_s)
        self._change(time_s)
        nodes = len(self._up)
        src, dst = src % nodes, dst % nodes
        self._flows = self._flows.joined(Motion(np.array([ids, src, dst]), lines, by_up))
        if self._pairs:
            self._pairs.add(src, dst)

    def run_to(self, time_s: float) -> bool:
        """Lets time pass; whether there is something for `advance` to tell."""
        self._run_to(time_s)
        return bool(self._ended)

    def abort(self, time_s: float, ids: Ids) -> Floats:
        """Ends transfers now, frees their links at once, and returns the bytes of each that had not left.

        Zero for those that have finished. Transfers that finish at this instant have finished.
        """
        self._run_to(time_s)
        self._change(time_s)
        slots = self._flows.slots(ids)
        found = slots >= 0
        unsent = np.zeros(len(ids))
        unsent[found] = self._flows.left_at(time_s, slots[found])
        self._remove(slots[found])
        self._next_s = self._flows.next_end()
        return unsent

    def set_capacity(self, time_s: float, node: int, up: float, down: float) -> None:
        """Gives a node other links from now on."""
        self._run_to(time_s)
        self._change(time_s)
        self._up[node], self._down[node] = up, down
        if self._pairs:
            self._pairs.set_capacity(node, up, down)

    def next_event_s(self) -> float:
        """When to call `advance` next: the next end as things stand (or filling, on a grid); infinity if none."""
        if self._due_s <= self._now_s:
            self._fill()
        waiting_s = self._now_s if self._ended else np.inf
        return min(self._next_s, self._due_s, waiting_s)

    def soonest_s(self) -> float:
        """Before this nothing under way can end, whatever else starts; costs no filling."""
        alive = self._flows.alive()
        capacity = np.minimum(self._up[self._flows.src[alive]], self._down[self._flows.dst[alive]])
        with np.errstate(divide="ignore", invalid="ignore"):
            least_s = self._flows.left_at(self._now_s, alive) / capacity
        waiting_s = self._now_s if self._ended else np.inf
        return min(waiting_s, self._now_s + float(np.fmin.reduce(least_s, initial=np.inf)))

    def advance(self, time_s: float) -> Finished:
        """What has ended up to and including now and was not told yet, by time, then in the order of starting."""
        self._run_to(time_s)
        ended, self._ended = self._ended, []
        return joined(ended)

    def forecast(self) -> Finished:
        """When everything under way will end if rates stay as they are; certain if flows are `steady`."""
        self.next_event_s()
        alive = self._flows.alive()
        order = alive[np.argsort(self._flows.finish_s[alive], kind="stable")]
        return Finished(self._flows.ids[order], self._flows.finish_s[order], self._flows.held_by(order))

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not len(self._flows.alive())

    @property
    def steady(self) -> bool:
        """Whether no end will change a rate: flows of equal size that started together."""
        self.next_event_s()
        return self._flows.order is not None

    def grid_costs(self) -> dict[str, float]:
        """What the grid did: how late starts were (mean and most, s), and bytes that idle links could have carried."""
        late = np.concatenate(self._late_s) if self._late_s else np.zeros(1)
        return {"mean_late_s": float(late.mean()), "most_late_s": float(late.max()), "idle_bytes": self._idle_bytes}

    def _run_to(self, time_s: float) -> None:
        """All fillings before, and all ends up to, `time_s`. A filling due now waits: more may start."""
        if not time_s >= self._now_s:
            raise ValueError(f"time runs forward: {time_s} comes before {self._now_s}")
        while True:
            if self._due_s < min(self._next_s, time_s):
                self._fill()
            elif self._next_s <= time_s and self._next_s < np.inf:
                self._end(time_s)
            else:
                break
        self._now_s = time_s

    def _end(self, time_s: float) -> None:
        """The next end, and those with it; or, where ends change no rate, all up to `time_s`."""
        self._before = None
        flows, now_s = self._flows, self._next_s
        if flows.order is not None:
            slots = flows.pop_steady(time_s)
            self._report(flows.ids[slots], flows.finish_s[slots], flows.held_by(slots))
            self._next_s = flows.next_steady()
            return
        slots = np.flatnonzero(flows.finish_s <= now_s + TOGETHER * abs(now_s))
        self._report(flows.ids[slots], np.full(len(slots), now_s), flows.held_by(slots))
        # Where nobody else is held back, everyone who goes on still has the link that holds it: rates stay fair.
        if self._grid_s or self._due_s < np.inf or flows.frees_somebody(slots, len(self._up)):
            self._due_s = self._effective(now_s)
            self._idle_bytes += float(flows.rate[slots].sum()) * (self._due_s - now_s)
        self._remove(slots)
        if not len(self._flows.ids):
            self._due_s = np.inf
        self._next_s = self._flows.next_end()

    def _change(self, time_s: float) -> None:
        """Prepares for something new at this instant: takes a filling of the same instant back."""
        if self._before is not None and self._filled_s == time_s:
            self._flows = self._before
        self._before = None
        gone = self._flows.unsteady()
        if self._pairs and len(gone):
            self._pairs.add(self._flows.src[gone], self._flows.dst[gone], -1.0)
        self._flows.drop(gone)
        self._due_s = self._effective(time_s)
        self._next_s = self._flows.next_end()

    def _remove(self, slots: Ids) -> None:
        if self._pairs:
            self._pairs.add(self._flows.src[slots], self._flows.dst[slots], -1.0)
        self._flows.drop(slots)
        self._flows = self._flows.compact()

    def _fill(self) -> None:
        """New rates for everyone, from the instant that is due."""
        self._before, self._filled_s, self._due_s = self._flows, self._due_s, np.inf
        flows = self._flows
        rate = self._rates_of_uplinks(flows)
        by_up = np.ones(len(flows.ids), dtype=np.bool_)
        if rate is None and self._pairs:
            level = self._pairs.levels()
            up, down = level[flows.src], level[flows.dst + len(self._up)]
            rate, by_up = np.minimum(up, down), up <= down
        elif rate is None:
            alive, rate = flows.alive(), np.zeros(len(flows.ids))
            found = max_min_rates(flows.src[alive], flows.dst[alive], self._up, self._down)
            rate[alive], by_up[alive] = found.rates, found.bottleneck == UPLINK
        self._flows = flows.turned(self._filled_s, rate, by_up)
        self._next_s = self._flows.next_end()

    def _rates_of_uplinks(self, flows: Motion) -> Floats | None:
        """What each flow gets if its uplink is all that holds it back; None if some downlink could not take that.

        Nobody can have more, and on everyone's uplink nobody has: where the downlinks can take it, it is fair.
        """
        going = flows.left < np.inf
        senders, nodes = flows.src[going], len(self._up)
        counts = np.bincount(senders, minlength=nodes)
        with np.errstate(divide="ignore"):
            share = np.maximum(self._up, NOTHING) / counts
        share[share <= NOTHING] = 0.0
        rate: Floats = share[flows.src]
        load = np.bincount(flows.dst[going], weights=rate[going], minlength=nodes)
        return rate if (load <= self._down * _ROOM).all() else None

    def _effective(self, time_s: float) -> float:
        """When a change at `time_s` counts: now, or at the next point of the grid."""
        if not self._grid_s:
            return time_s
        number = np.floor(time_s / self._grid_s)
        while number * self._grid_s < time_s:
            number += 1
        return float(number * self._grid_s)

    def _report(self, ids: Ids, finished_s: Floats, bottleneck: NDArray[np.int8]) -> None:
        self._ended.append(Finished(ids, finished_s, bottleneck))


BOTTLENECKS = {UPLINK: "uplink", DOWNLINK: "downlink", NO_LINK: "latency"}
"""What the codes are called in records."""
