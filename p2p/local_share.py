"""Max-min fair sharing among many nodes: what starts or ends changes rates only where that can be felt.

A change is felt on the links it touches, and from there over links that hold flows back or would be overfull. Rates are
filled anew in that region and stay as they are elsewhere, so among a million nodes a change costs what it costs among a
dozen. The rules are those of `FairShare` (p2p/fair.py), which fills everything anew and suits few nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from operator import attrgetter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from p2p.fair import Finished
from p2p.flow_lines import NO_HOLDER, Flow, Line
from p2p.progressive_filling import NO_LINK
from p2p.region_filling import Paces, fill_region
from p2p.sharing import TOGETHER

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

_SAME = 1e-12
"""Rates that differ by less than this share are the same but for rounding."""
_ROOM = 1 - 1e-9
"""A link that is filled to the last bit is looked at more closely."""
_MANY = 1000
_CALLS, _ARRAYS = 70, 30
"""Filling everything costs as much as filling so many flows here, and one more for so many flows or nodes."""


class Ground(Protocol):
    """Flows whose ends are known as long as nobody comes near; each becomes a `Flow` when its link is looked at."""

    def numbers_on(self, link: int) -> Iterable[int]:
        """What the flows on a link are called, whether they have ended or not."""

    def flow(self, number: int) -> Flow:
        """One of them."""

    def is_tight(self, link: int) -> bool:
        """Whether a link that nobody has looked at may hold a flow back."""

    def load(self, link: int) -> float:
        """The most that comes over a link that nobody has looked at."""


class LocalShare:
    """Transfers under way over max-min fairly shared uplinks and downlinks; see `FairShare` for what it guarantees.

    The uplink of node i is link i, its downlink is link nodes + i. One more node, unlimited, stands at the end: the
    receiver of what never reaches a downlink.

    Attributes:
        changed: if it is watched: flows that are to end at other times than before, until somebody takes them out
        regret: how many flows were filled more than filling everything would have been worth
    """

    def __init__(self, up: Floats, down: Floats, ground: Ground | None = None, *, watched: bool = False) -> None:
        self._nodes = len(up) + 1
        self._capacity: list[float] = np.concatenate([up, [np.inf], down, [np.inf]]).tolist()
        self._ground = ground
        self._links: dict[int, dict[Flow, None]] = {}
        self._flows: dict[int, Flow] = {}
        self._taken_up: set[int] = set()
        self._ends: list[tuple[float, int, int, Flow]] = []
        self._order = count()
        self._extra: dict[int, float] = {}
        self._bounds: list[tuple[float, int, Flow]] = []
        self._felt: dict[int, None] = {}
        self._now_s = self._filled_s = -np.inf
        self._due_s = np.inf
        self._before: list[tuple[Flow, Line]] = []
        self._felt_before: dict[int, None] = {}
        self._ended: list[tuple[int, float, int]] = []
        self._is_watched, self.changed = watched, dict[Flow, None]()
        self.regret, self._scanned = 0.0, 0

    def start(self, time_s: float, ids: Ids, src: Ids, dst: Ids, sizes: Floats) -> None:
        """Begins transfers now. `dst` -1: uses the sender's uplink alone (a message that will be lost)."""
        self._run_to(time_s)
        nodes, capacity = self._nodes, self._capacity
        new = zip(ids.tolist(), (src % nodes).tolist(), (nodes + dst % nodes).tolist(), sizes.tolist(), strict=True)
        many = len(ids) > _MANY
        for number, up, down, size in new:
            if size <= 0 or capacity[up] == capacity[down] == np.inf:
                self._ended.append((number, time_s, NO_LINK))
                continue
            self._change(time_s)
            flow = Flow(number, up, down, time_s, Line(size, time_s, 0.0, NO_HOLDER, 0.0, np.inf))
            self._add(flow)
            self._felt[up if capacity[up] < np.inf else down] = None
            if many and capacity[down] < np.inf:
                self._felt[down] = None

    def join(self, time_s: float, ids: Ids, src: Ids, dst: Ids, lines: Floats, by_up: NDArray[np.bool_]) -> None:
        """Takes in transfers that did not meet anybody until now, each with its line so far (see `Motion.lines`)."""
        self._run_to(time_s)
        self._change(time_s)
        nodes = self._nodes
        names = zip(ids.tolist(), (src % nodes).tolist(), (nodes + dst % nodes).tolist(), by_up.tolist(), strict=True)
        for (number, up, down, held_up), line in zip(names, lines.T.tolist(), strict=True):
            started_s, left, since_s, rate, by_up_s, finish_s = line
            known = Line(left, since_s, rate, up if held_up else down, by_up_s, finish_s)
            flow = Flow(number, up, down, started_s, known)
            self._add(flow)
            self._felt |= {link: None for link in (up, down) if self._capacity[link] < np.inf}
            heappush(self._ends, (finish_s, next(self._order), flow.version, flow))

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
        found = [self._flows.get(number) for number in ids.tolist()]
        unsent = [0.0 if flow is None else flow.left_at(time_s) for flow in found]
        for flow in found:
            if flow is not None:
                self._remove(flow)
        return np.array(unsent)

    def set_capacity(self, time_s: float, node: int, up: float, down: float) -> None:
        """Gives a node other links from now on."""
        self._run_to(time_s)
        self._change(time_s)
        for link, capacity in ((node, up), (self._nodes + node, down)):
            if capacity == self._capacity[link]:
                continue
            if self._capacity[link] == np.inf:
                self._links[link] = {flow: None for flow in self._flows.values() if link in flow.links}
            self._capacity[link] = capacity
            self._felt[link] = None
        self._bind()

    def next_event_s(self) -> float:
        """When to call `advance` next: the next end as things stand; infinity if none."""
        if self._due_s <= self._now_s:
            self._fill()
        return min(self._next_end(), self._due_s, self._now_s if self._ended else np.inf)

    def run_to_turn(self, time_s: float) -> bool:
        """Lets time pass, but not beyond the first filling after which somebody is to end at another time; if any."""
        while not self.changed:
            end_s = self._next_end()
            if self._due_s < min(end_s, time_s) or self._due_s <= self._now_s:
                self._fill()
            elif end_s < time_s:
                self._end(end_s)
            else:
                return False
        return True

    def soonest_s(self) -> float:
        """Before this nothing under way can end, whatever else starts; costs no filling."""
        bounds, now_s = self._bounds, self._now_s
        while bounds and (bounds[0][0] <= now_s or self._flows.get(bounds[0][2].number) is not bounds[0][2]):
            flow = heappop(bounds)[2]
            if self._flows.get(flow.number) is flow:
                bound_s = self._bound(flow)
                if bound_s <= now_s:
                    return now_s
                heappush(bounds, (bound_s, next(self._order), flow))
        waiting_s = now_s if self._ended else np.inf
        return min(waiting_s, bounds[0][0] if bounds else np.inf)

    def advance(self, time_s: float) -> Finished:
        """What has ended up to and including now and was not told yet, by time, then by number."""
        self._run_to(time_s)
        ended, self._ended = self._ended, []
        numbers, times_s, held = zip(*ended, strict=True) if ended else ((), (), ())
        return Finished(np.array(numbers, dtype=np.int64), np.array(times_s), np.array(held, dtype=np.int8))

    def hand_over(self) -> tuple[Ids, Ids, Ids, Floats, NDArray[np.bool_]]:
        """Everything under way as `FairShare.join` takes it; nothing is left here."""
        flows, self._flows = list(self._flows.values()), {}
        names = np.array([(flow.number, flow.up, flow.down - self._nodes) for flow in flows], dtype=np.int64)
        lines = np.array([(flow.started_s, *flow.line) for flow in flows], dtype=np.float64).reshape(-1, 7)
        by_up = np.array([flow.line.holder == flow.up for flow in flows], dtype=np.bool_)
        return *names.reshape(-1, 3).T, np.delete(lines, 4, axis=1).T, by_up

    def _add(self, flow: Flow) -> None:
        """Takes a flow in. An unlimited link is felt by nobody, so nobody asks who is on it."""
        self._flows[flow.number] = flow
        for link in flow.links:
            if self._capacity[link] < np.inf or link in self._links:
                self._on(link)[flow] = None
        heappush(self._bounds, (self._bound(flow), next(self._order), flow))
        if len(self._bounds) > 2 * len(self._flows) + _MANY:
            self._bind()

    def _bind(self) -> None:
        """Finds all bounds anew."""
        self._bounds = [(self._bound(flow), next(self._order), flow) for flow in self._flows.values()]
        heapify(self._bounds)

    def _bound(self, flow: Flow) -> float:
        """No sooner can it end."""
        fastest = min(self._capacity[flow.up], self._capacity[flow.down])
        return self._now_s + flow.left_at(self._now_s) / fastest if fastest else np.inf

    def _on(self, link: int) -> dict[Flow, None]:
        """The flows on a link; what lies on the ground there is taken up when somebody looks for the first time."""
        flows = self._links.get(link)
        if flows is not None:
            return flows
        self._links[link] = flows = {}
        self._extra.pop(link, None)
        for number in self._ground.numbers_on(link) if self._ground else ():
            flow = self._flows.get(number) or self._take_up(number)
            if flow is not None:
                flows[flow] = None
        return flows

    def _take_up(self, number: int) -> Flow | None:
        """A flow from the ground, unless it has ended."""
        if self._ground is None or number in self._taken_up:
            return None
        flow = self._ground.flow(number)
        if flow.line.finish_s <= self._now_s:
            return None
        self._taken_up.add(number)
        self._flows[number] = flow
        heappush(self._ends, (flow.line.finish_s, next(self._order), flow.version, flow))
        return flow

    def _remove(self, flow: Flow) -> None:
        """Takes a flow out; its links are felt if they hold others back."""
        del self._flows[flow.number]
        for link in flow.links:
            others = self._links.get(link)
            if others is None:
                continue
            others.pop(flow, None)
            self._scanned += len(others)
            if any(other.line.holder == link for other in others):
                self._felt[link] = None

    def _run_to(self, time_s: float) -> None:
        """All fillings before, and all ends up to, `time_s`. A filling due now waits: more may start."""
        if not time_s >= self._now_s:
            raise ValueError(f"time runs forward: {time_s} comes before {self._now_s}")
        while True:
            end_s = self._next_end()
            if self._due_s < min(end_s, time_s):
                self._fill()
            elif end_s <= time_s and end_s < np.inf:
                self._end(end_s)
            else:
                break
        self._now_s = time_s

    def _next_end(self) -> float:
        ends = self._ends
        while ends:
            end_s, _, version, flow = ends[0]
            if version == flow.version and self._flows.get(flow.number) is flow:
                return end_s
            heappop(ends)
        return np.inf

    def _end(self, time_s: float) -> None:
        """The next end, and those with it."""
        self._now_s, self._before = time_s, []
        until_s = time_s + TOGETHER * abs(time_s)
        ended = []
        while self._next_end() <= until_s:
            ended.append(heappop(self._ends)[3])
        for flow in sorted(ended, key=attrgetter("number")):
            self._ended.append((flow.number, time_s, flow.held_by(flow.line.finish_s)))
            self._remove(flow)
        if self._felt:
            self._due_s = time_s

    def _change(self, time_s: float) -> None:
        """Prepares for something new at this instant: takes a filling of the same instant back."""
        self._due_s = time_s
        if self._before and self._filled_s == time_s:
            for flow, line in self._before:
                self._turn(flow, line)
            self._felt |= self._felt_before
        self._before = []

    def _fill(self) -> None:
        """New rates, from the instant that is due, wherever a change is felt."""
        time_s, self._due_s = self._due_s, np.inf
        self._now_s = self._filled_s = time_s
        felt, self._felt = self._felt, {}
        self._felt_before, self._before = felt, []
        paces = self._paces(felt)
        worth = _CALLS + (len(self._flows) + self._nodes) / _ARRAYS
        effort, self._scanned = len(paces) + self._scanned / _ARRAYS, 0
        # What starts all at once is filled once: only fillings that are large again and again count for much.
        self.regret = max(self.regret + min(effort - worth, 2 * worth), 0.0)
        for flow, (rate, holder) in paces.items():
            if rate != flow.line.rate or holder != flow.line.holder:
                self._before.append((flow, flow.line))
                self._turn(flow, flow.turned(time_s, rate, holder))

    def _turn(self, flow: Flow, line: Line) -> None:
        """Gives a flow another line."""
        for link in flow.links if self._ground else ():
            if link not in self._links:
                self._extra[link] = self._extra.get(link, 0.0) + line.rate - flow.line.rate
        flow.line = line
        flow.version += 1
        if self._is_watched:
            self.changed[flow] = None
        if line.finish_s < np.inf:
            heappush(self._ends, (line.finish_s, next(self._order), flow.version, flow))

    def _paces(self, felt: Iterable[int]) -> Paces:
        """The new rates where a change is felt on some links: in ever larger regions until nobody else feels it."""
        region = {link: list(self._on(link)) for link in felt}
        while True:
            paces = fill_region({link: flows for link, flows in region.items() if flows}, self._capacity)
            reached = self._reached(region, paces)
            if not reached:
                return paces
            region |= {link: list(self._on(link)) for link in reached}

    def _reached(self, region: dict[int, list[Flow]], paces: Paces) -> list[int]:
        """The links beyond a region that would feel it; rates that stay but for rounding are put back."""
        more: dict[int, float] = {}
        for flow, pace in paces.items():
            rate = flow.line.rate
            if abs(pace.rate - rate) <= _SAME * rate:
                paces[flow] = pace._replace(rate=rate)
                continue
            for link in flow.links:
                if link not in region and self._capacity[link] < np.inf:
                    more[link] = more.get(link, 0.0) + pace.rate - rate
        return [link for link, rate in more.items() if self._feels(link, rate, paces)]

    def _feels(self, link: int, more: float, paces: Paces) -> bool:
        """Whether a link holds somebody back, or could not take so much more."""
        most = self._capacity[link] * _ROOM
        if self._ground is not None and link not in self._links and not self._ground.is_tight(link):
            load = self._ground.load(link) + self._extra.get(link, 0.0)
            if load + max(more, 0.0) <= most:
                return False
        load, flows = 0.0, self._on(link)
        self._scanned += len(flows)
        for flow in flows:
            rate, holder = paces.get(flow) or (flow.line.rate, flow.line.holder)
            if holder == link:
                return True
            load += rate
        return load > most
