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

from nodes.messaging.control_messages import Answer, Close, Done, LeaderProbe, LeaderTimeout, PeerLost, Register
from nodes.messaging.endpoint import Endpoint
from nodes.protocols.api import RoundContext, RoundPlan, Steps
from nodes.proxy.assignments import RoundTerms, make_assignments
from nodes.proxy.cohort_selection import choose_cohort
from nodes.proxy.invitations import Invitations
from nodes.proxy.leader_election import arrange_without_leader
from nodes.proxy.round_state import Outcome, ProxyConfig, RoundState
from nodes.round_record import RoundRecord
from nodes.world import World
from p2p.clock import LAST, Rank
from p2p.log.records import NOBODY
from p2p.random_streams import stream

MOST_SET_UPS = 5
"""How often the first model is handed out again before a round, to clients that did not receive it."""


class Proxy:
    """The proxy process, on its own node or, after a failover, on the standby; `outcome` says how the run ended."""

    def __init__(self, world: World, config: ProxyConfig, records: dict[int, RoundRecord]) -> None:
        self.outcome = Outcome()
        self.node = world.proxy
        self._world, self._config, self._records = world, config, records
        self._endpoint = Endpoint(world.proxy, world)
        self._registered: set[int] = set()
        self._first_answers: dict[int, Answer] = {}
        self._newcomers: set[int] = set()
        self._newest, self._holder = 0, NOBODY
        self._running: RoundState | None = None
        self._next_round = 0
        self._probes = 0
        self._set_ups: dict[int, int] = {}
        self._stopped = False
        self._to_forget: dict[int, dict[int, None]] = {}  # participants of rounds with messages in flight

    def note_crash(self, node: int) -> None:
        """Records that a node went down during the current round, and notifies the partners of its noise shares."""
        if self._running is not None and self._config.tracker is not None:
            self._notify_partners(self._running, node)
        if self._running is not None and self._running.round_number in self._records:
            self._records[self._running.round_number].crashed.add(node)

    def _notify_partners(self, running: RoundState, lost: int) -> None:
        """Notifies the share partners of a member whose connection the proxy sees end; they may omit its share."""
        partners = self._config.tracker.to_be_told(running.round_plan, lost) if self._config.tracker else []
        if partners and lost in running.assignments:
            notice = PeerLost(running.round_number, running.assignments[lost].address)
            self._endpoint.send_control(partners, running.round_number, notice, running.closes_s)

    def move_to(self, node: int) -> None:
        """Moves to the standby's node; the state is replicated, the content of the old inbox is lost."""
        self.node = node
        self._endpoint = Endpoint(node, self._world)

    def run(self) -> Steps:
        """Runs set-up, the rounds and the collection of the final model, from wherever the state stands."""
        if self._running is not None:
            # After a takeover or restart, reports may have been lost: members that are done answer with their report.
            self._hand_out(self._running.pending(), urgent=True)
            yield from self._await_reports(self._running)
        if self._next_round == 0:
            yield from self._set_up()
        while self._next_round <= self._config.rounds and not self._stopped:
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
        start_s, first_row = self._now_s, len(self._world.log.messages)
        self._register(self._endpoint.inbox.take("register"))
        invited = yield from self._invite(round_number)
        for _ in range(MOST_SET_UPS):
            if invited.why_not or len(invited.joined()) >= self._config.protocol.cohort_size:
                break
            yield from self._set_up_again(invited)
            invited = yield from self._invite(round_number)
        invited.log_absences(self._config.protocol.cohort_size)
        if len(invited.joined()) < self._config.protocol.cohort_size and not invited.why_not:
            invited.why_not = "too few clients could be given a first model"
        if invited.why_not:
            self._stop(f"round {round_number}: {invited.why_not}")
            return
        size, rules = self._config.protocol.cohort_size, self._config.rules
        joined = np.array([answer.node for answer in invited.joined()], dtype=np.int64)
        members = choose_cohort(joined, size, rules.selection, self._world.seed, round_number)
        answers = invited.answers
        # The protocol plans first: newcomers are served beside its plan, and share partners depend on its edges.
        round_plan = self._config.protocol.plan_round(self._round_context(round_number, members, answers))
        self._serve_newcomers(round_plan, answers)
        if self._config.tracker is not None:
            self._config.tracker.add_to(round_plan, round_number, members.tolist())
        self._open(round_number, start_s, members, round_plan, first_row)
        barrier_s = self._barrier(members, answers, start_s) if rules.send_at == "barrier" else None
        longest_s = self._config.protocol.longest_s + self._config.extra_s + rules.grace
        yield from self._run_round(round_number, round_plan, answers, members.tolist(), longest_s, barrier_s)

    def _open(
        self, round_number: int, start_s: float, members: NDArray[np.int64], round_plan: RoundPlan, first_row: int
    ) -> RoundRecord:
        """Creates the round's record and logs its graph, once the cohort is formed."""
        record = RoundRecord(round_number, start_s, members, round_plan.leader, round_plan.edges, first_row=first_row)
        record.first_aggregation = len(self._world.log.aggregations)
        self._records[round_number] = record
        self._config.on_forming(round_number, members)
        self._log_graph(round_number, round_plan)
        return record

    def _set_up_again(self, invited: Invitations) -> Steps:
        """Lets the server hand out the first model again, before a round for which too few clients have one."""
        round_number, server = invited.round_number, self._world.server
        if server not in invited.answers:
            yield from invited.once([server], 1)
        round_plan = RoundPlan()
        self._newcomers |= set(invited.without_model())
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
        invited = Invitations(self._world, self._endpoint, self._config.rules, round_number, targets, {})
        yield from invited.until_enough(needed, self._config.clients, must_answer)
        self._newcomers |= {node for node, answer in invited.answers.items() if answer.declines == "declined"}
        return invited

    def _round_context(self, round_number: int, members: NDArray[np.int64], answers: dict[int, Answer]) -> RoundContext:
        stale = [node for node in members.tolist() if answers[node].model_round < self._newest]
        holder = self._holder if self._holder in answers else NOBODY
        stale_members = np.array(stale, dtype=np.int64)
        ends = self._world.server, self._config.clients
        return RoundContext(self._world.seed, round_number, members, holder, stale_members, *ends)

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
        nodes = np.unique(np.concatenate([*ends, np.array(members, dtype=np.int64)])).tolist()
        # A repeated set-up in this round has closed it, and its last messages may still be in flight.
        self._world.network.reopen_round(round_number)
        # Each repeated set-up counts as an epoch, so that a member takes its later assignment for a new one.
        epoch = self._set_ups.get(round_number, 0)
        running = RoundState(round_number, answers, round_plan, members, {}, self._now_s + longest_s, longest_s, epoch)
        self._running = running
        self._assign(running, nodes, barrier_s)
        self._hand_out(nodes)
        yield from self._await_reports(running)

    def _assign(self, running: RoundState, nodes: Sequence[int], barrier_s: float | None = None) -> None:
        addresses = self._world.router.open_round(running.round_number, nodes)
        if running.round_number in self._records:
            self._records[running.round_number].addresses |= addresses
        whole = self._config.hand_out == "graph"
        times = running.lasts_s, running.extend
        terms = RoundTerms(
            running.round_number, running.closes_s, barrier_s, running.epoch, whole, self._weight_total(running), *times
        )
        fresh = make_assignments(running.round_plan, terms, addresses, running.answers, running.members)
        running.assignments |= fresh
        if "update" in running.round_plan.edges:
            self._world.network.prefetch(running.round_plan.edges["update"])

    def _weight_total(self, running: RoundState) -> float:
        """Returns the denominator of the updates' weights: the cohort as first planned, also after an election."""
        if self._config.tracker is None or "update" not in running.round_plan.edges:
            return 0.0
        return self._config.tracker.weight_total(running.members, self._records[running.round_number].leader)

    def _hand_out(self, nodes: Sequence[int], *, urgent: bool = False) -> None:
        """Sends assignments; those of a running round are urgent, since their receivers may wait inside it."""
        if self._running is not None:
            orders = [self._running.assignments[node] for node in nodes]
            number, closes_s = self._running.round_number, self._running.closes_s
            self._endpoint.send_controls(nodes, number, orders, closes_s, urgent=urgent)

    def _await_reports(self, running: RoundState) -> Steps:
        """Waits until all members are done or time is up, replacing a lost leader; then closes the round."""
        round_number = running.round_number
        while (pending := running.pending()) and self._now_s < running.closes_s:
            reports: list[Done] = yield self._endpoint.inbox.expect(
                ("done", round_number), len(pending), running.closes_s
            )
            current = running.record_done(reports)
            # A leader that skipped its aggregation sends no model: members need not wait for the deadline.
            if any(report.skipped and report.node == running.round_plan.leader for report in current):
                self._endpoint.send_control(running.pending(), round_number, Close(round_number), running.closes_s)
            complaints = self._endpoint.inbox.take(("complaint", round_number))
            # Complaints of an earlier epoch are about a leader that has been replaced already.
            heeded = [complaint for complaint in complaints if complaint.epoch == running.epoch]
            if heeded:
                yield from self._check_leader(running, heeded)
        # Everything that happens at the closing instant, on any node, comes before the round is closed.
        yield self._world.clock.at(self._now_s, Rank.START, LAST)
        self._running = None
        if round_number < self._next_round or round_number in self._records:
            # Not after a repeated set-up, whose round is still to come.
            self._world.network.close_round(round_number)
        if round_number in self._records:
            self._close(self._records[round_number])
        self._endpoint.inbox.forget(("done", round_number))
        taken_part = self._to_forget.setdefault(round_number, {})
        taken_part.update(dict.fromkeys(running.assignments))
        self._world.network.when_drained(round_number, lambda: self._forget(round_number))

    def _check_leader(self, running: RoundState, complaints: Sequence[LeaderTimeout]) -> Steps:
        """Probes the leader, and re-elects if it does not acknowledge in time."""
        if running.round_plan.leader not in running.gone and (yield from self._leads(running)):
            return
        yield from self._reelect(running, {complaint.node for complaint in complaints})

    def _leads(self, running: RoundState) -> Generator[simpy.Event, Any, bool]:
        """Returns whether the leader acknowledges a probe in time; otherwise it counts as lost."""
        leader, round_number = running.round_plan.leader, running.round_number
        if leader == NOBODY:
            return False
        self._probes += 1
        # A key per probe: the late acknowledgement of an earlier probe must not confirm this one.
        key, mailbox = ("alive", self._probes), self._endpoint.inbox
        probe = LeaderProbe(round_number, running.epoch, lambda: mailbox.put(key, leader))
        self._endpoint.send_control([leader], round_number, probe)
        if (yield mailbox.expect(key, 1, self._now_s + self._config.leader_timeout_s)):
            return True
        running.gone.add(leader)
        return False

    def _reelect(self, running: RoundState, complained: set[int]) -> Steps:
        """Appoints leaders until one confirms, then informs the members; or lets a node that has the model serve it."""
        round_number, protocol = running.round_number, self._config.protocol
        while True:
            waiting = [node for node in running.pending() if node in running.members]
            running.epoch += 1
            found = arrange_without_leader(
                self._world.seed, round_number, running.epoch, waiting, complained, running.done
            )
            if found is None:
                self._endpoint.send_control(waiting, round_number, Close(round_number), running.closes_s)
                return
            if self._config.tracker is not None:
                self._config.tracker.let_correct(found)
            running.round_plan = found
            running.lasts_s = protocol.longest_s + self._config.extra_s + self._config.rules.grace
            running.closes_s = self._now_s + running.lasts_s
            nodes = np.unique(np.concatenate([edges.ravel() for edges in found.edges.values()])).tolist()
            self._assign(running, nodes)
            if found.leader == NOBODY:
                break
            # The leader alone at first: members must not turn to a new leader that may be down as well.
            self._hand_out([found.leader])
            confirmed = yield from self._leads(running)
            reports = self._endpoint.inbox.take(("done", round_number))
            if any(report.model_round == round_number for report in reports):
                running.done |= {report.node: report for report in reports}
                continue  # the old leader's model has reached a node after all, which serves it
            running.record_done(reports)
            if confirmed:
                self._note_election(running)
                break
        # Their earlier reports were about the old plan; each one has a new part to finish.
        for node in nodes:
            running.done.pop(node, None)
        self._hand_out([node for node in nodes if node != found.leader])

    def _note_election(self, running: RoundState) -> None:
        record = self._records[running.round_number]
        # What a lost leader averaged never became the round's model, so it must not count as used.
        for lost in running.gone:
            record.void(self._world.log, lost)
        record.leader, record.edges = running.round_plan.leader, running.round_plan.edges
        self._log_graph(running.round_number, running.round_plan)

    def _close(self, record: RoundRecord) -> None:
        record.close(self._world.log, self._now_s)
        if record.leader in record.aggregated_s:
            self._newest, self._holder = record.round_number, record.leader
        self._next_round = record.round_number + 1
        self.outcome.rounds_completed = record.round_number
        self._config.on_closed(record)

    def _collect(self, round_number: int) -> Steps:
        """Lets the server collect the final model: a random client's, the last leader's, or all for the mean."""
        clients = self._clients().tolist()
        if not clients or self._world.server not in self._registered:
            return
        if self._config.collect == "random" or (self._config.collect == "last_leader" and self._holder == NOBODY):
            sources = [int(stream(self._world.seed, "collect").choice(clients))]
        else:
            sources = [self._holder] if self._config.collect == "last_leader" else clients
        nodes = [*sources, self._world.server]
        invited = Invitations(self._world, self._endpoint, self._config.rules, round_number, nodes, {})
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
                self._first_answers[entry.node] = Answer(0, entry.node, "", entry.public_key)
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

    def _log_graph(self, round_number: int, round_plan: RoundPlan) -> None:
        edges = round_plan.edges["update"]
        self._world.log.graphs.extend(len(edges), round=round_number, sender=edges[:, 0], receiver=edges[:, 1])

    @property
    def _now_s(self) -> float:
        return float(self._world.clock.now)
