"""The columns of observations, and the codes in them."""

from __future__ import annotations

from p2p.log.records import KINDS

UNKNOWN = -1
IN, OUT = 0, 1
DIRECTIONS = ("in", "out")
MEMBER = len(KINDS)
"""Code of the proxy's own rows: a member of a round's cohort with its address."""
OBSERVED_KINDS = (*KINDS, "member")

COLUMNS: dict[str, str] = {
    "round": "i4",
    "at_s": "f8",
    "by": "i4",
    "direction": "i1",
    "kind": "i1",
    "size_bytes": "i8",
    "other": "i4",
    "identity": "i4",
    "vector": "i4",
}
"""Columns of observations beside the pseudonym (`sender`), which is 32 bytes; UNKNOWN where the position tells nothing.

`by`: the observer's own node that saw it, or the node whose access link is tapped. `other`: the other end of a link,
where routing shows it. `identity`: the true sender, for the proxy only. `vector`: the row of the tensor `round-N`, N
being the row's round, that holds the content; UNKNOWN if it is no vector, unreadable or not kept.
"""
ADDRESS_BYTES = 32
