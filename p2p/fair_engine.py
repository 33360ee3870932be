"""The engine of `fair` sharing: a share for bytes that compete, a heap for what has left or will leave alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import ClassVar

import numpy as np

from p2p.any_share import share_of
from p2p.fair import BOTTLENECKS, Ids
from p2p.parcels import Wave
from p2p.progressive_filling import DOWNLINK, NO_LINK, UPLINK
from p2p.sharing import Arrive, Rates, Transfer
from p2p.uplinks import Going, Uplinks

Line = tuple[tuple[float, float, float, float, float, float], bool]
"""A transfer's line so far (see `Motion.lines`), and whether its uplink held it back."""


class FairEngine:
    """Transfers share the links max-min fairly; a message arrives its latency after its last byte has left.

    What is handed over at one instant is collected and enters in one filling, however many calls bring it; until
    then `next_s` tells a moment before which nothing can end, so a caller may be woken for nothing, never too late.

    A transfer that has its limited links to itself needs no filling: its end is known at once. If another comes to
    one of its links before that, both enter the sharing, as they would have from the start. The same holds for whole
    waves that share nothing but their sender's uplink (see `Uplinks`); these are not transfers until somebody comes.
    """

    in_turn: ClassVar[bool] = False

    def __init__(self, up: Rates, down: Rates, grid_s: float | None = None) -> None:
        self._share = share_of(up, down, grid_s)
        self.on_grid = grid_s is not None
        self._up, self._down = up.tolist(), down.tolist()
        self._uplinks = Uplinks(self._up, down)
        self._under_way: dict[int, Transfer] = {}
        self._waiting: list[Transfer] = []
        self._joining: list[tuple[Transfer, Line]] = []
        self._waiting_s = -np.inf
        # Nothing that waits or shares can have left before the first, nor anything have arrived before the second.
        self._soonest_s = self._bound_s = np.inf
        # What arrives before this can be told without letting bytes leave first.
        self._no_leave_before_s = np.inf
        self._arriving: list[tuple[float, int, int, int, int, Transfer, str]] = []
        # Of each link: how many transfers share it, and who was last to have it alone.
        self._sharing_up, self._sharing_down = [0] * len(up), [0] * len(down)
        self._alone_up: dict[int, Transfer] = {}
        self._alone_down: dict[int, Transfer] = {}
        self._shortest_s = np.inf

    def start(self, now_s: float, transfers: Sequence[Transfer]) -> None:
        """Takes transfers handed over now."""
        self._catch_up(now_s)
        if self._uplinks.last_s > now_s:
            self._clear_the_way(now_s, transfers)
        for transfer in transfers:
            transfer.started_s = now_s
        if self.on_grid or (len(transfers) > 1 and self._up[transfers[0].src] < np.inf):
            self._start_sharing(now_s, transfers)
            return
        for transfer in transfers:
            if not self._start_alone(now_s, transfer):
                self._start_sharing(now_s, [transfer])

    def carry(self, now_s: float, wave: Wave) -> bool:
        """Takes a wave whose messages will meet no others, except at their sender's; says when they will have left."""
        return not self.on_grid and not self._meets(now_s, wave) and self._uplinks.carry(now_s, wave)

    def ground(self, now_s: float, waves: Sequence[tuple[Wave, Sequence[int]]]) -> None:
        """What is still under way of all waves it carries becomes transfers, as if it always had been."""
        self._catch_up(now_s)
        self._join(now_s, self._uplinks.let_go(now_s, self._uplinks.senders(now_s)))
        for wave, flying in waves:
            if wave.lefts is not None or wave.left_s <= now_s:
                self._go_on_alone(now_s, wave, flying)
        self._uplinks.clear()

    def next_s(self) -> float:
        """When to work next: no ending comes before."""
        return self._bound_s

    def _find_bound(self) -> float:
        arriving = self._arriving
        while arriving and not _holds(arriving[0]):
            heappop(arriving)
        left_s = self._next_leave_s()
        return min(left_s, arriving[0][0]) if arriving else left_s

    def under_way(self) -> Iterable[Transfer]:
        """What has not ended yet."""
        arriving = [entry[5] for entry in self._arriving if _holds(entry)]
        joining = [transfer for transfer, _ in self._joining]
        return [*self._waiting, *joining, *self._under_way.values(), *arriving]

    def work(self, limit: Callable[[], float], arrive: Arrive) -> None:
        """Lets bytes leave and messages arrive (or have left, if they were cut) up to the limit."""
        arriving = self._arriving
        while True:
            if arriving and arriving[0][0] < self._no_leave_before_s:
                if arriving[0][0] > limit():
                    break
                time_s, dst, src, _, version, transfer, bottleneck = heappop(arriving)
                if version == transfer.version and transfer.started_s < np.inf:
                    if self._alone_up.get(src) is transfer:
                        del self._alone_up[src]
                    if self._alone_down.get(dst) is transfer:
                        del self._alone_down[dst]
                    arrive(time_s, transfer, bottleneck)
            elif not self._let_leave(limit()):
                break
        self._bound_s = self._find_bound()

    def _let_leave(self, limit_s: float) -> bool:
        """Lets bytes leave, up to where the next thing may arrive; whether there was anything to do by the limit."""
        next_s, arrives_s = self._next_leave_s(), self._arriving[0][0] if self._arriving else np.inf
        if arrives_s < next_s:
            self._no_leave_before_s = next_s
            return arrives_s <= limit_s
        if next_s > limit_s or next_s == np.inf:
            return False
        self._enter()
        # What leaves from `next_s` on arrives no earlier than the shortest latency after it.
        self._share_to(min(next_s + self._shortest_s, limit_s, arrives_s))
        self._no_leave_before_s = self._next_leave_s()
        return True

    def _next_leave_s(self) -> float:
        """Before this nothing that shares links has left, as things stand."""
        if self._waiting or self._joining:
            return self._soonest_s
        return self._share.next_event_s() if self._under_way else np.inf

    def abort(self, now_s: float, transfers: Sequence[Transfer]) -> list[float]:
        """Ends transfers at once and frees their links; the bytes of each that had left."""
        self._catch_up(now_s)
        for transfer in transfers:
            self._give_up_solitude(now_s, transfer)
        self._enter()
        self._share_to(now_s)
        self._no_leave_before_s = -np.inf
        unsent = self._share.abort(now_s, np.array([transfer.row for transfer in transfers], dtype=np.int64))
        for transfer in transfers:
            if self._under_way.pop(transfer.row, None) is not None:
                self._count(transfer, -1)
            transfer.started_s = np.inf
        self._bound_s = self._find_bound()
        return [transfer.size_bytes - left for transfer, left in zip(transfers, unsent.tolist(), strict=True)]

    def set_capacity(self, now_s: float, node: int, up: float, down: float) -> None:
        """Changes a node's links for everything under way, from now on."""
        self._catch_up(now_s)
        for transfer in [*self._alone_up.values(), *self._alone_down.values()]:
            if node in (transfer.src, transfer.dst):
                self._give_up_solitude(now_s, transfer)
        self._enter()
        self._share_to(now_s)
        self._no_leave_before_s = -np.inf
        self._up[node], self._down[node] = up, down
        self._soonest_s = -np.inf
        self._share.set_capacity(now_s, node, up, down)
        self._uplinks.set_capacity(node, down)
        self._bound_s = self._find_bound()

    def _meets(self, now_s: float, wave: Wave) -> bool:
        """Whether a transfer is under way on a link of a wave."""
        if not (self._waiting or self._joining or self._under_way or self._alone_up or self._alone_down):
            return False
        up, down = self._sharing_up, self._sharing_down
        if up[wave.sender] or _is_on(self._alone_up.get(wave.sender), now_s):
            return True
        return any(down[node] or _is_on(self._alone_down.get(node), now_s) for node in wave.receivers)

    def _clear_the_way(self, now_s: float, transfers: Sequence[Transfer]) -> None:
        """Waves that transfers will meet become transfers as well, and those that these meet then."""
        room, up = self._uplinks.make_room, self._up
        senders = {t.src for t in transfers if self._uplinks.holds(now_s, t.src)}
        tight = {t.dst for t in transfers if not t.cut and not room(now_s, t.dst, up[t.src])}
        while senders or tight:
            for wave in self._uplinks.falling_on(now_s, tight):
                wave.ground(now_s)
                self._go_on_alone(now_s, wave, wave.flying(now_s))
            senders |= set(self._uplinks.senders_to(now_s, tight))
            going = self._uplinks.let_go(now_s, sorted(senders))
            self._join(now_s, going)
            self._uplinks.nothing_comes_to(tight)
            ends = [(one.wave.sender, node) for one in going for node in one.wave.receivers]
            senders, tight = set(), {node for sender, node in ends if not room(now_s, node, up[sender])}

    def _join(self, now_s: float, going: Sequence[Going]) -> None:
        """Waves that were leaving enter the sharing, each message with the line it has followed."""
        if going:
            self._wait(now_s)
        for wave, left, since_s, rate in going:
            wave.ground(now_s)
            line = (wave.sent_s, left, since_s, rate, since_s - wave.sent_s, since_s + left / rate), True
            for transfer in _transfers(wave, range(len(wave.receivers))):
                transfer.left_s = np.inf
                self._count(transfer, 1)
                self._joining.append((transfer, line))
            self._shortest_s = min(self._shortest_s, *wave.latencies)
            soonest_s = since_s + left / self._up[wave.sender]
            self._soonest_s = min(self._soonest_s, soonest_s if soonest_s > now_s else now_s)
            self._bound_s = min(self._bound_s, self._soonest_s)

    def _go_on_alone(self, now_s: float, wave: Wave, flying: Sequence[int]) -> None:
        """Messages of a wave that have left, or come over downlinks of their own, go on as transfers."""
        for transfer in _transfers(wave, flying):
            held = UPLINK
            if wave.lefts is not None:
                transfer.left_s = wave.lefts[transfer.row - wave.row]
                held = DOWNLINK if transfer.left_s > wave.sent_s else NO_LINK
            if transfer.left_s > now_s:
                self._alone_down[transfer.dst] = transfer
            self._foretell(transfer, held)

    def _catch_up(self, now_s: float) -> None:
        """What was collected at an earlier instant enters, and what has left since is on its way."""
        if now_s > self._waiting_s and (self._waiting or self._joining or self._under_way):
            self._enter()
            self._share_to(now_s)

    def _start_alone(self, now_s: float, transfer: Transfer) -> bool:
        """Foretells the arrival of a transfer if nobody else is on its limited links."""
        src, dst = transfer.src, transfer.dst
        up, down = self._up[src], np.inf if transfer.cut else self._down[dst]
        if up < np.inf and (self._sharing_up[src] or _is_on(self._alone_up.get(src), now_s)):
            return False
        if down < np.inf and (self._sharing_down[dst] or _is_on(self._alone_down.get(dst), now_s)):
            return False
        rate = up if up <= down else down
        if rate <= 0 or transfer.size_bytes <= 0:
            return False
        transfer.left_s = now_s + transfer.size_bytes / rate
        if up < np.inf:
            self._alone_up[src] = transfer
        if down < np.inf:
            self._alone_down[dst] = transfer
        self._foretell(transfer, NO_LINK if rate == np.inf else UPLINK if up <= down else DOWNLINK)
        return True

    def _start_sharing(self, now_s: float, transfers: Sequence[Transfer]) -> None:
        """Lets transfers compete, together with whoever had one of their links alone until now."""
        up, down, alone_up, alone_down = self._up, self._down, self._alone_up, self._alone_down
        self._wait(now_s)
        soonest_s, shortest_s = self._soonest_s, self._shortest_s
        for transfer in transfers:
            src, dst, cut = transfer.src, transfer.dst, transfer.cut
            if (other := alone_up.get(src)) is not None and other.left_s > now_s and up[src] < np.inf:
                self._give_up_solitude(now_s, other)
            rate, latency_s = up[src], 0.0
            self._sharing_up[src] += 1
            if not cut:
                if (other := alone_down.get(dst)) is not None and other.left_s > now_s and down[dst] < np.inf:
                    self._give_up_solitude(now_s, other)
                self._sharing_down[dst] += 1
                rate, latency_s = (rate if rate < down[dst] else down[dst]), transfer.latency_s
            end_s = now_s + transfer.size_bytes / rate if rate else np.inf
            soonest_s = end_s if end_s < soonest_s else soonest_s
            shortest_s = latency_s if latency_s < shortest_s else shortest_s
        self._soonest_s, self._shortest_s = min(soonest_s, self._soonest_s), min(shortest_s, self._shortest_s)
        self._bound_s = min(self._bound_s, self._soonest_s)
        self._waiting += transfers

    def _wait(self, now_s: float) -> None:
        """Prepares for somebody to enter the sharing as of this instant."""
        self._no_leave_before_s = -np.inf
        if not self._waiting and not self._joining:
            self._waiting_s = now_s
            # Nobody is faster than its links allow: what was found earlier holds, until that instant has come.
            if self._soonest_s <= now_s or not self._under_way:
                self._soonest_s = self._share.soonest_s() if self._under_way else np.inf

    def _give_up_solitude(self, now_s: float, transfer: Transfer) -> None:
        """If a transfer has its links alone, what was foretold of it does not hold any more."""
        links = ((self._alone_up, transfer.src), (self._alone_down, transfer.dst))
        places = [(alone, node) for alone, node in links if alone.get(node) is transfer]
        if not places or not _is_on(transfer, now_s):
            return
        for alone, node in places:
            del alone[node]
        self._wait(now_s)
        self._count(transfer, 1)
        self._shortest_s = min(self._shortest_s, 0.0 if transfer.cut else transfer.latency_s)
        transfer.version += 1
        self._soonest_s = min(self._soonest_s, transfer.left_s)
        up, down = self._up[transfer.src], np.inf if transfer.cut else self._down[transfer.dst]
        started_s, rate = transfer.started_s, min(up, down)
        line = (started_s, transfer.size_bytes, started_s, rate, 0.0, transfer.left_s)
        self._joining.append((transfer, (line, up <= down)))
        transfer.left_s = np.inf  # not known any more

    def _count(self, transfer: Transfer, number: int) -> None:
        self._sharing_up[transfer.src] += number
        if not transfer.cut:
            self._sharing_down[transfer.dst] += number

    def _enter(self) -> None:
        """Hands what was collected to the sharing, as of the instant at which it came."""
        if self._joining:
            joining, self._joining = self._joining, []
            transfers = [transfer for transfer, _ in joining]
            lines = np.array([line for _, (line, _) in joining]).T
            by_up = np.array([by_up for _, (_, by_up) in joining])
            self._share.join(self._waiting_s, *_columns(transfers)[:3], np.ascontiguousarray(lines), by_up)
            self._under_way.update((transfer.row, transfer) for transfer in transfers)
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._share.start(self._waiting_s, *_columns(waiting))
            self._under_way.update((t.row, t) for t in waiting)

    def _share_to(self, now_s: float) -> None:
        """Everything that has left by now is on its way."""
        if not self._share.run_to(now_s):
            return
        pop, up, down = self._under_way.pop, self._sharing_up, self._sharing_down
        for row, left_s, held in self._share.advance(now_s).rows():
            transfer = pop(row)
            transfer.left_s = left_s
            up[transfer.src] -= 1
            if not transfer.cut:
                down[transfer.dst] -= 1
            self._foretell(transfer, held)

    def _foretell(self, transfer: Transfer, held: int) -> None:
        end_s = transfer.left_s if transfer.cut else transfer.left_s + transfer.latency_s
        if end_s < self._bound_s:
            self._bound_s = end_s
        key = (end_s, transfer.dst, transfer.src, transfer.row, transfer.version)
        heappush(self._arriving, (*key, transfer, BOTTLENECKS[held]))


def _transfers(wave: Wave, indices: Iterable[int]) -> list[Transfer]:
    """Messages of a wave as transfers of their own."""
    row, src, size_bytes, sent_s = wave.row, wave.sender, wave.size_bytes, wave.sent_s
    receivers, latencies, left_s, cut = wave.receivers, wave.latencies, wave.left_s, wave.cut
    return [
        Transfer(
            *(row + index, src, receivers[index], size_bytes, latencies[index], index in cut, sent_s),
            started_s=sent_s,
            left_s=left_s,
            content=wave,
        )
        for index in indices
    ]


def _holds(entry: tuple[float, int, int, int, int, Transfer, str]) -> bool:
    """Whether what was foretold has neither been aborted nor changed since."""
    return entry[5].started_s < np.inf and entry[4] == entry[5].version


def _is_on(transfer: Transfer | None, now_s: float) -> bool:
    """Whether a transfer that had its links alone still uses them."""
    return transfer is not None and transfer.left_s > now_s and transfer.started_s < np.inf


def _columns(transfers: Sequence[Transfer]) -> tuple[Ids, Ids, Ids, Rates]:
    """Rows, senders, receivers (-1 for a message that will not get there) and sizes."""
    count = len(transfers)
    return (
        np.fromiter((t.row for t in transfers), np.int64, count),
        np.fromiter((t.src for t in transfers), np.int64, count),
        np.fromiter((-1 if t.cut else t.dst for t in transfers), np.int64, count),
        np.fromiter((t.size_bytes for t in transfers), np.float64, count),
    )
