"""What the proxy goes by: what it is told about the run, the round under way, and how the run ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nodes.messaging.control_messages import Answer, Assignment, Done
from nodes.noise_shares.partner_graph import Tracker
from nodes.protocols.api import PeerProtocol, RoundPlan
from nodes.protocols.round_rules import RoundRules
from nodes.round_record import RoundRecord


@dataclass(slots=True)
class ProxyConfig:
    """What the proxy is told about the run; the functions are the experimenter's, who only watches."""

    clients: int
    rounds: int
    rules: RoundRules
    protocol: PeerProtocol
    hand_out: Literal["neighbours", "graph"]
    central: bool
    collect: str
    leader_timeout_s: float
    on_forming: Callable[[int, NDArray[np.int64]], None]
    on_closed: Callable[[RoundRecord], None]
    on_quiet: Callable[[int, Sequence[int]], None]
    tracker: Tracker | None = None
    extra_s: float = 0.0


@dataclass(slots=True)
class Outcome:
    """How the run ended."""

    rounds_completed: int = 0
    stopped_because: str = "all rounds done"
    collected_from: list[int] = field(default_factory=list)


@dataclass(slots=True)
class RoundState:
    """A round under way."""

    round_number: int
    answers: dict[int, Answer]
    round_plan: RoundPlan
    members: list[int]
    assignments: dict[int, Assignment]
    closes_s: float
    lasts_s: float
    epoch: int = 0
    done: dict[int, Done] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)

    def extend(self, closes_s: float) -> None:
        """A member has its assignment, and its time is up then: the round stays open for it."""
        self.closes_s = max(self.closes_s, closes_s)

    def record_done(self, reports: Iterable[Done]) -> list[Done]:
        """Takes in who is done with what it was last assigned; other reports were on their way when that changed."""
        assigned = [(report, self.assignments.get(report.node)) for report in reports]
        current = [report for report, last in assigned if last is not None and report.epoch >= last.epoch]
        self.done |= {report.node: report for report in current}
        return current

    def pending(self) -> list[int]:
        """Who has not reported yet and is not known to be gone."""
        return [node for node in self.assignments if node not in self.done and node not in self.gone]
