"""The trusted proxy: knows true identities, forms each round's cohort, and hands out addresses and keys.

It never receives an update. Every wait has a deadline, so no run hangs on a lost message. Its state is replicated to
the standby: after a takeover the same object continues on another node.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from nodes.messaging.control_messages import Answer, CommitRequest, Done, PeerLost, Register
from nodes.messaging.endpoint import Endpoint
from nodes.protocols.api import RoundContext, RoundPlan, Steps
from nodes.proxy.cohort_selection import choose_cohort
from nodes.proxy.invitations import Invitations
from nodes.proxy.leader_election import LeaderElection
from nodes.proxy.orders import Orders
from nodes.proxy.round_state import Outcome, ProxyConfig, RunningRound
from nodes.round_record import RoundRecord
from nodes.world import World
from p2p.clock import LAST, Rank
from p2p.log.records import NO_NODE
from p2p.random_streams import stream

MOST_SET_UPS = 5
"""How often the first model is handed out again before a round, to clients that did not receive it."""


class Proxy:
    """The proxy process, on its own node or, after a failover, on the standby; `outcome` says how the run ended."""

    def __init__(self, world: World, config: ProxyConfig, records: dict[int, RoundRecord]) -> None:
        self.outcome = Outcome()
        self.node = world.proxy
        self._world, self._config, self._records = world, config, records
        self._orders = Orders(world, config, records)
        self._orders.endpoint.on_commit = self._answer_commit
        self._election = LeaderElection(world, config, records, self._orders)
        self._registered: set[int] = set()
        self._first_answers: dict[int, Answer] = {}
        self._newcomers: set[int] = set()
        self._newest, self._holder = 0, NO_NODE
        self._led: list[int] = []
        self._running: RunningRound | None = None
        self._next_round = 0
        self._started = (0, 0.0, 0)
        self._set_ups: dict[int, int] = {}
        self._stopped = False
        self._to_forget: dict[int, dict[int, None]] = {}  # participants of rounds with messages in flight

    def note_crash(self, node: int) -> None:
        """Records that a node went down during the current round, and notifies the partners of its noise shares."""
        if self._running is not None and self._config.tracker is not None:
            self._notify_partners(self._running, node)
        if self._running is not None and self._running.round_number in self._records:
            self._records[self._running.round_number].crashed.add(node)

    def _notify_partners(self, running: RunningRound, lost: int) -> None:
        """Notifies the share partners of a member whose connection the proxy sees end; they may omit its share."""
        partners = self._config.tracker.to_be_told(running.round_plan, lost) if self._config.tracker else []
        if partners and lost in running.plans:
            notice = PeerLost(running.round_number, running.plans[lost].address(lost))
            self._endpoint.send_control(partners, running.round_number, notice, running.closes_s)

    def move_to(self, node: int) -> None:
        """Moves to the standby's node; the state is replicated, the content of the old inbox is lost."""
        self.node = node
        self._orders.endpoint = Endpoint(node, self._world)
        self._orders.endpoint.on_commit = self._answer_commit

    @property
    def _endpoint(self) -> Endpoint:
        return self._orders.endpoint

    def _answer_commit(self, request: CommitRequest) -> None:
        self._election.answer(self._running, request)

    def run(self) -> Steps:
        """Runs set-up, the rounds and the collection of the final model, from wherever the state stands."""
        if self._running is not None:
            # It may have gone down between appointing a leader and noting it.
            self._election.note_plan(self._running)
            # After a takeover or restart, reports may have been lost: members that are done answer with their report.
            self._orders.hand_out(self._running, self._running.pending(), urgent=True)
            yield from self._await_reports(self._running)
        if self._next_round == 0:
            yield from self._set_up()
        while self._next_round <= self._config.rounds and not self._stopped:
            why_over = self._config.schedule.why_over(self._next_round)
            if why_over:
                self._stop(why_over)
            else:
                yield from self._round(self._next_round)
        if not self._config.central and not self.outcome.collected_from:
            yield from self._collect(self._config.rounds + 1)

    def _set_up(self) -> Steps:
        """Registers the nodes and lets the server hand out the first model (round 0)."""
        give_up_s = self._now_s + self._config.rules.invite_timeout
        while self._now_s < give_up_s and len(self._registered) <= self._config.clients:
            window_s = self._now_s + self._config.rules.invite_window
            missing = self._config.clients + 1 - len(self._registered)
            self._register((yield self._endpoint.inbox.expect("register", missing, window_s)))
            # A cohort and the server suffice to begin; clients that register later are newcomers of a later round.
            if self._world.server in self._registered and len(self._registered) > self._config.protocol.cohort_size:
                break
        self._next_round = 1
        self._newcomers = set()
        members = self._clients()
        if self._world.server in self._registered and len(members) and not self._config.central:
            edges = np.column_stack([np.full_like(members, self._world.server), members])
            longest_s = self._config.protocol.longest_s + self._config.extra_s + self._config.rules.grace
            yield from self._run_round(0, RoundPlan({"bootstrap": edges}), self._first_answers, [], longest_s)
        self._first_answers = {}

    def _round(self, round_number: int) -> Steps:
        """Runs one round, or stops the run with the reason in the outcome if no cohort can be formed."""
        start_s, first_row = self._start(round_number)
        self._register(self._endpoint.inbox.take("register"))
        invited = yield from self._invite(round_number)
        for _ in range(MOST_SET_UPS):
            if invited.why_not or len(invited.joined) >= self._config.protocol.cohort_size:
                break
            yield from self._set_up_again(invited)
            invited = yield from self._invite(round_number)
        invited.log_absences(self._config.protocol.cohort_size)
        if len(invited.joined) < self._config.protocol.cohort_size and not invited.why_not:
            invited.why_not = "too few clients could be given a first model"
        if invited.why_not:
            self._stop(f"round {round_number}: {invited.why_not}")
            return
        size, rules = self._config.protocol.cohort_size, self._config.rules
        joined = np.array(invited.joined, dtype=np.int64)
        members = choose_cohort(joined, size, rules.selection, self._world.seed, round_number)
        answers = invited.answers
        # The protocol plans first: newcomers are served beside its plan, and share partners depend on its edges.
        round_plan = self._config.weighed(
            self._config.protocol.plan_round(self._round_context(round_number, members, answers))
        )
        self._serve_newcomers(round_plan, answers)
        if self._config.tracker is not None:
            self._config.tracker.add_to(round_plan, round_number, members.tolist())
        self._open(round_number, start_s, members, round_plan, first_row)
        barrier_s = self._barrier(members, answers, start_s) if rules.send_at == "barrier" else None
        longest_s = self._config.protocol.longest_s + self._config.extra_s + rules.grace
        yield from self._run_round(round_number, round_plan, answers, members.tolist(), longest_s, barrier_s)

    def _start(self, round_number: int) -> tuple[float, int]:
        """Returns when the round began and the message log's length then."""
        # Kept: a proxy that goes down while it invites begins the invitation anew, not the round.
        if self._started[0] != round_number:
            self._started = round_number, self._now_s, len(self._world.log.messages)
        return self._started[1:]

    def _open(
        self, round_number: int, start_s: float, members: NDArray[np.int64], round_plan: RoundPlan, first_row: int
    ) -> RoundRecord:
        """Creates the round's record and logs its graph, once the cohort is formed."""
        record = RoundRecord(round_number, start_s, members, round_plan.leader, round_plan.edges, first_row=first_row)
        record.first_aggregation = len(self._world.log.aggregations)
        self._records[round_number] = record
        self._config.on_forming(round_number, members)
        self._orders.log_graph(round_number, round_plan)
        return record

    def _set_up_again(self, invited: Invitations) -> Steps:
        """Lets the server hand out the first model again, before a round for which too few clients have one."""
        round_number, server = invited.round_number, self._world.server
        if server not in invited.answers:
            yield from invited.once([server], 1)
        round_plan = RoundPlan()
        self._newcomers |= invited.without_model
        self._serve_newcomers(round_plan, invited.answers)
        longest_s = self._config.protocol.longest_s + self._config.rules.grace
        if round_plan.edges:
            yield from self._run_round(round_number, round_plan, invited.answers, [], longest_s)
        self._set_ups[round_number] = self._set_ups.get(round_number, 0) + 1

    def _invite(self, round_number: int) -> Generator[simpy.Event, Any, Invitations]:
        needed, server = self._config.protocol.cohort_size, self._world.server
        targets = self._clients().tolist()
        if self._config.central or self._newcomers:
            targets.append(server)
        must_answer = [server] if self._config.central else []
        invited = self._invitations(round_number, targets)
        yield from invited.until_enough(needed, self._config.clients, must_answer)
        self._newcomers |= invited.without_model
        return invited

    def _invitations(self, round_number: int, nodes: Sequence[int]) -> Invitations:
        config = self._config
        return Invitations(self._world, self._endpoint, config.rules, round_number, nodes, config.answer)

    def _round_context(self, round_number: int, members: NDArray[np.int64], answers: dict[int, Answer]) -> RoundContext:
        stale = [node for node in members.tolist() if answers[node].model_round < self._newest]
        holder = self._holder if self._holder in answers else NO_NODE
        stale_members = np.array(stale, dtype=np.int64)
        ends = self._world.server, self._config.clients
        return RoundContext(self._world.seed, round_number, members, holder, stale_members, *ends, self._led)

    def _serve_newcomers(self, round_plan: RoundPlan, answers: dict[int, Answer]) -> None:
        """Adds edges from the server to late registrants, which receive the first model beside this round."""
        there = np.array(sorted(self._newcomers & answers.keys()), dtype=np.int64)
        # Both ends must have answered: without a key of this round nothing can be sealed for them.
        if len(there) and self._world.server in answers:
            round_plan.edges["bootstrap"] = np.column_stack([np.full_like(there, self._world.server), there])
            self._newcomers -= set(there.tolist())

    def _barrier(self, members: NDArray[np.int64], answers: dict[int, Answer], invited_s: float) -> float:
        """Returns the common sending time: the slowest training, plus once more the duration of the invitation."""
        # The invitation's duration stands in for the delivery of assignments, which the proxy cannot know in advance.
        slowest_s = max(answers[node].train_s for node in members.tolist())
        return self._now_s + slowest_s + (self._now_s - invited_s)

    def _run_round(
        self,
        round_number: int,
        round_plan: RoundPlan,
        answers: dict[int, Answer],
        members: list[int],
        longest_s: float,
        barrier_s: float | None = None,
    ) -> Steps:
        """Hands out assignments and waits until the round is over."""
        ends = [edges.ravel() for edges in round_plan.edges.values()]
        nodes = np.flatnonzero(np.bincount(np.concatenate([*ends, np.array(members, dtype=np.int64)]))).tolist()
        # A repeated set-up in this round has closed it, and its last messages may still be in flight.
        self._world.network.reopen_round(round_number)
        # Each repeated set-up counts as an epoch, so that a member takes its later assignment for a new one.
        epoch = self._set_ups.get(round_number, 0)
        running = RunningRound(
            round_number, answers, round_plan, members, {}, self._now_s + longest_s, longest_s, epoch
        )
        running.noted_epoch = epoch  # the first plan is noted when the round is opened
        self._running = running
        self._orders.assign(running, nodes, barrier_s)
        self._orders.hand_out(running, nodes)
        yield from self._await_reports(running)

    def _await_reports(self, running: RunningRound) -> Steps:
        """Waits until all members are done or time is up, replacing a lost leader; then closes the round."""
        round_number = running.round_number
        while (pending := running.pending()) and self._now_s < self._closes_s(running):
            reports: list[Done] = yield self._endpoint.inbox.expect(
                ("done", round_number), len(pending), running.closes_s
            )
            current = running.record_done(reports)
            # A leader that skipped its aggregation sends no model: members need not wait for the deadline.
            if any(report.skipped and report.node == running.round_plan.leader for report in current):
                self._orders.close(running, running.pending())
            complaints = self._endpoint.inbox.take(("complaint", round_number))
            # Complaints of an earlier epoch are about a leader that has been replaced already.
            heeded = [complaint for complaint in complaints if complaint.epoch == running.epoch]
            if heeded:
                yield from self._election.replace_if_lost(running, heeded)
        # Everything that happens at the closing instant, on any node, comes before the round is closed.
        yield self._world.clock.at(self._now_s, Rank.START, LAST)
        self._running = None
        if round_number < self._next_round or round_number in self._records:
            # Not after a repeated set-up, whose round is still to come.
            self._world.network.close_round(round_number)
        if round_number in self._records:
            self._close(
                self._records[round_number], [report.node for report in running.done.values() if report.has_loss]
            )
        self._endpoint.inbox.forget(("done", round_number))
        taken_part = self._to_forget.setdefault(round_number, {})
        taken_part.update(dict.fromkeys(running.release()))
        self._world.network.when_drained(round_number, lambda: self._forget(round_number))

    def _closes_s(self, running: RunningRound) -> float:
        """Returns when the round closes at the latest, as far as members have been promised time until now."""
        running.extend(self._world.network.promised_s(running.round_number))
        return running.closes_s

    def _close(self, record: RoundRecord, reported: Sequence[int]) -> None:
        record.close(self._world.log, self._now_s)
        loss = self._config.loss_of(record, reported) if self._config.schedule.reads else None
        self._config.schedule.note(record.round_number, loss)
        if record.leader in record.aggregated_s:
            self._newest, self._holder = record.round_number, record.leader
        # An elected leader has led its round, not the one that it replaced.
        self._led.append(record.leader)
        self._next_round = record.round_number + 1
        self.outcome.rounds_completed = record.round_number
        self._config.on_closed(record)

    def _collect(self, round_number: int) -> Steps:
        """Lets the server collect the final model: a random client's, the last leader's, or all for the mean."""
        clients = self._clients().tolist()
        if not clients or self._world.server not in self._registered:
            return
        if self._config.collect == "random" or (self._config.collect == "last_leader" and self._holder == NO_NODE):
            sources = [int(stream(self._world.seed, "collect").choice(clients))]
        else:
            sources = [self._holder] if self._config.collect == "last_leader" else clients
        nodes = [*sources, self._world.server]
        invited = self._invitations(round_number, nodes)
        give_up_s = self._now_s + self._config.rules.invite_timeout
        while (silent := [node for node in nodes if node not in invited.answers]) and self._now_s < give_up_s:
            yield from invited.once(silent, len(silent))
        sources = [node for node in sources if node in invited.answers]
        if not sources or self._world.server not in invited.answers:
            return
        edges = np.array([(node, self._world.server) for node in sources], dtype=np.int64)
        longest_s = self._config.protocol.longest_s + self._config.extra_s + self._config.rules.grace
        round_plan = RoundPlan({"collect": edges}, self._world.server)
        yield from self._run_round(round_number, round_plan, invited.answers, [], longest_s)
        self.outcome.collected_from = sources

    def _register(self, entries: Sequence[Register]) -> None:
        for entry in entries:
            self._world.router.register(entry.node)
            self._registered.add(entry.node)
            if self._next_round == 0:
                self._first_answers[entry.node] = Answer(0, entry.node, "", entry.keyed, life=entry.life)
            elif entry.node != self._world.server:
                self._newcomers.add(entry.node)

    def _clients(self) -> NDArray[np.int64]:
        return np.array(sorted(self._registered - {self._world.server}), dtype=np.int64)

    def _forget(self, round_number: int) -> None:
        self._world.router.close_round(round_number)
        self._config.on_quiet(round_number, list(self._to_forget.pop(round_number, ())))

    def _stop(self, why: str) -> None:
        self._stopped = True
        self.outcome.stopped_because = why

    @property
    def _now_s(self) -> float:
        return float(self._world.clock.now)
