"""The trusted proxy: it knows who is who, forms each round's cohort, and hands out addresses and keys.

It never receives an update. Between its actions it only waits, always with a deadline, so no run hangs on a lost
message.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import simpy

from nodes.client import Arrangement, Draft, PeerProtocol
from nodes.cohorts import choose_cohort
from nodes.controls import Answer, Assignment, Invite, Peer, Register
from nodes.endpoint import Endpoint, World
from nodes.protocols.rules import RoundRules
from nodes.rounds import RoundRecord
from p2p.records import NOBODY
from p2p.streams import stream

Steps = Generator[simpy.Event, Any, None]
Answering = Generator[simpy.Event, Any, dict[int, Answer]]


@dataclass(slots=True)
class Plan:
    """What the proxy is told about the run."""

    clients: int
    rounds: int
    rules: RoundRules
    protocol: PeerProtocol
    hand_out: Literal["neighbours", "graph"]
    central: bool
    collect: str
    on_forming: Callable[[int, np.ndarray[Any, Any]], None]
    on_closed: Callable[[RoundRecord], None]
    on_quiet: Callable[[int, Sequence[int]], None]


@dataclass(slots=True)
class Outcome:
    """How the run ended."""

    rounds_completed: int = 0
    stopped_because: str = "all rounds done"
    collected_from: list[int] = field(default_factory=list)


class Proxy:
    """One process; `outcome` says afterwards how the run ended."""

    def __init__(self, world: World, plan: Plan, records: dict[int, RoundRecord]) -> None:
        self.outcome = Outcome()
        self._world, self._plan, self._records = world, plan, records
        self._endpoint = Endpoint(world.proxy, world)
        self._registered: dict[int, Answer] = {}
        self._newest, self._holder = 0, NOBODY

    def run(self) -> Steps:
        """Set-up, the rounds, and the collection of the final model."""
        yield from self._set_up()
        for round_number in range(1, self._plan.rounds + 1):
            going_on = yield from self._round(round_number)
            if not going_on:
                break
            self.outcome.rounds_completed = round_number
        if not self._plan.central:
            yield from self._collect(self._plan.rounds + 1)

    def _set_up(self) -> Steps:
        """Registers everyone and lets the server hand out the first model (round 0)."""
        everyone = self._plan.clients + 1
        deadline_s = self._now_s + self._plan.rules.invite_timeout
        registered: list[Register] = yield self._endpoint.mailbox.expect("register", everyone, deadline_s)
        for entry in registered:
            self._world.router.register(entry.node)
            self._registered[entry.node] = Answer(0, entry.node, "", entry.public_key)
        members = np.array(sorted(set(self._registered) - {self._world.server}), dtype=np.int64)
        if self._world.server not in self._registered:
            return  # nobody gets a first model, so everyone will decline
        edges = np.column_stack([np.full_like(members, self._world.server), members])
        arrangement = Arrangement({"bootstrap": edges} if not self._plan.central else {})
        yield from self._carry_out(0, arrangement, self._registered, "set_up", self._plan.rules.invite_timeout)

    def _round(self, round_number: int) -> Generator[simpy.Event, Any, bool]:
        """One round; False if there cannot be one, with the reason in the outcome."""
        start_s, first_row = self._now_s, len(self._world.log.messages)
        answers = yield from self._invite_until_enough(round_number)
        joined = _joined(answers, self._world.server)
        if len(joined) < self._plan.protocol.cohort_size or (self._plan.central and self._world.server not in answers):
            return False
        size, rules = self._plan.protocol.cohort_size, self._plan.rules
        members = choose_cohort(joined, size, rules.selection, self._world.seed, round_number)
        arrangement = self._plan.protocol.arrange(self._draft(round_number, members, answers))
        record = RoundRecord(round_number, start_s, members, arrangement.leader, arrangement.edges, first_row=first_row)
        self._records[round_number] = record
        self._plan.on_forming(round_number, members)
        self._log_graph(round_number, arrangement)
        barrier_s = self._barrier(members, answers, start_s) if rules.send_at == "barrier" else None
        longest_s = self._plan.protocol.longest_s + rules.grace
        yield from self._carry_out(round_number, arrangement, answers, "", longest_s, members, barrier_s)
        return True

    def _invite_until_enough(self, round_number: int) -> Answering:
        """Invites all, and again those who did not answer, until enough join, or it is clear that they will not."""
        needed, rules = self._plan.protocol.cohort_size, self._plan.rules
        answers: dict[int, Answer] = {}
        give_up_s = self._now_s + rules.invite_timeout
        targets = (
            sorted(self._registered) if self._plan.central else sorted(set(self._registered) - {self._world.server})
        )
        while True:
            silent = [node for node in targets if node not in answers]
            wanted = (
                max(1, needed - len(_joined(answers, self._world.server)))
                if rules.selection == "first_come"
                else len(silent)
            )
            yield from self._invite(round_number, silent, answers, wanted)
            joined = len(_joined(answers, self._world.server))
            spent = sum(answer.declines == "budget" for answer in answers.values())
            if joined >= needed and (self._world.server in answers or not self._plan.central):
                break
            if self._plan.clients - spent < needed:
                self._stop(round_number, f"{self._plan.clients - spent} of {needed} needed clients have budget left")
                break
            if self._now_s >= give_up_s or len(answers) == len(targets):
                self._stop(round_number, f"{joined} of {needed} needed clients joined before the invitation timed out")
                break
        # Who was merely slower than the first to come was not absent.
        asked = answers if rules.selection == "first_come" and joined >= needed else targets
        self._log_absences(round_number, asked, answers)
        return answers

    def _invite(self, round_number: int, nodes: Sequence[int], answers: dict[int, Answer], wanted: int) -> Steps:
        """One invitation: waits until `wanted` have joined, all have answered, or the window is over."""
        rules = self._plan.rules
        close_s = self._now_s + rules.invite_window
        self._endpoint.tell(nodes, round_number, Invite(round_number, rules.invite_window), close_s)
        missing = len(nodes)
        while missing > 0 and wanted > 0 and self._now_s < close_s:
            key = ("answer", round_number)
            new: list[Answer] = yield self._endpoint.mailbox.expect(key, min(wanted, missing), close_s)
            # Who was invited twice may answer twice.
            fresh = {answer.node: answer for answer in new if answer.node not in answers}
            answers.update(fresh)
            missing -= len(fresh)
            wanted -= sum(not answer.declines for answer in fresh.values())

    def _draft(self, round_number: int, members: np.ndarray[Any, Any], answers: dict[int, Answer]) -> Draft:
        stale = np.array(
            [node for node in members.tolist() if answers[node].model_round < self._newest], dtype=np.int64
        )
        holder = self._holder if self._holder in answers else NOBODY
        return Draft(self._world.seed, round_number, members, holder, stale, self._world.server)

    def _barrier(self, members: np.ndarray[Any, Any], answers: dict[int, Answer], invited_s: float) -> float:
        """When all members should be ready: the slowest training, plus once more what the invitation took."""
        slowest_s = max(answers[node].train_s for node in members.tolist())
        return self._now_s + slowest_s + (self._now_s - invited_s)

    def _carry_out(
        self,
        round_number: int,
        arrangement: Arrangement,
        answers: dict[int, Answer],
        role: str,
        longest_s: float,
        members: np.ndarray[Any, Any] | None = None,
        barrier_s: float | None = None,
    ) -> Steps:
        """Hands out assignments, waits until all are done or time is up, and forgets the round once it is quiet."""
        ends = [edges.ravel() for edges in arrangement.edges.values()]
        nodes = np.unique(np.concatenate([*ends, np.empty(0, np.int64) if members is None else members])).tolist()
        closes_s = self._now_s + longest_s
        for node, assignment in self._assignments(round_number, arrangement, answers, nodes, role, members, barrier_s):
            self._endpoint.tell([node], round_number, replace(assignment, closes_s=closes_s), closes_s)
        if nodes:
            yield self._endpoint.mailbox.expect(("done", round_number), len(nodes), closes_s)
        self._endpoint.mailbox.forget(("done", round_number))
        if round_number in self._records:
            self._close(self._records[round_number])
        self._world.network.when_quiet(round_number, lambda: self._forget(round_number, nodes))

    def _assignments(
        self,
        round_number: int,
        arrangement: Arrangement,
        answers: dict[int, Answer],
        nodes: Sequence[int],
        role: str,
        members: np.ndarray[Any, Any] | None,
        barrier_s: float | None,
    ) -> list[tuple[int, Assignment]]:
        addresses = self._world.router.open_round(round_number, nodes)
        if round_number in self._records:
            self._records[round_number].addresses = addresses
        peers = {node: Peer(addresses[node], answers[node].public_key) for node in nodes}
        send_to: dict[int, dict[str, list[Peer]]] = {node: {} for node in nodes}
        expect_from: dict[int, dict[str, list[Peer]]] = {node: {} for node in nodes}
        for kind, edges in arrangement.edges.items():
            for sender, receiver in edges.tolist():
                send_to[sender].setdefault(kind, []).append(peers[receiver])
                expect_from[receiver].setdefault(kind, []).append(peers[sender])
        inside = set(() if members is None else members.tolist())
        told = len(arrangement.edges.get("update", ())) if self._plan.hand_out == "graph" else 0
        assignments = []
        for node in nodes:
            part = role or _role_of(node, arrangement.leader, inside)
            neighbours = {
                peer for lists in (send_to[node], expect_from[node]) for peers_ in lists.values() for peer in peers_
            }
            known = len(inside) if told else len(neighbours)
            keyed = bool(peers[node].public_key)
            routes = send_to[node], expect_from[node]
            fields = (round_number, part, peers[node].address, *routes, barrier_s, known, told, keyed)
            assignments.append((node, Assignment(*fields)))
        return assignments

    def _close(self, record: RoundRecord) -> None:
        record.close(self._world.log, self._now_s)
        if record.leader in record.aggregated_s:
            self._newest, self._holder = record.round_number, record.leader
        self._plan.on_closed(record)

    def _collect(self, round_number: int) -> Steps:
        """The server fetches the final model: a random client's, the last leader's, or all of them for the mean."""
        clients = sorted(set(self._registered) - {self._world.server})
        if not clients or self._world.server not in self._registered:
            return
        if self._plan.collect == "random" or (self._plan.collect == "last_leader" and self._holder == NOBODY):
            sources = [int(stream(self._world.seed, "collect").choice(clients))]
        else:
            sources = [self._holder] if self._plan.collect == "last_leader" else clients
        answers: dict[int, Answer] = {}
        give_up_s = self._now_s + self._plan.rules.invite_timeout
        while silent := [node for node in (*sources, self._world.server) if node not in answers]:
            yield from self._invite(round_number, silent, answers, len(silent))
            if self._now_s >= give_up_s:
                break
        sources = [node for node in sources if node in answers]
        if not sources or self._world.server not in answers:
            return
        edges = np.array([(node, self._world.server) for node in sources], dtype=np.int64)
        longest_s = self._plan.rules.invite_timeout
        yield from self._carry_out(round_number, Arrangement({"collect": edges}), answers, "collect", longest_s)
        self.outcome.collected_from = sources

    def _forget(self, round_number: int, nodes: Sequence[int]) -> None:
        self._world.router.close_round(round_number)
        self._plan.on_quiet(round_number, nodes)

    def _stop(self, round_number: int, why: str) -> None:
        self.outcome.stopped_because = f"round {round_number}: {why}"

    def _log_graph(self, round_number: int, arrangement: Arrangement) -> None:
        edges = arrangement.edges["update"]
        self._world.log.graphs.extend(len(edges), round=round_number, sender=edges[:, 0], receiver=edges[:, 1])

    def _log_absences(self, round_number: int, targets: Iterable[int], answers: dict[int, Answer]) -> None:
        for node in targets:
            answer = answers.get(node)
            if answer is None or answer.declines:
                reason = answer.declines if answer else "offline"
                self._world.log.dropout("absence", round_number, node, reason, self._now_s)

    @property
    def _now_s(self) -> float:
        return float(self._world.clock.now)


def _joined(answers: dict[int, Answer], server: int) -> list[Answer]:
    """The clients that want to train, in the order of their answers."""
    return [answer for answer in answers.values() if not answer.declines and answer.node != server]


def _role_of(node: int, leader: int, members: set[int]) -> str:
    if node == leader:
        return "leader"
    return "member" if node in members else "holder"
