"""The textbook models of sharing, slow and obvious: the oracle of the tests. No code is shared with the product.

A case is the rates of the nodes' uplinks and downlinks, a latency for each pair, and flows handed over in the order of
the list. Numbers may be floats or fractions; with fractions every result is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isinf
from typing import Any, NamedTuple

Number = float | Fraction
Link = tuple[str, int]
"""("up", node) or ("down", node)."""


class Flow(NamedTuple):
    """A message; one that is `lost` uses the uplink alone and ends when it has left."""

    src: int
    dst: int
    size: Any
    start_s: Any
    lost: bool = False


class Change(NamedTuple):
    """At an instant, before flows start: a link gets another rate, or flows are aborted."""

    at_s: Any
    link: Link | None = None
    rate: Any = None
    aborted: tuple[int, ...] = ()


@dataclass
class Result:
    """When each flow has left its sender and has arrived, and what had not left of those that were aborted."""

    left_s: list[Any]
    arrived_s: list[Any]
    unsent: dict[int, Any] = field(default_factory=dict)


def over(size: Any, rate: Any) -> Any:
    """The time that some bytes take; none take no time, and over no capacity some take forever."""
    if size == 0:
        return 0
    if isinf(rate):
        return 0
    return inf if rate == 0 else size / rate


def ideal(up: Sequence[Any], down: Sequence[Any], latency_s: Sequence[Sequence[Any]], flows: Sequence[Flow]) -> Result:
    """t + S / min(U, D) + L: no flow waits for another."""
    left_s = [
        flow.start_s + over(flow.size, up[flow.src] if flow.lost else min(up[flow.src], down[flow.dst]))
        for flow in flows
    ]
    return Result(left_s, [left + latency(latency_s, flow) for left, flow in zip(left_s, flows, strict=True)])


def fifo(up: Sequence[Any], down: Sequence[Any], latency_s: Sequence[Sequence[Any]], flows: Sequence[Flow]) -> Result:
    """Uplinks send whole messages in the order of sending; downlinks serve in the order of first bytes."""
    order = sorted(range(len(flows)), key=lambda number: flows[number].start_s)
    begins_s, left_s, free_s = {}, [inf] * len(flows), dict[Link, Any]()
    for number in order:
        src = flows[number].src
        begins_s[number] = (
            max(flows[number].start_s, free_s.get(("up", src), 0)) if not isinf(up[src]) else flows[number].start_s
        )
        left_s[number] = begins_s[number] + over(flows[number].size, up[src])
        free_s["up", src] = left_s[number]
    arrived_s = list(left_s)
    firsts = []
    for place, number in enumerate(order):
        first_s = begins_s[number] + latency(latency_s, flows[number])
        # At one instant, messages that are handed over come after what reaches a downlink at it.
        handed_over = first_s == flows[number].start_s
        if not flows[number].lost:
            firsts.append((first_s, handed_over, flows[number].src, place, number))
    for first_s, _, _, _, number in sorted(firsts):
        flow = flows[number]
        begins_down_s = max(first_s, free_s.get(("down", flow.dst), 0)) if not isinf(down[flow.dst]) else first_s
        served_s = begins_down_s + over(flow.size, down[flow.dst])
        if not isinf(down[flow.dst]):
            free_s["down", flow.dst] = served_s
        arrived_s[number] = max(left_s[number] + latency(latency_s, flow), served_s)
    return Result(left_s, arrived_s)


def fair(
    up: Sequence[Any],
    down: Sequence[Any],
    latency_s: Sequence[Sequence[Any]],
    flows: Sequence[Flow],
    changes: Sequence[Change] = (),
) -> Result:
    """All flows under way share the links max-min fairly; rates are filled from scratch at every start and end."""
    capacity: dict[Link, Any] = {("up", node): rate for node, rate in enumerate(up)}
    capacity |= {("down", node): rate for node, rate in enumerate(down)}
    left: dict[int, Any] = {}
    result = Result([inf] * len(flows), [inf] * len(flows))
    waiting = sorted(range(len(flows)), key=lambda number: flows[number].start_s)
    to_come = sorted(changes, key=lambda change: change.at_s)
    now_s: Any = 0
    while True:
        links = {number: links_of(flows[number]) for number in left}
        rates = fill(links, capacity)
        ends = {number: now_s + over(left[number], rates[number]) for number in left}
        next_s = min(
            [*ends.values(), *(flows[number].start_s for number in waiting[:1]), *(one.at_s for one in to_come[:1])],
            default=inf,
        )
        if next_s == inf:
            return result
        # Floats: what ends within a rounding error of this instant ends now.
        ended = [number for number in left if ends[number] == next_s or is_close(ends[number], next_s)]
        for number in ended:
            result.left_s[number] = next_s
            result.arrived_s[number] = next_s + latency(latency_s, flows[number])
            del left[number]
        for number in left:
            left[number] = max(left[number] - rates[number] * (next_s - now_s), 0 * left[number])
        now_s = next_s
        while to_come and to_come[0].at_s == now_s:
            change = to_come.pop(0)
            if change.link is not None:
                capacity[change.link] = change.rate
            for number in left.keys() & change.aborted:
                result.unsent[number] = left.pop(number)
        while waiting and flows[waiting[0]].start_s == now_s:
            left[waiting[0]] = flows[waiting[0]].size
            waiting.pop(0)


def fill(links: Mapping[int, Sequence[Link]], capacity: Mapping[Link, Any]) -> dict[int, Any]:
    """Progressive filling: again and again the link with the least equal share fixes the rates of its flows."""
    rates: dict[int, Any] = {}
    room = dict(capacity)
    while len(rates) < len(links):
        free = {number: both for number, both in links.items() if number not in rates}
        crowd: dict[Link, int] = {}
        for both in free.values():
            for link in both:
                crowd[link] = crowd.get(link, 0) + 1
        # Infinite rooms stay out: infinity over a fraction's count is no fraction.
        shares = {link: room[link] / count for link, count in crowd.items() if not isinf(room[link])}
        if not shares:
            return rates | dict.fromkeys(free, inf)
        lowest = min(shares, key=lambda link: (shares[link], link))
        for number, both in free.items():
            if lowest in both:
                rates[number] = shares[lowest]
                for link in both:
                    room[link] = max(room[link] - rates[number], 0 * rates[number])
    return rates


def links_of(flow: Flow) -> list[Link]:
    """What a flow uses."""
    return [("up", flow.src)] if flow.lost else [("up", flow.src), ("down", flow.dst)]


def latency(latency_s: Sequence[Sequence[Any]], flow: Flow) -> Any:
    """What is added after the last byte; nothing for a message that never arrives."""
    return 0 if flow.lost else latency_s[flow.src][flow.dst]


def is_close(one: Any, other: Any) -> bool:
    """Whether two floats are the same but for rounding; fractions are exact."""
    return isinstance(one, float) and isinstance(other, float) and one - other <= 1e-13 * other


MODELS = {"ideal": ideal, "fifo": fifo, "fair": fair}
