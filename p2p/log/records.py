"""The schema of a run's records: the columns of its tables and the categories behind their codes.

Categories are stored as small codes (indices into the tuples below) to keep tables of millions of rows small.
"""

from __future__ import annotations

KINDS = ("control", "bootstrap", "update", "model", "handover", "share", "correction", "collect")
OUTCOMES = ("in_flight", "delivered", "lost", "rejected")
REASONS = (
    "",
    # why lost
    "random",
    "burst",
    "partition",
    "sender_down",
    "receiver_down",
    # why rejected
    "unknown_address",
    "stale_round",
    "replay",
    "corrupt",
    "not_neighbour",
)
BOTTLENECKS = ("", "uplink", "downlink", "latency")
SPANS = ("invite", "train", "share", "send", "wait", "aggregate", "broadcast", "idle", "down")
WHATS = ("absence", "missing", "dropout")
ABSENCES = ("budget", "offline", "declined")
MISSING = ("crashed", "partitioned", "rejected", "lost", "late")
UNCONNECTED = "unconnected"  # a member to whom the round's graph gives no one to send to
DROPOUT_REASONS = (*ABSENCES, *MISSING, UNCONNECTED)

KIND = {word: code for code, word in enumerate(KINDS)}
OUTCOME = {word: code for code, word in enumerate(OUTCOMES)}
REASON = {word: code for code, word in enumerate(REASONS)}
SPAN = {word: code for code, word in enumerate(SPANS)}
WHAT = {word: code for code, word in enumerate(WHATS)}
DROPOUT_REASON = {word: code for code, word in enumerate(DROPOUT_REASONS)}

NO_NODE = -1  # "none" in columns of nodes and of rows

MESSAGES = {
    "kind": "i1",
    "round": "i4",
    "sender": "i4",
    "receiver": "i4",
    "size_bytes": "i8",
    "overhead_bytes": "i8",
    "attempt": "i2",
    "sent_s": "f8",
    "left_s": "f8",
    "arrived_s": "f8",
    "outcome": "i1",
    "reason": "i1",
    "bottleneck": "i1",
    "left_bytes": "i8",
    "used": "?",
    "origin": "i4",
    "destination": "i4",
    "previous": "i8",
}
"""`left_s`: time the last byte left the uplink; `left_bytes`: bytes sent when the message ended; `used`: its content
was used by the receiver.

Over relays a message has one row per hop: `origin` and `destination` are its true ends on every hop, and `previous` is
the row of the previous hop, or NO_NODE. Without relays they are the sender, the receiver and NO_NODE.
"""

SPAN_COLUMNS = {"node": "i4", "round": "i4", "name": "i1", "start_s": "f8", "end_s": "f8"}
DROPOUT_COLUMNS = {"round": "i4", "node": "i4", "aggregator": "i4", "what": "i1", "reason": "i1", "at_s": "f8"}
GRAPH_COLUMNS = {"round": "i4", "sender": "i4", "receiver": "i4"}
PRIVACY_COLUMNS = {
    "round": "i4",
    "node": "i4",
    "release": "i4",
    "noise_std": "f8",
    "mu2": "f8",
    "published": "f8",
    "rigorous": "f8",
    "budget_left": "f8",
    "trainings": "i4",
    "record": "f8",
}
"""`budget_left`: fraction of the client's rounds or mu^2 left after the release; NaN without a budget. `rigorous` is
about the whole client. `record` is the epsilon of one of its records after so many `trainings`; NaN (and 0) where
records are not protected one by one."""
AGGREGATION_COLUMNS = {"round": "i4", "aggregator": "i4", "contributor": "i4", "at_s": "f8", "void": "?"}
"""`void`: a leader averaged and was not allowed to make the result the round's model; no node has it."""

WORDS = {
    "messages": {"kind": KINDS, "outcome": OUTCOMES, "reason": REASONS, "bottleneck": BOTTLENECKS},
    "spans": {"name": SPANS},
    "dropouts": {"what": WHATS, "reason": DROPOUT_REASONS},
}
"""For each table, the columns that hold codes and their categories."""
