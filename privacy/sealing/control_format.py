"""Control messages between the proxy and other nodes: their fields, encoding, and sizes without encoding.

A scenario without sealing distributes no keys: `keyed=False` omits them from joins and assignments.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

KEY_BYTES = 32
_FIXED: dict[str, tuple[int, struct.Struct]] = {
    "register": (1, struct.Struct("<B32s")),  # initial address
    "invite": (2, struct.Struct("<Bd")),  # seconds the invitation stays open
    "join": (3, struct.Struct("<B32s")),  # one-time public key
    "decline": (4, struct.Struct("<BB")),  # code of the reason
    "turned_away": (5, struct.Struct("<B")),  # willing, not chosen
    "done": (6, struct.Struct("<BI")),  # which model it has, whether it skipped, and the epoch, packed
    "close": (7, struct.Struct("<B")),
    "fetch": (8, struct.Struct("<B")),  # asks for the first model, or for the final one
    "commit": (9, struct.Struct("<BI32s")),  # epoch, and SHA-256 of the model
    "verdict": (10, struct.Struct("<BId")),  # epoch, and until when the leader may act on it; 0 refuses
}
_NAMES = {code: name for name, (code, _) in _FIXED.items()}
_ASSIGNMENT = 16  # lower codes are for messages of fixed length
_ASSIGNMENT_HEAD = struct.Struct("<BB32sddII")
_EDGE = struct.Struct("<II")

LEADS, BARRIER, KEYED = 1, 2, 4
"""Flags of an assignment: the member leads; `start_s` is a common sending time; entries contain keys."""
SEND_TO, RECEIVE_FROM, LEADER, HAND_OVER = 1, 2, 4, 8
"""Flags of a neighbour: the direction of updates, whether it leads, whether it needs the model handed over."""


@cache  # asked for every control message
def control_size(what: str, keyed: bool = True) -> int:
    """Returns the payload bytes of a control message of fixed length."""
    size = _FIXED[what][1].size
    return size - KEY_BYTES if what == "join" and not keyed else size


def encode_control(what: str, *fields: Any) -> bytes:
    """Encodes a control message of fixed length; a join may have an empty key."""
    code, layout = _FIXED[what]
    if what == "join" and fields == (b"",):
        return bytes([code])
    return layout.pack(code, *fields)


def decode_control(data: bytes) -> tuple[str, tuple[Any, ...]]:
    """Decodes a control message into its name and its fields."""
    what = _NAMES[data[0]]
    if what == "join" and len(data) == 1:
        return what, (b"",)
    return what, _FIXED[what][1].unpack(data)[1:]


class Entry(NamedTuple):
    """One neighbour (or, if the whole graph is disclosed, one member): its address, key and flags."""

    address: bytes
    public_key: bytes
    flags: int = 0


@dataclass(frozen=True, slots=True)
class WireAssignment:
    """The proxy's message to a member at the start of a round.

    Attributes:
        own_address: the receiver's own address in this round
        deadline_s: seconds from receipt until the aggregation
        start_s: the time to send at, if `BARRIER` is among the flags
        entries: the neighbours, or all members if the whole graph is disclosed
        edges: the graph as pairs of indices into `entries`; empty unless disclosed
    """

    own_address: bytes
    deadline_s: float
    entries: Sequence[Entry]
    start_s: float = 0.0
    flags: int = 0
    edges: Sequence[tuple[int, int]] = ()

    def encode(self) -> bytes:
        """Returns the payload's bytes; keys are omitted if no entry has one."""
        keyed = any(entry.public_key for entry in self.entries)
        flags = self.flags | (KEYED if keyed else 0)
        counts = (len(self.entries), len(self.edges))
        head = _ASSIGNMENT_HEAD.pack(_ASSIGNMENT, flags, self.own_address, self.deadline_s, self.start_s, *counts)
        layout = _entry_layout(keyed)
        entries = [layout.pack(*(entry if keyed else (entry.address, entry.flags))) for entry in self.entries]
        return b"".join([head, *entries, *(_EDGE.pack(*edge) for edge in self.edges)])


@cache
def assignment_size(neighbours: int, edges: int = 0, keyed: bool = True) -> int:
    """Returns the payload bytes of an assignment with this many entries and edges."""
    return _ASSIGNMENT_HEAD.size + neighbours * _entry_layout(keyed).size + edges * _EDGE.size


def decode_assignment(data: bytes) -> WireAssignment:
    """Decodes the bytes of `Assignment.encode`."""
    _, flags, own_address, deadline_s, start_s, count, edges = _ASSIGNMENT_HEAD.unpack_from(data)
    keyed = bool(flags & KEYED)
    layout = _entry_layout(keyed)
    middle = _ASSIGNMENT_HEAD.size + count * layout.size
    rows = layout.iter_unpack(data[_ASSIGNMENT_HEAD.size : middle])
    entries = [Entry(*row) if keyed else Entry(row[0], b"", row[1]) for row in rows]
    pairs = [(first, second) for first, second in _EDGE.iter_unpack(data[middle : middle + edges * _EDGE.size])]
    return WireAssignment(own_address, deadline_s, entries, start_s, flags & ~KEYED, pairs)


def _entry_layout(keyed: bool) -> struct.Struct:
    return struct.Struct("<32s32sB" if keyed else "<32sB")
