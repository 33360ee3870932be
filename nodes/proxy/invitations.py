"""Invitations: how the proxy finds the clients that are willing to train in a round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from nodes.messaging.control_messages import Answer, Invite
from nodes.messaging.endpoint import Endpoint
from nodes.protocols.api import RoundRules, Steps
from nodes.world import World
from p2p.transport.messages import CallAnswer


@dataclass(slots=True)
class Invitations:
    """The invitations of one round and the answers so far, also by what they say: a round may take many attempts.

    Attributes:
        answer: makes a node's answer from what its rule said
        joined: the clients that join, in the order of their answers
        without_model: the nodes that declined because they have no model yet
        why_not: the reason if too few clients joined
    """

    world: World
    endpoint: Endpoint
    rules: RoundRules
    round_number: int
    targets: Sequence[int]
    answer: Callable[[CallAnswer], Answer]
    answers: dict[int, Answer] = field(default_factory=dict)
    joined: list[int] = field(default_factory=list)
    without_model: set[int] = field(default_factory=set)
    why_not: str = ""
    _spent: int = 0

    def until_enough(self, needed: int, everyone: int, must_answer: Collection[int] = ()) -> Steps:
        """Invites all targets, and the silent ones again, until enough join or it is certain that too few will.

        Args:
            everyone: the number of clients; those that have not answered may still have budget.
            must_answer: nodes that the round cannot do without (the server of the central protocol).
        """
        give_up_s, silent = self._now_s + self.rules.invite_timeout, list(self.targets)
        while True:
            silent = [node for node in silent if node not in self.answers]
            missing = needed - len(self.joined)
            # `first_come` closes the window once the cohort is complete; `uniform` samples from all answers in it.
            wanted = max(1, missing) if self.rules.selection == "first_come" else len(silent)
            yield from self.once(silent, wanted)
            if len(self.joined) >= needed and all(node in self.answers for node in must_answer):
                return
            # Budget never returns, so this cannot improve; clients that are merely offline can, until the timeout.
            if everyone - self._spent < needed:
                self.why_not = f"{everyone - self._spent} of {needed} needed clients have budget left"
                return
            if self._now_s >= give_up_s:
                self.why_not = f"{len(self.joined)} of {needed} needed clients joined before the invitation timed out"
                return
            if len(self.joined) + len(self.without_model) >= needed and self.without_model:
                return  # enough once the decliners have a model: the proxy hands it out and invites again
            self._ask_decliners_again()

    def once(self, nodes: Sequence[int], wanted: int) -> Steps:
        """Sends one invitation and waits until `wanted` joined, all answered, or the window is over."""
        close_s = self._now_s + self.rules.invite_window
        # A repeated set-up may have ended in this round: the keys of the answers to come must not be erased with it.
        self.world.network.reopen_round(self.round_number)
        self.endpoint.invite(nodes, Invite(self.round_number, self.rules.invite_window), close_s, self.answer)
        missing = len(nodes)
        key = ("answer", self.round_number)
        while missing > 0 and wanted > 0 and self._now_s < close_s:
            new: list[Answer] = yield self.endpoint.inbox.expect(key, min(wanted, missing), close_s)
            # A node that was invited twice may answer twice. What was read first holds the key that is used; of answers
            # that are read together the last one counts, as a node may have gained a model between them.
            fresh = {answer.node: answer for answer in new if answer.node not in self.answers}
            for answer in fresh.values():
                self._add(answer)
            missing -= len(fresh)
            wanted -= sum(not answer.declines for answer in fresh.values())
        # Without this pause `until_enough` would spin at one instant when all targets have answered.
        if not nodes:
            yield self.world.clock.sleep(self.rules.invite_window, self.world.proxy)

    def _add(self, answer: Answer) -> None:
        self.answers[answer.node] = answer
        if answer.declines == "declined":
            self.without_model.add(answer.node)
        elif answer.declines:
            self._spent += 1
        elif answer.node != self.world.server:
            self.joined.append(answer.node)

    def log_absences(self, needed: int) -> None:
        """Logs the invited nodes that did not join; under `first_come`, merely slower nodes are not absent."""
        first_come = self.rules.selection == "first_come" and len(self.joined) >= needed
        asked: Iterable[int] = self.answers if first_come else self.targets
        for node in asked:
            answer = self.answers.get(node)
            if node != self.world.server and (answer is None or answer.declines):
                reason = answer.declines if answer else "offline"
                self.world.log.dropout("absence", self.round_number, node, reason, self._now_s)

    def _ask_decliners_again(self) -> None:
        """Drops the answers of nodes without a model, which may have one by now; spent budgets never return."""
        for node in self.without_model:
            del self.answers[node]
        self.without_model = set()

    @property
    def _now_s(self) -> float:
        return float(self.world.clock.now)
