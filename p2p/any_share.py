"""Fair sharing among many nodes, by whichever way is faster: filling what feels a change, or everything."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from p2p.fair import FairShare, Finished, are_few, joined
from p2p.local_share import LocalShare

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST_REGRET = 5000


class AnyShare:
    """Transfers under way over max-min fairly shared links; see `FairShare` for what is guaranteed.

    Mostly a change is felt by few (`LocalShare`). Where it is felt, again and again, by a great part of what is under
    way (thousands send to one leader), everything is filled anew, until nothing is under way. Which of the two it is
    depends on what starts and when, and on nothing else.
    """

    def __init__(self, up: Floats, down: Floats) -> None:
        self._up, self._down = up.copy(), down.copy()
        self._share: FairShare | LocalShare = LocalShare(up, down)
        self._ended: list[Finished] = []

    def start(self, time_s: float, ids: Ids, src: Ids, dst: Ids, sizes: Floats) -> None:
        """Begins transfers now. `dst` -1: uses the sender's uplink alone (a message that will be lost)."""
        self._choose(time_s)
        self._share.start(time_s, ids, src, dst, sizes)

    def join(self, time_s: float, ids: Ids, src: Ids, dst: Ids, lines: Floats, by_up: NDArray[np.bool_]) -> None:
        """Takes in transfers that did not meet anybody until now, each with its line so far (see `Motion.lines`)."""
        self._share.join(time_s, ids, src, dst, lines, by_up)

    def run_to(self, time_s: float) -> bool:
        """Lets time pass; whether there is something for `advance` to tell."""
        return self._share.run_to(time_s) or bool(self._ended)

    def abort(self, time_s: float, ids: Ids) -> Floats:
        """Ends transfers now, frees their links at once, and returns the bytes of each that had not left."""
        return self._share.abort(time_s, ids)

    def set_capacity(self, time_s: float, node: int, up: float, down: float) -> None:
        """Gives a node other links from now on."""
        self._up[node], self._down[node] = up, down
        self._share.set_capacity(time_s, node, up, down)

    def next_event_s(self) -> float:
        """When to call `advance` next: the next end as things stand; infinity if none."""
        return min([float(some.finished_s.min()) for some in self._ended] + [self._share.next_event_s()])

    def soonest_s(self) -> float:
        """Before this nothing under way can end, whatever else starts; costs no filling."""
        return min([float(some.finished_s.min()) for some in self._ended] + [self._share.soonest_s()])

    def advance(self, time_s: float) -> Finished:
        """What has ended up to and including now and was not told yet, by time."""
        ended, self._ended = [*self._ended, self._share.advance(time_s)], []
        return joined(ended)

    def _choose(self, time_s: float) -> None:
        """Goes over to the other way where that is due; what has ended and was not told yet is kept."""
        share = self._share
        if isinstance(share, LocalShare):
            if share.regret > _MOST_REGRET:
                self._keep(share.advance(time_s))
                self._share = FairShare(self._up, self._down)
                self._share.join(time_s, *share.hand_over())
        elif share.is_idle:
            self._keep(share.advance(time_s))
            self._share = LocalShare(self._up, self._down)

    def _keep(self, ended: Finished) -> None:
        if len(ended.ids):
            self._ended.append(ended)


def share_of(up: Floats, down: Floats, grid_s: float | None = None) -> FairShare | AnyShare:
    """What shares these links; on a time grid, if there is one."""
    return FairShare(up, down, grid_s) if grid_s or are_few(len(up)) else AnyShare(up, down)
