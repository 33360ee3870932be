"""The arrays of the event core, which Python owns and enlarges, and the call into the compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import handle_table, load

_FIRST_SLOTS = 1 << 10
# Ended messages keep their slots until the log is written, when this array is full: with little room they are still in
# the cache then, and the same slots are used again and again.
_FIRST_ENDED = 1 << 13
_LOGGED_AT_ONCE = 1 << 12
# Messages in flight per node for which there is room from the start. The system provides pages on first use, so room
# that is never used costs nothing, while arrays that grow are copied.
_SLOTS_PER_NODE = 8
_MARGIN = 64
# All fields of the state have eight bytes.
_PLACE = {name: place for place, name in enumerate(at.STATE.names or ())}
# The operation and its arguments stand one behind the other, from x to d.
_CALL_AT = 8 * _PLACE["x"]
_NEXT_S, _ENDED, _EVENTS, _UNFILLED = (_PLACE[name] for name in ("next_s", "ended", "events", "unfilled"))
_USED_SLOTS, _FREE_SLOTS, _LISTENING = (_PLACE[name] for name in ("used_slots", "free_slots", "listening"))
TAKEN, RECEIVER = _PLACE["taken"], _PLACE["receiver"]
_ROOM_OF = {name: _PLACE["room_" + name] for name in ("slots", "events", "ended", "passed", "unfilled", "outputs")}
"""Where the state has the length of each array that grows while messages move."""
# Records have no gaps, so that `struct` reads and writes them, in a third of the time of numpy's records.
_read_outputs = Struct("=qqqqiiiiqd").iter_unpack
_write_input = Struct("=qdqqdq").pack_into
_write_call = Struct("=dqqqqq").pack_into


class Memory:
    """The arrays of one run; `call` enters the compiled code, `reserve` makes room before it is needed."""

    __slots__ = (
        *at.ARRAYS,
        "_enter",
        "_input_bytes",
        "_keep",
        "_output_bytes",
        "_state_bytes",
        "h",
        "record",
        "seconds",
        "words",
    )

    if TYPE_CHECKING:
        state: Any
        slots: Any
        links: Any
        nodes: Any
        events: Any
        rounds: Any
        inputs: Any
        outputs: Any
        logged: Any
        delays: Any
        impairments: Any
        fill: Any
        ended: Any
        passed: Any
        unfilled: Any
        flows: Any
        routes: Any
        sessions: Any
        masks: Any
        burst_bad: Any
        burst_change: Any
        record: Any
        seconds: Any

    def __init__(self, nodes: int, rounds: int) -> None:
        from p2p.transport.core.event_core import enter

        slots = _FIRST_SLOTS + _SLOTS_PER_NODE * nodes
        lengths = dict.fromkeys(at.ARRAYS, _FIRST_SLOTS) | {
            **{"state": 1, "nodes": nodes, "links": 2 * nodes, "rounds": rounds},
            **{"ended": _FIRST_ENDED, "logged": _LOGGED_AT_ONCE},
            **{"dirty": 2 * nodes + 1, "region": 2 * nodes + 1, "border": 2 * nodes + 1},
            **{"slots": slots, "flows": slots, "fill": slots + 2 * nodes, "events": 3 * slots + 2 * nodes},
            **{"sessions": nodes, "masks": 1, "impairments": 1, "burst_change": 1, "burst_bad": 1, "routes": 1},
        }
        for name in at.ARRAYS:
            setattr(self, name, np.zeros(lengths[name], dtype=at.DTYPES[name]))
        self._enter: Callable[..., int] = load("event_core", enter)
        self.inputs["route"] = self.inputs["fetch_life"] = -1
        for name in ("head", "tail", "queue_head", "queue_tail"):
            self.links[name] = -1
        for name in (
            "inbox_head",
            "inbox_tail",
            "redirect",
            "wait_topic",
            "call_round",
            "called_round",
            "called_batch",
            "fetch_round",
        ):
            self.nodes[name] = -1
        self.rounds["column"] = -1
        self._bind()
        self.record = self.state[0]
        self.record["nodes"], self.record["free_slot"] = nodes, -1
        self.record["blocked_s"] = np.inf
        self.seconds = memoryview(self.state.view(np.float64))
        """The state as floats, `now_s` first; a memoryview because it is read very often."""
        self._state_bytes = memoryview(self.state).cast("B")
        self.words = memoryview(self.state.view(np.int64))
        """The state as integers."""

    def _bind(self) -> None:
        # Kernels hold addresses, so every array that was replaced must be bound again before the next call.
        self._input_bytes = memoryview(self.inputs).cast("B")
        self._output_bytes = memoryview(self.outputs).cast("B")
        self.h, self._keep = handle_table([getattr(self, name) for name in at.ARRAYS])
        for name in _ROOM_OF:
            self.state["room_" + name][0] = len(getattr(self, name))

    def call(self, operation: int, x: float = 0.0, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
        """One operation of the event core."""
        _write_call(self._state_bytes, _CALL_AT, x, operation, a, b, c, d)
        return self._enter(self.h)

    def next_event_s(self) -> float:
        """Returns a lower bound on the time of the next network event."""
        next_s: float = self.seconds[_NEXT_S]
        return next_s

    def read_outputs(self, count: int) -> Iterator[tuple[Any, ...]]:
        """Yields the first messages of the output buffer."""
        return _read_outputs(self._output_bytes[: count * at.OUTPUT.itemsize])

    def write_input(self, receiver: int, size_bytes: int, overhead: int, delay_s: float, fetch_life: int = -1) -> None:
        """Writes a single message to the input buffer of `send`, without a route."""
        _write_input(self._input_bytes, 0, receiver, size_bytes, overhead, -1, delay_s, fetch_life)

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
        # As raw bytes: numpy copies records field by field, which takes ten times as long.
        new[: len(old)].view(np.uint8)[:] = old.view(np.uint8)
        setattr(self, name, new)
        self._bind()

    def free(self) -> None:
        """Gives the memory of messages and events back at the end of a run; none of them can be read any more."""
        for name in ("slots", "events", "fill", "flows", "ended", "unfilled", "passed", "inputs", "outputs", "delays"):
            setattr(self, name, np.zeros(1, dtype=at.DTYPES[name]))
        for name in ("used_slots", "free_slots", "events", "ended", "unfilled", "passed"):
            self.record[name] = 0
        self.record["free_slot"] = -1
        self._bind()

    def gather_slots(self, slots: Any) -> Any:
        """Copies of some slots, as raw bytes (see `grow`)."""
        return self.slots.view(f"V{at.SLOT.itemsize}")[slots].view(at.SLOT)

    def reserve(self, messages: int) -> None:
        """Makes room for more messages, their events and their ends."""
        words, more = self.words, messages + _MARGIN
        needs = {
            "slots": words[_USED_SLOTS] - words[_FREE_SLOTS] + more,
            # Per message a start, an end and an arrival; per link the end of its first flow.
            "events": words[_EVENTS] + 3 * messages + len(self.links) + _MARGIN,
            "ended": words[_ENDED] + more,
            "unfilled": words[_UNFILLED] + more,
            "passed": int(self.record["passed"]) + more if words[_LISTENING] else 0,
        }
        for name, length in needs.items():
            if length > words[_ROOM_OF[name]]:
                self.grow(name, length)
        # In the worst case all flows are free at once, each with an entry in the solver's heap.
        if len(self.flows) < len(self.slots):
            self.grow("flows", len(self.slots))
            self.grow("fill", len(self.slots) + len(self.links))

    def reserve_inputs(self, count: int) -> None:
        """Makes room in the input buffer of `send`."""
        if len(self.inputs) < count:
            self.grow("inputs", count)
            self.inputs["route"] = self.inputs["fetch_life"] = -1

    def add_mask(self, index: int, mask: Any) -> None:
        """Writes a mask over all nodes into row `index` of the masks."""
        nodes = len(self.nodes)
        self.grow("masks", (index + 1) * nodes)
        self.masks["value"][index * nodes : (index + 1) * nodes] = mask
