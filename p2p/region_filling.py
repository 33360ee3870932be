"""Max-min fair rates in a part of the network: some links, and all flows on them.

What lies outside keeps its rates. A flow that is held back by a link outside goes no faster than now; any other may go
as fast as the region lets it, and whoever asks looks afterwards whether the links outside can take that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from p2p.flow_lines import FASTEST, Flow
from p2p.progressive_filling import UPLINK, max_min_rates

_MANY = 60
"""From so many flows on arrays are faster."""


class Pace(NamedTuple):
    """A flow's new rate, and the link that holds it back."""

    rate: float
    holder: int


Paces = dict[Flow, Pace]


def fill_region(region: Mapping[int, Sequence[Flow]], capacity: Sequence[float]) -> Paces:
    """The rates of all flows on the links of a region, given by link.

    Where both links hold a flow back equally, its uplink is named.
    """
    if len(region) == 1:
        ((link, alone),) = region.items()
        return _fill_link(link, alone, capacity[link])
    flows = dict.fromkeys(flow for those in region.values() for flow in those)
    if len(flows) > _MANY:
        return _fill_with_arrays(list(flows), region, capacity)
    return _fill_one_by_one(flows, region, capacity)


def _fill_link(link: int, flows: Sequence[Flow], room: float) -> Paces:
    """The same for one link: whoever is held back elsewhere below its share leaves the rest to the others."""
    held = [flow for flow in flows if flow.line.holder >= 0 and flow.line.holder != link]
    count, paces = len(flows), {}
    for flow in sorted(held, key=_rate_and_number):
        if flow.line.rate > max(room, 0.0) / count:
            break
        paces[flow] = Pace(flow.line.rate, flow.line.holder)
        room -= flow.line.rate
        count -= 1
    if count:
        rest = Pace(min(max(room, 0.0) / count, FASTEST), link)
        for flow in flows:
            paces.setdefault(flow, rest)
    return paces


def _rate_and_number(flow: Flow) -> tuple[float, int]:
    return flow.line.rate, flow.number


def _fill_one_by_one(flows: dict[Flow, None], region: Mapping[int, Sequence[Flow]], capacity: Sequence[float]) -> Paces:
    room = {link: capacity[link] for link in region}
    count = {link: len(those) for link, those in region.items()}
    caps = sorted([flow for flow in flows if _is_held_outside(flow, region)], key=_rate_and_number, reverse=True)
    paces: Paces = {}

    def freeze(flow: Flow, rate: float, holder: int) -> None:
        paces[flow] = Pace(rate, holder)
        for link in flow.links:
            if link in room:
                room[link] -= rate
                count[link] -= 1

    while len(paces) < len(flows):
        shares = {link: max(room[link], 0.0) / number for link, number in count.items() if number}
        lowest = min(shares.values())
        if caps and caps[-1].line.rate <= lowest:
            flow = caps.pop()
            if flow not in paces:
                freeze(flow, flow.line.rate, flow.line.holder)
            continue
        brim = {link for link, share in shares.items() if share == lowest}
        for link in sorted(brim):
            for flow in region[link]:
                if flow not in paces:
                    freeze(flow, min(lowest, FASTEST), flow.up if flow.up in brim else flow.down)
    return paces


def _is_held_outside(flow: Flow, region: Mapping[int, object]) -> bool:
    return flow.line.holder >= 0 and flow.line.holder not in region


def _fill_with_arrays(flows: Sequence[Flow], region: Mapping[int, Sequence[Flow]], capacity: Sequence[float]) -> Paces:
    """The same. A link outside is one of the flow's own, with just the capacity that the flow has of it."""
    place = {link: number for number, link in enumerate(region)}
    ends: list[tuple[int, int]] = []
    caps = [capacity[link] for link in region]
    for flow in flows:
        pair = []
        for link in flow.links:
            where = place.get(link)
            if where is None:
                where = len(caps)
                caps.append(flow.line.rate if flow.line.holder == link else np.inf)
            pair.append(where)
        ends.append((pair[0], pair[1]))
    up, down = np.array(ends).T
    limits = np.array(caps)
    rates, bottleneck = max_min_rates(up, down, limits, limits)
    rates = np.minimum(rates, FASTEST)
    held = np.where(bottleneck == UPLINK, 0, 1).tolist()
    return {flow: Pace(rate, flow.links[which]) for flow, rate, which in zip(flows, rates.tolist(), held, strict=True)}
