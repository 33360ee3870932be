"""The arrays of the event core, which Python owns and enlarges, and the call into the compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import handle_table, load

_FIRST_SLOTS = 1 << 10
_FIRST_ENDED = 1 << 16
_MARGIN = 64
# All fields of the state have eight bytes.
_X, _OPERATION, _A, _B, _C, _D, _ENDED = map(
    list(at.STATE.names or ()).index, ("x", "operation", "a", "b", "c", "d", "ended")
)


class Memory:
    """The arrays of one run; `call` enters the compiled code, `reserve` makes room before it is needed."""

    __slots__ = (*at.ARRAYS, "_enter", "_keep", "h", "record", "seconds", "words")

    if TYPE_CHECKING:
        state: Any
        slots: Any
        links: Any
        nodes: Any
        events: Any
        rounds: Any
        inputs: Any
        outputs: Any
        delays: Any
        impairments: Any
        fill: Any
        ended: Any
        passed: Any
        unfilled: Any
        routes: Any
        sessions: Any
        masks: Any
        burst_bad: Any
        burst_change: Any
        record: Any
        seconds: Any

    def __init__(self, nodes: int, rounds: int) -> None:
        from p2p.transport.core.event_core import enter

        lengths = dict.fromkeys(at.ARRAYS, _FIRST_SLOTS) | {
            **{"state": 1, "nodes": nodes, "links": 2 * nodes, "rounds": rounds, "ended": _FIRST_ENDED},
            **{"dirty": 2 * nodes + 1, "region": 2 * nodes + 1, "border": 2 * nodes + 1},
            **{"fill": 2 * nodes + _FIRST_SLOTS, "events": 2 * nodes + 4 * _FIRST_SLOTS},
            **{"sessions": nodes, "masks": 1, "impairments": 1, "burst_change": 1, "burst_bad": 1, "routes": 1},
        }
        for name in at.ARRAYS:
            setattr(self, name, np.zeros(lengths[name], dtype=at.DTYPES[name]))
        self._enter: Callable[..., int] = load("event_core", enter)
        self.inputs["route"] = -1
        for name in ("head", "tail", "queue_head", "queue_tail"):
            self.links[name] = -1
        for name in ("inbox_head", "inbox_tail", "redirect", "wait_topic"):
            self.nodes[name] = -1
        self.rounds["column"] = -1
        self._bind()
        self.record = self.state[0]
        self.record["nodes"], self.record["free_slot"] = nodes, -1
        self.seconds = memoryview(self.state.view(np.float64))
        """The state as floats, `now_s` first; a memoryview because it is read very often."""
        self.words = memoryview(self.state.view(np.int64))
        """The state as integers."""

    def _bind(self) -> None:
        # Kernels hold addresses, so every array that was replaced must be bound again before the next call.
        self.h, self._keep = handle_table([getattr(self, name) for name in at.ARRAYS])
        for name in ("slots", "events", "ended", "passed", "unfilled"):
            self.state["room_" + name][0] = len(getattr(self, name))

    def call(self, operation: int, x: float = 0.0, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
        """One operation of the event core."""
        words = self.words
        words[_OPERATION], words[_A], words[_B], words[_C], words[_D] = operation, a, b, c, d
        self.seconds[_X] = x
        return self._enter(self.h)

    def next_event_s(self) -> float:
        """Returns a lower bound on the time of the next network event."""
        next_s: float = self.events["time_s"][0] if self.record["events"] else np.inf
        return min(next_s, float(self.record["solve_s"])) if self.record["dirty"] else float(next_s)

    def spare_ended(self) -> int:
        """Returns how many more messages may end before the message log has to be written."""
        return len(self.ended) - self.words[_ENDED]

    def grow(self, name: str, length: int) -> None:
        """Extends an array to at least `length`, with zeros."""
        old = getattr(self, name)
        if len(old) >= length:
            return
        # Growth by half keeps the total cost of copying linear.
        new = np.zeros(max(length, len(old) + (len(old) >> 1)), dtype=old.dtype)
        new[: len(old)] = old
        setattr(self, name, new)
        self._bind()

    def gather_slots(self, slots: Any) -> Any:
        """Copies of some slots. As raw bytes: numpy copies records field by field, which takes ten times as long."""
        return self.slots.view(f"V{at.SLOT.itemsize}")[slots].view(at.SLOT)

    def reserve(self, messages: int) -> None:
        """Makes room for more messages, their events and their ends."""
        used = int(self.record["used_slots"] - self.record["free_slots"]) + messages + _MARGIN
        if used > len(self.slots):
            self.grow("slots", used)
            # In the worst case all flows are free at once, each with an entry in the solver's heap.
            self.grow("flows", len(self.slots))
            self.grow("fill", len(self.slots) + len(self.links))
        # Per message a start, an end and an arrival; per link the end of its first flow.
        self.grow("events", int(self.record["events"]) + 3 * messages + len(self.links) + _MARGIN)
        self.grow("ended", int(self.record["ended"]) + messages + _MARGIN)
        self.grow("unfilled", int(self.record["unfilled"]) + messages + _MARGIN)
        if self.record["listening"]:
            self.grow("passed", int(self.record["passed"]) + messages + _MARGIN)

    def reserve_inputs(self, count: int) -> None:
        """Makes room in the input buffer of `send`."""
        if len(self.inputs) < count:
            self.grow("inputs", count)
            self.inputs["route"] = -1

    def add_mask(self, index: int, mask: Any) -> None:
        """Writes a mask over all nodes into row `index` of the masks."""
        nodes = len(self.nodes)
        self.grow("masks", (index + 1) * nodes)
        self.masks["value"][index * nodes : (index + 1) * nodes] = mask
