"""The formats of control messages between the proxy and other nodes, of which the simulator needs the sizes.

Control messages travel by reference. A scenario without sealing distributes no keys: `keyed=False` omits them from
joins and assignments.
"""

from __future__ import annotations

import struct
from functools import cache

KEY_BYTES = 32
_FIXED = {
    # Each begins with the code of its kind.
    "register": struct.Struct("<B32s"),  # initial address
    "invite": struct.Struct("<Bd"),  # seconds the invitation stays open
    "join": struct.Struct("<B32s"),  # one-time public key
    "decline": struct.Struct("<BB"),  # code of the reason
    "turned_away": struct.Struct("<B"),  # willing, not chosen
    "done": struct.Struct("<BI"),  # which model it has, whether it skipped, and the epoch, packed
    "close": struct.Struct("<B"),
    "fetch": struct.Struct("<B"),  # asks for the first model, or for the final one
    "commit": struct.Struct("<BI32s"),  # epoch, and SHA-256 of the model
    "verdict": struct.Struct("<BId"),  # epoch, and until when the leader may act on it; 0 refuses
}
# Kind and flags (leads, common sending time, keyed), own address, seconds from receipt until the aggregation, sending
# time, and the numbers of entries and edges that follow.
_ASSIGNMENT_HEAD = struct.Struct("<BB32sddII")
# A neighbour (or, if the whole graph is disclosed, a member): address, public key, and flags (direction of updates,
# whether it leads, whether it needs the model handed over).
_ENTRY = struct.Struct("<32s32sB")
# An edge of a disclosed graph: the places of its ends among the entries.
_EDGE = struct.Struct("<II")


@cache  # asked for every control message
def control_size(what: str, keyed: bool = True) -> int:
    """Returns the payload bytes of a control message of fixed length."""
    size = _FIXED[what].size
    # Keys are handed over when joining; no other fixed message has one.
    return size - KEY_BYTES if what == "join" and not keyed else size


@cache
def assignment_size(neighbours: int, edges: int = 0, keyed: bool = True) -> int:
    """Returns the payload bytes of an assignment with this many entries and edges."""
    entry_bytes = _ENTRY.size if keyed else _ENTRY.size - KEY_BYTES
    return _ASSIGNMENT_HEAD.size + neighbours * entry_bytes + edges * _EDGE.size
