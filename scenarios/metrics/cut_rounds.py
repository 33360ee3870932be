"""Why rounds ended at a deadline, and what to change.

A cause is read off the critical paths: the step that a timer cut short says which link, training or node was waited
for. What the run was given (rates, deadlines) comes in as `RunLimits`; without it a sentence does without
those figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.critical_path import RESEND, WAIT, CriticalStep, critical_paths
from scenarios.metrics.communication.roles import Roles, leaders
from scenarios.metrics.findings import Finding, RunLimits
from scenarios.metrics.headline.number_format import bytes_text, seconds_text

MOST_ROUNDS = 500
"""Longer runs are diagnosed by their first rounds: following a path scans the round's messages at every step."""
MOST_MESSAGES = 2_000_000
_WORTH_TELLING = 0.1
"""A cause that took less than this share of all rounds' time is not reported."""
_DEADLINES = {"model": "model_deadline", "handover": "handover_timeout"}


def cut_rounds(log: Log, roles: Roles, limits: RunLimits | None) -> Iterator[Finding]:
    """Groups the steps that timers cut short by their cause, and yields a finding for each cause that matters."""
    groups: dict[tuple[str, str], list[tuple[int, CriticalStep]]] = {}
    total_s, outages, proxy = 0.0, _Outages(log), roles.node("proxy")
    for record, path in critical_paths(log, proxy, diagnosed_rounds(log)):
        total_s += float(record["end_s"]) - float(record["start_s"])
        for step in path:
            if step.cut or _gave_up(step, limits):
                gone = outages.overlap(step.blamed, float(record["start_s"]), step.end_s)
                cause = _cause(step, step.node == proxy, gone)
                groups.setdefault((cause, step.what), []).append((int(record["round"]), step))
    seconds = {cause: sum(step.duration_s for _, step in steps) for cause, steps in groups.items()}
    reported: set[int] = set()
    # Worst first, which also decides whose deadline a round is said to end at.
    for name in sorted(groups, key=lambda name: -seconds[name]):
        if seconds[name] >= _WORTH_TELLING * total_s or _hits_most_rounds(log, name, groups[name]):
            yield _Cut(log, roles, limits, name[0], groups[name]).finding(reported)
            reported |= {number for number, _ in groups[name]}


def diagnosed_rounds(log: Log) -> list[dict[str, Any]]:
    """Returns the rounds whose paths are followed: as many of the first as have not too many messages."""
    if not log.rounds:
        return []
    # Cumulative: following paths costs with all messages so far, whatever round they are of.
    counts = np.cumsum(np.bincount(np.maximum(log.messages["round"], 0), minlength=int(log.rounds[-1]["round"]) + 1))
    return [record for record in log.rounds[:MOST_ROUNDS] if counts[int(record["round"])] <= MOST_MESSAGES]


def _hits_most_rounds(log: Log, cause: tuple[str, str], steps: Sequence[tuple[int, CriticalStep]]) -> bool:
    """Returns whether a link kept updates or models from arriving in half of the rounds, however short the waits."""
    often = 2 * len({number for number, _ in steps}) >= len(diagnosed_rounds(log))
    return often and cause[0] in ("uplink", "downlink") and cause[1] in ("update", "model")


def _gave_up(step: CriticalStep, limits: RunLimits | None) -> bool:
    """Returns whether a member stopped training at its deadline: the step ends there, and no node waited for it."""
    return limits is not None and step.what == "train" and step.duration_s < limits.train_s[step.node] * (1 - 1e-9)


class _Outages:
    """When nodes were down."""

    def __init__(self, log: Log) -> None:
        rows = log.spans["name"] == records.SPAN["down"]
        self._node, self._start_s, self._end_s = (log.spans[name][rows] for name in ("node", "start_s", "end_s"))

    def overlap(self, node: int, since_s: float, until_s: float) -> bool:
        """Returns whether a node was down at any time of an interval."""
        return bool(((self._node == node) & (self._start_s < until_s) & (self._end_s > since_s)).any())


def _cause(step: CriticalStep, of_proxy: bool, was_down: bool) -> str:
    if step.what == WAIT and of_proxy:
        # What the proxy waits for are reports, whose lateness no rule of aggregation changes.
        return "unreported"
    if step.what == WAIT:
        return "gone" if was_down else "silent"
    if step.what in (RESEND, "train"):
        return step.what
    return "downlink" if step.held_back_by == "downlink" else "uplink"


class _Cut:
    """The rounds that one cause held up, told by the worst of them."""

    def __init__(
        self, log: Log, roles: Roles, limits: RunLimits | None, cause: str, steps: Sequence[tuple[int, CriticalStep]]
    ) -> None:
        self._log, self._roles, self._limits, self._cause, self._steps = log, roles, limits, cause, steps
        # A link is told by the round that gave it the least time, anything else by the longest wait.
        worst = min if cause in ("uplink", "downlink") else max
        self._round, self._step = worst(steps, key=lambda pair: pair[1].duration_s)
        count, whole = len({number for number, _ in steps}), len(diagnosed_rounds(log))
        self._which = f"all {whole} rounds" if count == whole > 1 else f"{count} of {whole} rounds"
        if count == 1:
            self._which = f"round {self._round}"
        self._plural = "" if count == 1 else "s"

    def finding(self, reported: Set[int] = frozenset()) -> Finding:
        """Returns the sentence and the cure; rounds `told` before have more than one deadline to wait for."""
        verb = "ends" if not self._plural else "end"
        how = f"{verb} at the deadline"
        if reported & {number for number, _ in self._steps}:
            how = f"also wait{'' if self._plural else 's'} until a deadline"
        tell = {
            "uplink": self._link,
            "downlink": self._link,
            "train": self._train,
            "gone": self._gone,
            "silent": self._silent,
            "unreported": self._unreported,
        }
        problem, cure = tell.get(self._cause, self._resent)()
        return Finding(f"deadline_{self._cause}", f"{self._which} {how} because {problem}", cure)

    def _link(self) -> tuple[str, str]:
        """A link that needs longer for its messages than there is time."""
        step, down = self._step, self._cause == "downlink"
        end = "receiver" if down else "sender"
        node = step.blamed
        messages = self._log.messages
        # First attempts only: what is sent again is no more payload.
        rows = (messages["round"] == self._round) & (messages[end] == node) & (messages["attempt"] == 1)
        rows &= messages["kind"] == records.KIND.get(step.what, -1)
        count, total = int(rows.sum()), int(messages["size_bytes"][rows].sum())
        each = f"{count} {step.what}{'' if count == 1 else 's'} of {bytes_text(total / max(count, 1))}"
        whose = f"the {self._role(node)}'s {self._cause}"
        rate = self._rate(node, down)
        there_s = step.duration_s
        need_s = total / rate if rate else None
        need = f"needs {seconds_text(need_s)}" if need_s else "is too slow"
        where = f" ({self._named(node)} in round {self._round})" if len(self._log.rounds) > 1 else ""
        return f"{whose} {need} for {each}{where}; {self._time_there(there_s)}", self._link_cure(count, need_s, there_s)

    def _link_cure(self, count: int, need_s: float | None, there_s: float) -> str:
        key = self._deadline_key()
        cures = [f"raise protocol.{key}"]
        if need_s is not None and need_s > there_s:
            limit_s = self._limits.deadlines_s.get(key, 0.0) if self._limits else 0.0
            cures = [f"raise protocol.{key} to {seconds_text(_round_up(limit_s + need_s - there_s))} or more"]
            # The link carries so many of equal size in the time that there is.
            fits = int(count * there_s / need_s)
            if count > 2 and fits >= 2:
                few = "exchange_with" if self._step.what == "update" and not leaders(self._log) else "train_per_round"
                cures.append(f"lower protocol.{few} to about {fits}")
        return _sentence([*cures, "send a smaller model"])

    def _train(self) -> tuple[str, str]:
        node = self._step.node
        need_s = 0.0 if self._limits is None else float(self._limits.train_s[node])
        need = f"needs {seconds_text(need_s)}"
        if need_s < self._step.duration_s:
            # A fault slows it down, or what it needs is not known.
            need = f"is not done after {seconds_text(self._step.duration_s)}"
        slow = len({step.node for _, step in self._steps})
        others = f" (the slowest of {slow})" if slow > 1 else ""
        problem = f"training at client {node}{others} {need}; {self._time_there(self._step.duration_s)}"
        return problem, _sentence(["raise protocol.deadline", "train fewer epochs", "lower it to wait less"])

    def _gone(self) -> tuple[str, str]:
        if self._by_leaders():
            return f"a leader that had gone was waited for ({self._who()})", "Lower protocol.leader_timeout"
        return f"members that had gone were waited for ({self._who()})", "Lower protocol.deadline"

    def _silent(self) -> tuple[str, str]:
        """Nodes that were up all the time, and yet sent nothing to the node that waited."""
        if not self._by_leaders():
            problem = f"members that were up but sent nothing in time were waited for ({self._who()})"
            return problem, _sentence([*self._orders_cure(), "lower protocol.deadline"])
        if any(leaders(self._log).get(number) != step.blamed for number, step in self._steps):
            limit_s = None if self._limits is None else self._limits.deadlines_s.get("leader_timeout")
            limit = "" if limit_s is None else f" ({seconds_text(limit_s)})"
            problem = f"a leader that was up was replaced, since nothing came from it in time ({self._who()})"
            return problem, _sentence([f"raise protocol.leader_timeout{limit}", *self._orders_cure()])
        return f"a leader that had no model in time was waited for ({self._who()})", "Raise protocol.model_deadline"

    def _unreported(self) -> tuple[str, str]:
        """The proxy keeps a round open for members that have not reported; it is not told that they have gone."""
        problem = f"the proxy waited for reports of members that had gone or never got their orders ({self._who()})"
        later = [key for key in ("deadline", "model_deadline") if self._limits and key in self._limits.deadlines_s]
        lower = " or ".join(f"protocol.{key}" for key in later or ["deadline"])
        return problem, _sentence([*self._orders_cure(), f"lower {lower}"])

    def _who(self) -> str:
        nodes = sorted({step.blamed for _, step in self._steps})
        named = ", ".join(self._named(node) for node in nodes[:3])
        more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
        return f"{named}{more}; {seconds_text(sum(step.duration_s for _, step in self._steps))} in total"

    def _orders_cure(self) -> list[str]:
        """What helps where a message of the proxy to one of these members was lost."""
        messages = self._log.messages
        control = (messages["kind"] == records.KIND["control"]) & (messages["sender"] == self._roles.node("proxy"))
        lost = control & (messages["outcome"] == records.OUTCOME["lost"])
        lost &= messages["reason"] != records.REASON["receiver_down"]
        pairs = set(zip(messages["round"][lost].tolist(), messages["receiver"][lost].tolist(), strict=True))
        helps = any((number, step.blamed) in pairs for number, step in self._steps)
        return ["raise network.retransmit.tries"] if helps else []

    def _by_leaders(self) -> bool:
        return all(self._led(number, step.blamed) for number, step in self._steps)

    def _led(self, number: int, node: int) -> bool:
        """Returns whether a node was the leader of a round at any time; after an election another one is on record."""
        graphs = self._log.graphs
        here = (graphs["round"] == number) & (graphs["receiver"] == node)
        return number in leaders(self._log) and bool(here.any())

    def _resent(self) -> tuple[str, str]:
        problem = f"a message of {self._named(self._step.node)} was lost and did not come in time on another try"
        cures = ["lower network.retransmit.timeout", "raise network.retransmit.tries"]
        # Of the nodes that wait only an aggregator goes on without the last ones, and what it waits for are updates.
        if self._roles.role(self._step.node) == "client":
            waits = self._limits is None or self._limits.waits_for_all
            cures.append(
                "go on without the last ones by `protocol.finish: {quorum: 0.9}`"
                if waits
                else "lower protocol.finish.quorum"
            )
        return problem, _sentence(cures)

    def _deadline_key(self) -> str:
        key = _DEADLINES.get(self._step.what, "deadline")
        return key if self._limits is None or key in self._limits.deadlines_s else "deadline"

    def _time_there(self, there_s: float) -> str:
        key = self._deadline_key()
        limit = "" if self._limits is None else f" (protocol.{key} {seconds_text(self._limits.deadlines_s.get(key))})"
        return f"there were {seconds_text(there_s)}{limit}"

    def _rate(self, node: int, down: bool) -> float | None:
        if self._limits is None:
            return None
        rate = float((self._limits.down if down else self._limits.up)[node])
        return rate if np.isfinite(rate) else None

    def _role(self, node: int) -> str:
        role = self._roles.role(node)
        return "leader" if leaders(self._log).get(self._round) == node and role == "client" else role

    def _named(self, node: int) -> str:
        role = self._roles.role(node)
        return f"{role} {node}" if role in ("client", "relay", "intruder") else role


def _round_up(time_s: float) -> float:
    """Rounds up to two digits, so that a cure is easy to type."""
    if time_s <= 0:
        return 0.0
    unit = 60.0 if time_s > 120 else 1.0 if time_s > 10 else 0.1
    return float(np.ceil(time_s / unit) * unit)


def _sentence(cures: Sequence[str]) -> str:
    text = ", ".join(cures[:-1]) + (", or " if len(cures) > 1 else "") + cures[-1]
    return text[:1].upper() + text[1:]
