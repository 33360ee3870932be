"""The one assertion of fair sharing: the allocation in the core's memory is max-min fair, and its counters agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2p.transport.core import layout as at

CLOSE = 1e-9


def assert_max_min_fair(memory: Any) -> int:
    """Every moving flow has a saturated link on which none is faster; no link carries more than it can.

    `memory` is that of a network (p2p.transport.core.memory.Memory), at an instant with no change waiting to be solved.
    Returns how many flows are moving.
    """
    assert memory.record["dirty"] == 0
    flows: Any = memory.slots[: int(memory.record["used_slots"])]
    flows = flows[flows["state"] == at.MOVING]
    links: Any = memory.links
    up, down = links["capacity"][2 * flows["sender"]], np.full(len(flows), np.inf)
    arrives = (flows["fate"] == 0) & (flows["receiver"] >= 0)
    down[arrives] = links["capacity"][2 * flows["receiver"][arrives] + 1]
    assert (flows["rate"] >= 0).all()
    assert ((up < np.inf) | (down < np.inf)).all(), "a flow without a finite link has left at once"
    used = {int(link): on_link(flows, int(link), arrives) for link in used_links(flows, up, down)}
    for link, members in used.items():
        capacity, rates = links["capacity"][link], flows["rate"][members]
        assert rates.sum() <= capacity * (1 + CLOSE), f"link {link} carries more than it can"
        assert links["count"][link] == members.sum()
        assert links["held"][link] == (flows["holder"][members] == link).sum()
    for place, flow in enumerate(flows):
        # The link that is said to hold a flow is its bottleneck.
        holder = int(flow["holder"])
        assert holder in used, "a moving flow is held by a limited link"
        members = used[holder]
        assert members[place], "a flow is held by a link that it uses"
        rates, capacity = flows["rate"][members], links["capacity"][holder]
        assert abs(rates.sum() - capacity) <= CLOSE * capacity, "the bottleneck is saturated"
        assert rates.max() <= flow["rate"] * (1 + CLOSE), "no flow on the bottleneck is faster"
        assert abs(links["level"][holder] - flow["rate"]) <= CLOSE * flow["rate"]
    return len(flows)


def used_links(flows: Any, up: Any, down: Any) -> set[int]:
    """The limited links that moving flows use."""
    return {*(2 * flows["sender"][up < np.inf]).tolist(), *(2 * flows["receiver"][down < np.inf] + 1).tolist()}


def on_link(flows: Any, link: int, arrives: Any) -> Any:
    """Which flows use a link."""
    return flows["sender"] == link // 2 if link % 2 == 0 else arrives & (flows["receiver"] == link // 2)
