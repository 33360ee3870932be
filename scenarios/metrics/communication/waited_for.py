"""Whom a node was waiting for when a timer ended its wait: a message that did not come in time, or its sender."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log

_TOLERANCE_S = 1e-9
_LOST, _DELIVERED = records.OUTCOME["lost"], records.OUTCOME["delivered"]
_DOWN = (records.REASON["sender_down"], records.REASON["receiver_down"])
_UPDATE, _MODEL = records.KIND["update"], records.KIND["model"]
# What a node waits for last in a round comes first: a late handover does not explain a wait for the model.
_ORDER = [records.KIND[word] for word in ("model", "update", "share", "correction", "handover", "collect", "bootstrap")]


@dataclass(frozen=True, slots=True)
class Awaited:
    """What did not come in time.

    Attributes:
        what: the kind of a message under way, `resend` for a lost one, `train` for training that had not ended, or
            `nothing`, if the node had sent nothing and was not training.
        node: the node that was waited for.
        row: the row of the message or of the training's span.
        start_s: when that began; None where the node only was waited for.
        link: the link that a message without an outcome was still on.
    """

    what: str
    node: int
    row: int = -1
    start_s: float | None = None
    link: str = ""

    def without_start(self) -> Awaited:
        """Returns the same without a beginning: the node was waited for, and that is all."""
        return replace(self, start_s=None)


class Waits:
    """The messages and edges of one round, asked for what a node lacked at an instant."""

    def __init__(
        self,
        log: Log,
        record: Mapping[str, Any],
        proxy: int,
        rows: NDArray[np.int64],
        useful: NDArray[np.bool_],
        edges: NDArray[np.int64],
    ) -> None:
        self._messages, self._spans, self._proxy = log.messages, log.spans, proxy
        self._round, self._leader = int(record["round"]), int(record.get("leader", records.NO_NODE))
        payload = log.messages["kind"][rows] != records.KIND["control"]
        self._control = rows[~payload]
        # Hops of relays are left out: the first one tells when the message was sent.
        first = log.messages["sender"][rows] == log.messages["origin"][rows]
        self._sent, self._unused = rows[payload & first], rows[payload & first & ~useful]
        self._senders, self._receivers = log.graphs["sender"][edges], log.graphs["receiver"][edges]
        self._resting = self._sorted_spans()

    def began_s(self, node: int, at_s: float) -> float:
        """Returns when the wait of a node that ended at `at_s` had begun; `at_s` if there was none."""
        spans, rows = self._spans, self._resting["wait"]
        rows = rows[(spans["node"][rows] == node) & (np.abs(spans["end_s"][rows] - at_s) <= _TOLERANCE_S)]
        return float(spans["start_s"][rows].min(initial=at_s))

    def _sorted_spans(self) -> dict[str, NDArray[np.int64]]:
        spans = self._spans
        mine = spans["round"] == self._round
        # A node may have gone down in an earlier round and be down still.
        return {
            "wait": np.flatnonzero(mine & (spans["name"] == records.SPAN["wait"])),
            "train": np.flatnonzero(mine & (spans["name"] == records.SPAN["train"])),
            "down": np.flatnonzero(spans["name"] == records.SPAN["down"]),
        }

    def awaited(self, node: int, at_s: float, since_s: float) -> Awaited | None:
        """Returns what `node` still lacked at `at_s`, when a timer ended its wait; None where that is not known."""
        if node == self._proxy:
            return self._owes_a_report(at_s)
        return self._under_way(node, at_s, since_s) or self._unsent(node, at_s)

    def _under_way(self, node: int, at_s: float, since_s: float) -> Awaited | None:
        """Returns the unused message to `node` that was still expected: of the last kind, the latest to come."""
        messages, rows = self._messages, self._unused
        to_node = (messages["destination"][rows] == node) & (messages["sent_s"][rows] < at_s - _TOLERANCE_S)
        rows = rows[to_node]
        # Negated, so that NaN (not arrived) counts as still to come.
        rows = rows[~(messages["arrived_s"][rows] <= since_s)]
        # A rejected message had come: what was wrong with it was not its lateness.
        rows = rows[messages["outcome"][rows] != records.OUTCOME["rejected"]]
        if not len(rows):
            return None
        kinds = [kind for kind in _ORDER if (messages["kind"][rows] == kind).any()]
        rows = rows[messages["kind"][rows] == kinds[0]]
        arrived_s = np.where(messages["outcome"][rows] == _DELIVERED, messages["arrived_s"][rows], np.inf)
        # On a tie the one that was sent last, then the smallest id.
        row = int(rows[np.lexsort((messages["origin"][rows], -messages["sent_s"][rows], -arrived_s))[0]])
        return self._message(row, at_s)

    def _message(self, row: int, at_s: float) -> Awaited:
        messages = self._messages
        # A message that was lost later was under way at this instant.
        lost = messages["outcome"][row] == _LOST and messages["left_s"][row] <= at_s
        if lost and messages["reason"][row] in _DOWN:
            # Cut off with its sender or receiver: that node was waited for, and no link was busy.
            end = "origin" if messages["reason"][row] == records.REASON["sender_down"] else "receiver"
            return Awaited("nothing", int(messages[end][row]), row)
        what = "resend" if lost else records.KINDS[messages["kind"][row]]
        # A message that was cut off, or has not left when the log ends, has no bottleneck: it waits at its sender.
        link = "" if lost else "uplink"
        return Awaited(what, int(messages["origin"][row]), row, float(messages["sent_s"][row]), link)

    def _unsent(self, node: int, at_s: float) -> Awaited | None:
        """Returns a node that should have sent `node` an update or the model and had not begun to."""
        candidates = [*self._expected_updates(node, at_s), *self._expected_models(node, at_s)]
        found = [self._state(other, at_s) for other in candidates]
        # Training that goes on says more than silence does; the training that began last ends last.
        training = [one for one in found if one.what == "train"]
        if training:
            return max(training, key=lambda one: one.start_s or 0.0)
        return found[0] if found else None

    def _expected_updates(self, node: int, at_s: float) -> list[int]:
        expected = np.unique(self._senders[self._receivers == node])
        return [int(other) for other in expected if not self._has_sent(_UPDATE, int(other), node, at_s)]

    def _expected_models(self, node: int, at_s: float) -> list[int]:
        """Returns the leaders that `node` reported to and that had sent it no model."""
        if self._leader == records.NO_NODE or node == self._leader:
            return []
        # Edges of updates lead to the leader, and its model comes back over them.
        leaders = np.unique(self._receivers[self._senders == node])
        return [int(other) for other in leaders if not self._has_sent(_MODEL, int(other), node, at_s)]

    def _has_sent(self, kind: int, sender: int, receiver: int, at_s: float) -> bool:
        messages, rows = self._messages, self._sent
        same = (messages["kind"][rows] == kind) & (messages["origin"][rows] == sender)
        same &= (messages["destination"][rows] == receiver) & (messages["sent_s"][rows] < at_s)
        return bool(same.any())

    def _state(self, node: int, at_s: float) -> Awaited:
        spans = self._spans
        rows = self._resting["train"]
        rows = rows[(spans["node"][rows] == node) & (spans["start_s"][rows] < at_s)]
        rows = rows[spans["end_s"][rows] >= at_s - _TOLERANCE_S]
        if len(rows):
            return Awaited("train", node, int(rows[0]), float(spans["start_s"][rows[0]]))
        return Awaited("nothing", node)

    def _owes_a_report(self, at_s: float) -> Awaited | None:
        """Returns a member that is down and whose report the proxy had not received."""
        messages, rows, spans = self._messages, self._control, self._spans
        down = self._resting["down"]
        down = down[(spans["start_s"][down] < at_s) & (spans["end_s"][down] > at_s - _TOLERANCE_S)]
        for node in np.intersect1d(spans["node"][down], np.concatenate([self._senders, self._receivers])).tolist():
            received_s = messages["arrived_s"][rows[(messages["receiver"][rows] == node)]]
            said = messages["sent_s"][rows[(messages["sender"][rows] == node)]]
            # Its last word came before the last order to it, so its report was still owed.
            if np.nanmax(received_s, initial=-np.inf) >= said.max(initial=-np.inf):
                return Awaited("nothing", int(node))
        return None
