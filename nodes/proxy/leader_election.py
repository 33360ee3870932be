"""One leader per round: the commit of a round's model, and the election of another leader before it.

A leader asks the proxy to commit its average before it hands anything over. The proxy grants one request per round, of
the leader of the current epoch, for a limited time (a lease; clocks are synchronous, as for a common sending time); the
commit is final when the leader has received the grant. A leader that does not answer is replaced, but not while its
lease runs and never after the commit: then the nodes that have the model hand it on.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from functools import partial
from typing import Any

import numpy as np
import simpy

from nodes.messaging.control_messages import CommitReply, CommitRequest, LeaderProbe, LeaderTimeout
from nodes.protocols.api import RoundPlan, Steps
from nodes.proxy.orders import Orders
from nodes.proxy.round_state import ProxyConfig, RunningRound
from nodes.round_record import RoundRecord
from nodes.world import World
from p2p.log.records import NO_NODE
from p2p.random_streams import stream


class LeaderElection:
    """The proxy's part in commits and elections."""

    def __init__(self, world: World, config: ProxyConfig, records: dict[int, RoundRecord], orders: Orders) -> None:
        self._world, self._config, self._records, self._orders = world, config, records, orders
        self._probes = 0

    def answer(self, running: RunningRound | None, request: CommitRequest) -> None:
        """Grants or refuses a leader's request; `running` is the current round, which may be another one."""
        verdict = CommitReply(request.round_number, request.epoch)
        if running is not None and running.may_commit(request):
            running.lease_ends_s = min(self._now_s + self._config.leader_timeout_s, running.closes_s)
            verdict = verdict._replace(
                until_s=running.lease_ends_s, acknowledge=partial(self._commit, running, request)
            )
        self._orders.endpoint.send_control([request.node], request.round_number, verdict)

    def _commit(self, running: RunningRound, request: CommitRequest) -> None:
        """Makes a leader's average the round's model, at the instant at which the leader learns of it."""
        running.committed = request
        self.note_plan(running)
        # A probe under way need not be answered any more.
        self._orders.endpoint.inbox.wake_if_waiting(("alive", self._probes), ("lease", running.round_number))

    def note_plan(self, running: RunningRound) -> None:
        """Notes the current plan's leader in the round's record, and logs its graph once."""
        record = self._records.get(running.round_number)
        # Plans without a leader only hand a model on: they change neither the leader nor the graph of updates.
        if record is None or running.round_plan.leader == NO_NODE or running.noted_epoch == running.epoch:
            return
        running.noted_epoch = running.epoch
        record.leader, record.edges = running.round_plan.leader, running.round_plan.edges
        self._orders.log_graph(running.round_number, running.round_plan)

    def replace_if_lost(self, running: RunningRound, complaints: Sequence[LeaderTimeout]) -> Steps:
        """Probes the leader that members complain about; if it is lost, lets another node lead or hand on the model."""
        if running.round_plan.leader not in running.gone and (yield from self._leads(running)):
            return
        if running.committed is None:
            yield from self._await_lease(running)
        if running.committed is None:
            yield from self._elect(running, {complaint.node for complaint in complaints})
        else:
            self._serve(running)

    def _leads(self, running: RunningRound) -> Generator[simpy.Event, Any, bool]:
        """Returns whether the leader acknowledges a probe, or commits, in time; otherwise it counts as lost."""
        leader, round_number, commits = running.round_plan.leader, running.round_number, running.committed
        if leader == NO_NODE:
            return False
        self._probes += 1
        # A key per probe: the late acknowledgement of an earlier probe must not confirm this one.
        key, mailbox = ("alive", self._probes), self._orders.endpoint.inbox
        probe = LeaderProbe(round_number, running.epoch, lambda: mailbox.put(key, leader))
        self._orders.endpoint.send_control([leader], round_number, probe)
        alive = yield mailbox.expect(key, 1, self._now_s + self._config.leader_timeout_s)
        if alive or running.committed != commits:
            return True
        running.gone.add(leader)
        if running.committed is None:
            self._orders.close(running, [leader])
        return False

    def _await_lease(self, running: RunningRound) -> Steps:
        """Waits until a grant that is on its way to a lost leader has been received or has expired."""
        if running.lease_ends_s > self._now_s:
            key = ("lease", running.round_number)
            yield self._orders.endpoint.inbox.expect(key, 1, running.lease_ends_s)

    def _elect(self, running: RunningRound, complained: Collection[int]) -> Steps:
        """Appoints leaders until one confirms, then informs the members; ends the round if no candidate is left."""
        while True:
            running.epoch += 1
            waiting = running.waiting()
            found = plan_election(self._world.seed, running.round_number, running.epoch, waiting, complained)
            if found is None:
                self._orders.close(running, waiting)
                return
            if self._config.tracker is not None:
                self._config.tracker.let_correct(found)
            nodes = self._replan(running, found)
            # The leader alone at first: members must not turn to a new leader that may be down as well.
            self._orders.hand_out(running, [found.leader])
            confirmed = yield from self._leads(running)
            running.record_done(self._orders.endpoint.inbox.take(("done", running.round_number)))
            if not confirmed:
                yield from self._await_lease(running)
            if confirmed or running.committed is not None:
                break
        self.note_plan(running)
        self._hand_out_anew(running, nodes, found.leader)

    def _serve(self, running: RunningRound) -> None:
        """Lets a node that has the committed model hand it to the members that wait; without any, ends their parts."""
        waiting = running.waiting()
        having = sorted(running.having() - running.served)
        if not having or not waiting:
            self._orders.close(running, waiting)
            return
        # Each holder serves once: one that members cannot reach must not keep the round open for ever.
        running.served.add(having[0])
        running.epoch += 1
        edges = np.column_stack([np.full(len(waiting), having[0]), np.array(waiting, dtype=np.int64)])
        nodes = self._replan(running, RoundPlan({"model": edges}, NO_NODE))
        self._hand_out_anew(running, nodes, NO_NODE)

    def _replan(self, running: RunningRound, found: RoundPlan) -> list[int]:
        """Makes a new plan the round's, with its time from now, and returns its nodes."""
        running.round_plan = self._config.weighed(found)
        running.lasts_s = self._config.protocol.longest_s + self._config.extra_s + self._config.rules.grace
        running.closes_s = self._now_s + running.lasts_s
        nodes: list[int] = np.unique(np.concatenate([edges.ravel() for edges in found.edges.values()])).tolist()
        self._orders.assign(running, nodes)
        return nodes

    def _hand_out_anew(self, running: RunningRound, nodes: Sequence[int], informed: int) -> None:
        # Their earlier reports were about the old plan; each one has a new part to finish.
        for node in nodes:
            running.done.pop(node, None)
        self._orders.hand_out(running, [node for node in nodes if node != informed])

    @property
    def _now_s(self) -> float:
        return float(self._world.clock.now)


def plan_election(
    seed: int, round_number: int, epoch: int, waiting: Sequence[int], complained: Collection[int]
) -> RoundPlan | None:
    """Returns a plan with a new leader among the members still waiting; None if fewer than two are left.

    One of the members that complained (they are alive) becomes leader, and the others send it the identical updates.
    """
    others = np.array(sorted(waiting), dtype=np.int64)
    if len(others) < 2:
        return None
    # The epoch is part of the stream's name: a second election of the same round draws afresh.
    candidates = sorted(set(complained) & set(waiting)) or others.tolist()
    leader = int(stream(seed, "leader", round_number, epoch).choice(candidates))
    others = others[others != leader]
    updates = np.column_stack([others, np.full_like(others, leader)])
    return RoundPlan({"update": updates, "model": updates[:, ::-1]}, leader)
