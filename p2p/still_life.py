"""All updates of an exchange that leave at one instant: the rates of one filling hold to the end of each of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from p2p.flow_lines import Flow, Line
from p2p.foretelling import Floats, Plan
from p2p.progressive_filling import DOWNLINK, UPLINK, max_min_rates


class StillLife:
    """The ground (see `LocalShare`) on which reports disturb updates; these are called by the places of their edges.

    Why the rates hold: on the link that holds a flow back nobody is faster, so nobody there ends earlier.
    """

    def __init__(self, plan: Plan, up: Floats, down: Floats) -> None:
        self._plan, self._nodes = plan, len(up) + 1
        self._src, self._dst = plan.edges.T
        self._start_s, self._size = float(plan.sends_s[0]), float(plan.update.size_bytes)
        self._rates, held = max_min_rates(self._src, self._dst, up, down)
        self.finish_s: Floats = self._start_s + self._size / self._rates
        self.held = held
        by_up, by_down = held == UPLINK, held == DOWNLINK
        self._tight = np.zeros(2 * self._nodes, dtype=np.bool_)
        self._tight[self._src[by_up]] = self._tight[self._nodes + self._dst[by_down]] = True
        ends = np.concatenate([self._src, self._nodes + self._dst])
        self._load = np.bincount(ends, weights=np.tile(self._rates, 2), minlength=2 * self._nodes)
        self._places = np.full(self._nodes, -1)
        self._places[plan.members] = np.arange(len(plan.members))

    def numbers_on(self, link: int) -> Iterable[int]:
        """What the flows on a link are called, whether they have ended or not."""
        degree, place = self._plan.degree, self._places.item(link % self._nodes)
        if place < 0:
            return ()
        if link < self._nodes:
            return range(place * degree, (place + 1) * degree)
        numbers: list[int] = self._plan.by_receiver[place * degree : (place + 1) * degree].tolist()
        return numbers

    def flow(self, number: int) -> Flow:
        """One of them."""
        up, down = self._src.item(number), self._nodes + self._dst.item(number)
        holder = up if self.held.item(number) == UPLINK else down
        rate, end_s, start_s = self._rates.item(number), self.finish_s.item(number), self._start_s
        return Flow(number, up, down, start_s, Line(self._size, start_s, rate, holder, 0.0, end_s))

    def is_tight(self, link: int) -> bool:
        """Whether a link that nobody has looked at may hold a flow back."""
        return bool(self._tight.item(link))

    def load(self, link: int) -> float:
        """The most that comes over a link that nobody has looked at."""
        return float(self._load.item(link))
