"""The proxy's state: its configuration, the current round, and the outcome of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nodes.messaging.control_messages import Answer, CommitRequest, Done
from nodes.noise_shares.partner_graph import Tracker
from nodes.protocols.api import PeerProtocol, RoundPlan
from nodes.protocols.round_rules import RoundRules
from nodes.proxy.assignments import PlanAssignments
from nodes.round_record import RoundRecord
from nodes.schedules.fixed import RunSchedule
from p2p.transport.messages import CallAnswer, FirstModels


@dataclass(slots=True)
class ProxyConfig:
    """The proxy's configuration; the callbacks `on_...` belong to the observer, which changes nothing.

    Attributes:
        answer: makes an answer to an invitation when it is read
        public_key: the key with which a node has joined or registered
        end_late_fetch: tells a node that its time to fetch the first model is up
        take_first_models: gives nodes the first models that have arrived
        schedule: how many rounds there are
        loss_of: the loss that the schedule reads, from a round's record and the nodes that reported it
        record_shares: where updates are weighed by records, each client's share of all records; else none
    """

    clients: int
    rounds: int
    rules: RoundRules
    protocol: PeerProtocol
    hand_out: Literal["neighbours", "graph"]
    central: bool
    collect: str
    leader_timeout_s: float
    answer: Callable[[CallAnswer], Answer]
    public_key: Callable[[Answer], bytes]
    end_late_fetch: Callable[[int], None]
    take_first_models: Callable[[FirstModels], None]
    on_forming: Callable[[int, NDArray[np.int64]], None]
    on_closed: Callable[[RoundRecord], None]
    on_quiet: Callable[[int, Sequence[int]], None]
    schedule: RunSchedule
    loss_of: Callable[[RoundRecord, Sequence[int]], float | None] = lambda record, reported: None
    record_shares: NDArray[np.float64] | None = None
    tracker: Tracker | None = None
    extra_s: float = 0.0

    def weighed(self, plan: RoundPlan) -> RoundPlan:
        """Returns the plan with the record shares of senders and receivers, if aggregators need them."""
        return plan if self.record_shares is None else with_record_shares(plan, self.record_shares)


def with_record_shares(plan: RoundPlan, shares: NDArray[np.float64]) -> RoundPlan:
    """Returns a plan with each sender's and receiver's share of all records as weights; a server has none."""
    if "update" not in plan.edges:
        return plan
    senders, receivers = plan.edges["update"].T
    own = {node: float(shares[node]) for node in np.unique(receivers).tolist() if node < len(shares)}
    return replace(plan, weights=shares[senders], own_weights=own)


@dataclass(slots=True)
class Outcome:
    """The outcome of the run."""

    rounds_completed: int = 0
    stopped_because: str = "all rounds done"
    collected_from: list[int] = field(default_factory=list)


@dataclass(slots=True)
class RunningRound:
    """The state of the current round, replicated to the standby.

    Attributes:
        epoch: the number of re-plannings
        gone: leaders that count as lost
        committed: the request of the leader whose average is the round's model
        lease_ends_s: until when the leader may act on the last grant
        served: nodes that were told to hand on the model of a lost leader
        weight_total: the denominator of the updates' weights, once known
        noted_epoch: the epoch of the last plan whose leader and graph are on record
    """

    round_number: int
    answers: dict[int, Answer]
    round_plan: RoundPlan
    members: list[int]
    plans: dict[int, PlanAssignments]
    closes_s: float
    lasts_s: float
    epoch: int = 0
    done: dict[int, Done] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    committed: CommitRequest | None = None
    lease_ends_s: float = 0.0
    served: set[int] = field(default_factory=set)
    weight_total: float = 0.0
    noted_epoch: int = -1

    def release(self) -> list[int]:
        """Returns the assigned nodes, and drops what is known of each, at the end of the round."""
        # Each assignment acknowledges to this round, which holds it: without this, the assignments and answers of all
        # rounds would stay until a collection, which a run makes very rarely.
        nodes = list(self.plans)
        self.plans, self.answers, self.done = {}, {}, {}
        return nodes

    def extend(self, closes_s: float) -> None:
        """Keeps the round open for a member whose time runs from the receipt of its assignment until `closes_s`."""
        # Never shortened: other members may have been promised more time.
        self.closes_s = max(self.closes_s, closes_s)

    def record_done(self, reports: Iterable[Done]) -> list[Done]:
        """Records the reports that refer to a node's latest assignment, and returns them; others are outdated."""
        assigned = [(report, self.plans.get(report.node)) for report in reports]
        # An outdated report was in flight when the round was re-planned; its node has a new part to finish.
        current = [report for report, last in assigned if last is not None and report.epoch >= last.epoch]
        self.done |= {report.node: report for report in current}
        return current

    def may_commit(self, request: CommitRequest) -> bool:
        """Returns whether a request is of this round's current leader, and no other average is committed."""
        if request.round_number != self.round_number or request.node in self.gone:
            return False
        current = (request.node, request.epoch) == (self.round_plan.leader, self.epoch)
        return current and self.committed in (None, request)

    def waiting(self) -> list[int]:
        """Returns the members that have not reported and do not count as lost."""
        return [node for node in self.pending() if node in self.members]

    def having(self) -> set[int]:
        """Returns the nodes that have reported to have the round's model."""
        return {node for node, report in self.done.items() if report.model_round == self.round_number}

    def pending(self) -> list[int]:
        """Returns the assigned nodes that have not reported and do not count as lost."""
        return [node for node in self.plans if node not in self.done and node not in self.gone]
