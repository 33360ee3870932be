"""Arrival times of given flows under each sharing model, by the event core without processes and contents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2p.transport.core import event_core as core
from p2p.transport.core import layout as at
from p2p.transport.core.memory import Memory

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

SHARING_MODELS = ("ideal", "fifo", "fair")


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """Flows in the order of sending: `size_bytes` from `src` to `dst`, handed over at `start_s`."""

    src: Ids
    dst: Ids
    size_bytes: Floats
    start_s: Floats


def arrivals(
    sharing: str, up: Floats, down: Floats, latency_s: Floats | float, flows: Flows, grid_s: float | None = None
) -> Floats:
    """Returns the arrival time of each flow; infinity if its path has a link without capacity.

    Args:
        sharing: one of SHARING_MODELS
        up, down: rates of each node in bytes per second, may be infinite
        latency_s: from each node (row) to each node (column), or one value for all
        grid_s: for `fair`: a time grid, see Fair
    """
    if sharing not in SHARING_MODELS:
        raise ValueError(f"sharing must be one of {', '.join(SHARING_MODELS)}, not {sharing}")
    delay_s = np.broadcast_to(np.asarray(latency_s, dtype=np.float64), (len(up), len(up)))[flows.src, flows.dst]
    memory = Memory(len(up), 1)
    memory.links["capacity"][0::2], memory.links["capacity"][1::2] = up, down
    memory.record["sharing"], memory.record["grid_s"] = SHARING_MODELS.index(sharing), grid_s or 0.0
    # One attempt each: without impairments no flow is lost.
    memory.record["tries"] = 1
    memory.nodes["attached"] = 1
    memory.reserve(len(flows.src))
    # As in a run, nodes that start at one instant start in the order of their numbers.
    order = np.lexsort((flows.src, flows.start_s))
    _send_all(memory, order, flows, delay_s)
    _advance(memory, np.inf)
    arrived_s = np.full(len(order), np.inf)
    used = memory.slots[: len(order)]
    done = used["state"] == at.INBOX
    arrived_s[order[used["row"][done]]] = used["arrived_s"][done]
    return arrived_s


def _send_all(memory: Memory, order: Ids, flows: Flows, delay_s: Floats) -> None:
    starts_s, senders = flows.start_s[order], flows.src[order]
    # One call for each run of flows with the same start and sender.
    breaks = np.flatnonzero((np.diff(starts_s) != 0) | (np.diff(senders) != 0)) + 1
    memory.reserve_inputs(len(order))
    for indices in np.split(order, breaks) if len(order) else []:
        count, sender = len(indices), int(flows.src[indices[0]])
        start_s = float(flows.start_s[indices[0]])
        _advance(memory, start_s)
        inputs = memory.inputs[:count]
        inputs["receiver"], inputs["size_bytes"] = flows.dst[indices], flows.size_bytes[indices]
        inputs["delay_s"] = delay_s[indices]
        while memory.call(core.SEND, np.inf, count, sender, 0, 0) == at.NEEDS_ROOM:
            memory.reserve(2 * count)


def _advance(memory: Memory, until_s: float) -> None:
    # Starts have the last rank: everything else of the instant happens before the flows that start then.
    while memory.call(core.ADVANCE, until_s, at.START_RANK << at.RANK_SHIFT) == at.NEEDS_ROOM:
        memory.reserve(len(memory.slots))
