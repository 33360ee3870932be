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
        self._end_s = float(record["end_s"])
        self._round, self._leader = int(record["round"]), int(record.get("leader", records.NO_NODE))
        payload = log.messages["kind"][rows] != records.KIND["control"]
        self._control = rows[~payload]
        # Hops of relays are left out: the first one tells when the message was sent.
        first = log.messages["sender"][rows] == log.messages["origin"][rows]
        self._sent, self._unused = rows[payload & first], rows[payload & first & ~useful]
        # Over relays the last hop tells when a message came.
        last = log.messages["receiver"][rows] == log.messages["destination"][rows]
        self._delivered = rows[payload & last & (log.messages["outcome"][rows] == _DELIVERED)]
        self._senders, self._receivers = log.graphs["sender"][edges], log.graphs["receiver"][edges]
        self._span_rows = self._sorted_spans()

    def began_s(self, node: int, at_s: float) -> float:
        """Returns when the wait of a node that ended at `at_s` had begun; `at_s` if there was none."""
        spans, rows = self._spans, self._span_rows["wait"]
        rows = rows[(spans["node"][rows] == node) & (np.abs(spans["end_s"][rows] - at_s) <= _TOLERANCE_S)]
        return float(spans["start_s"][rows].min(initial=at_s))

    def _sorted_spans(self) -> dict[str, NDArray[np.int64]]:
        spans = self._spans
        mine = spans["round"] == self._round
        # A node may have gone down in an earlier round and be down still.
        return {
            "wait": np.flatnonzero(mine & (spans["name"] == records.SPAN["wait"])),
            "train": np.flatnonzero(mine & (spans["name"] == records.SPAN["train"])),
            "invite": np.flatnonzero(mine & (spans["name"] == records.SPAN["invite"])),
            "idle": np.flatnonzero(mine & (spans["name"] == records.SPAN["idle"])),
            "share": np.flatnonzero(mine & (spans["name"] == records.SPAN["share"])),
            "down": np.flatnonzero(spans["name"] == records.SPAN["down"]),
        }

    def awaited(self, node: int, at_s: float, since_s: float) -> Awaited | None:
        """Returns what `node` still lacked at `at_s`, when a timer ended its wait; None where that is not known."""
        if node == self._proxy:
            # Its other waits are for answers to invitations and probes, and their windows are meant to end.
            return self._owes_a_report(at_s) if at_s >= self._end_s - _TOLERANCE_S else None
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
        rows = rows[~self._came_after_all(rows, node, at_s)]
        if not len(rows):
            return None
        kinds = [kind for kind in _ORDER if (messages["kind"][rows] == kind).any()]
        rows = rows[messages["kind"][rows] == kinds[0]]
        arrived_s = np.where(messages["outcome"][rows] == _DELIVERED, messages["arrived_s"][rows], np.inf)
        # On a tie the one that was sent last, then the smallest id.
        row = int(rows[np.lexsort((messages["origin"][rows], -messages["sent_s"][rows], -arrived_s))[0]])
        return self._message(row, at_s)

    def _came_after_all(self, rows: NDArray[np.int64], node: int, at_s: float) -> NDArray[np.bool_]:
        """Returns which messages to `node` were lost, and came by `at_s` when they were sent again."""
        messages, delivered = self._messages, self._delivered
        came = delivered[messages["destination"][delivered] == node]
        came = came[messages["arrived_s"][came] <= at_s + _TOLERANCE_S]
        lost: NDArray[np.bool_] = messages["outcome"][rows] == _LOST
        return lost & np.isin(self._kind_and_origin(rows), self._kind_and_origin(came))

    def _kind_and_origin(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns one number for each message: kinds and nodes fit in 31 bits."""
        messages = self._messages
        numbers: NDArray[np.int64] = messages["kind"][rows].astype(np.int64) << 32 | messages["origin"][rows]
        return numbers

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
        led_by = self._sent_update_to(node, at_s)
        if led_by is not None:
            # It may lead a later plan of the round; its update has left, so at this instant it waits for the model.
            candidates = [] if self._has_sent(_MODEL, led_by, node, at_s) else [led_by]
        else:
            candidates = [*self._expected_updates(node, at_s), *self._expected_models(node, at_s)]
        found = [self._state(other, at_s) for other in candidates]
        # Training that goes on says more than silence does; the training that began last ends last.
        training = [one for one in found if one.what == "train"]
        if training:
            return max(training, key=lambda one: one.start_s or 0.0)
        return found[0] if found else None

    def _sent_update_to(self, node: int, at_s: float) -> int | None:
        """Returns the leader that a member has sent its update to, the last one if leaders were replaced."""
        if self._leader == records.NO_NODE:
            return None
        messages, rows = self._messages, self._sent
        mine = (messages["kind"][rows] == _UPDATE) & (messages["origin"][rows] == node)
        rows = rows[mine & (messages["sent_s"][rows] < at_s - _TOLERANCE_S)]
        return int(messages["destination"][rows[np.argmax(messages["sent_s"][rows])]]) if len(rows) else None

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
        rows = self._span_rows["train"]
        rows = rows[(spans["node"][rows] == node) & (spans["start_s"][rows] < at_s)]
        if len(rows):
            last = int(rows[np.argmax(spans["end_s"][rows])])
            if spans["end_s"][last] >= at_s - _TOLERANCE_S or self._gave_up(node, float(spans["end_s"][last]), at_s):
                return Awaited("train", node, last, float(spans["start_s"][last]))
        return Awaited("nothing", node)

    def _gave_up(self, node: int, trained_s: float, at_s: float) -> bool:
        """Returns whether a member's training ended without an update, as at its own deadline, and it was still up.

        Members got their orders at different instants, so its deadline may be earlier than that of the node that waits.
        """
        spans = self._spans
        if self._leader != records.NO_NODE and (self._receivers == node).any():
            # A leader keeps its update, also one that was replaced.
            return False
        sent = self._sent[self._messages["kind"][self._sent] == _UPDATE]
        if (self._messages["origin"][sent] == node).any():
            return False
        # It waits for the common instant of sending, exchanges noise shares, or is down.
        rows = np.concatenate([self._span_rows["idle"], self._span_rows["share"], self._span_rows["down"]])
        after = (spans["node"][rows] == node) & (spans["end_s"][rows] > trained_s) & (spans["start_s"][rows] < at_s)
        return not after.any()

    def _owes_a_report(self, at_s: float) -> Awaited | None:
        """Returns a member that has sent nothing since its last order and cannot: it went down, or it has no orders.

        A member that is up again remembers nothing of the round, so its report does not come either.
        """
        messages, rows, spans = self._messages, self._control, self._spans
        rows = rows[messages["sent_s"][rows] < at_s]
        down = self._span_rows["down"]
        for node in np.unique(np.concatenate([self._senders, self._receivers])).tolist():
            orders = rows[messages["destination"][rows] == node]
            said = rows[messages["origin"][rows] == node]
            ordered_s = messages["sent_s"][orders].max(initial=-np.inf)
            if not len(orders) or messages["sent_s"][said].max(initial=-np.inf) > ordered_s:
                continue
            mine = down[spans["node"][down] == node]
            went = (spans["end_s"][mine] > ordered_s) & (spans["start_s"][mine] < at_s)
            # The span of its invitation ends with its first orders.
            if went.any() or not (spans["node"][self._span_rows["invite"]] == node).any():
                return Awaited("nothing", node)
        return None
