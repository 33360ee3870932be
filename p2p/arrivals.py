"""When given flows arrive under each model of sharing: pure functions, the reference for the engines of a run.

What the models mean is fixed in the design ("The network, exactly"); each is written here as it reads there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2p.any_share import share_of

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

SHARING_MODELS = ("ideal", "fifo", "fair")


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """Messages, in the order of sending: `size_bytes` from `src` to `dst`, handed over at `start_s`."""

    src: Ids
    dst: Ids
    size_bytes: Floats
    start_s: Floats


def arrivals(
    sharing: str, up: Floats, down: Floats, latency_s: Floats | float, flows: Flows, grid_s: float | None = None
) -> Floats:
    """When each flow has arrived; infinity if a link of no capacity is in its way.

    Args:
        sharing: one of SHARING_MODELS
        up, down: bytes per second of each node, may be infinite
        latency_s: from each node (row) to each node (column), or one for all
        grid_s: for `fair`: a time grid, see FairShare
    """
    delay_s = np.broadcast_to(np.asarray(latency_s, dtype=np.float64), (len(up), len(up)))[flows.src, flows.dst]
    if sharing == "ideal":
        return _ideal(up, down, delay_s, flows)
    if sharing == "fifo":
        return _fifo(up, down, delay_s, flows)
    if sharing == "fair":
        return _fair(up, down, delay_s, flows, grid_s)
    raise ValueError(f"sharing must be one of {', '.join(SHARING_MODELS)}, not {sharing}")


def _ideal(up: Floats, down: Floats, delay_s: Floats, flows: Flows) -> Floats:
    """At t + S / min(U, D) + L: nobody waits for anybody."""
    rate = np.minimum(up[flows.src], down[flows.dst])
    return flows.start_s + _seconds(flows.size_bytes, rate) + delay_s


def _fifo(up: Floats, down: Floats, delay_s: Floats, flows: Flows) -> Floats:
    """Whole messages one after the other on uplinks (a to b), and in order of first bytes on downlinks (from c)."""
    sends_s = _seconds(flows.size_bytes, up[flows.src])
    begins_s = np.empty(len(flows.src))
    free_s = np.full(len(up), -np.inf)
    for flow in np.argsort(flows.start_s, kind="stable"):
        node = flows.src[flow]
        begins_s[flow] = max(flows.start_s[flow], free_s[node])
        free_s[node] = begins_s[flow] + sends_s[flow]
    return _served(down, begins_s + delay_s, begins_s + sends_s + delay_s, flows)


def _served(down: Floats, first_byte_s: Floats, last_byte_s: Floats, flows: Flows) -> Floats:
    """Arrival at max(last byte, c + S / D); the downlink is free again at c + S / D. Ties: by sender, then sending."""
    takes_s = _seconds(flows.size_bytes, down[flows.dst])
    arrived_s = np.empty(len(flows.src))
    free_s = np.full(len(down), -np.inf)
    for flow in np.lexsort((flows.start_s, flows.src, first_byte_s)):  # stable: then in the order given
        node = flows.dst[flow]
        free_s[node] = max(first_byte_s[flow], free_s[node]) + takes_s[flow]
        arrived_s[flow] = max(last_byte_s[flow], free_s[node])
    return arrived_s


def _fair(up: Floats, down: Floats, delay_s: Floats, flows: Flows, grid_s: float | None) -> Floats:
    """The latency after the last byte has left."""
    engine = share_of(up, down, grid_s)
    order = np.argsort(flows.start_s, kind="stable")
    moments, firsts = np.unique(flows.start_s[order], return_index=True)
    for moment, ids in zip(moments.tolist(), np.split(order, firsts)[1:], strict=True):
        engine.start(moment, ids, flows.src[ids], flows.dst[ids], flows.size_bytes[ids])
    left_s = np.full(len(flows.src), np.inf)
    while (next_s := engine.next_event_s()) < np.inf:
        ended = engine.advance(next_s if grid_s else np.finfo(np.float64).max)
        left_s[ended.ids] = ended.finished_s
        if not grid_s:
            break
    return left_s + delay_s


def _seconds(size_bytes: Floats, rate: Floats) -> Floats:
    """Nothing takes no time, on any link."""
    return np.divide(size_bytes, rate, out=np.where(size_bytes > 0, np.inf, 0.0), where=(size_bytes > 0) & (rate > 0))
