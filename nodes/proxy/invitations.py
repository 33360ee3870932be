"""Invitations: how the proxy finds the clients that are willing to train in a round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from nodes.messaging.control_messages import Answer, Invite
from nodes.messaging.endpoint import Endpoint
from nodes.protocols.api import RoundRules, Steps
from nodes.world import World
from p2p.transport.messages import CallAnswer


@dataclass(slots=True)
class Invitations:
    """The invitations of one round and the answers so far.

    Attributes:
        answer: makes a node's answer from what its rule said
        why_not: the reason if too few clients joined
    """

    world: World
    endpoint: Endpoint
    rules: RoundRules
    round_number: int
    targets: Sequence[int]
    answers: dict[int, Answer]
    answer: Callable[[CallAnswer], Answer]
    why_not: str = ""

    def until_enough(self, needed: int, everyone: int, must_answer: Collection[int] = ()) -> Steps:
        """Invites all targets, and the silent ones again, until enough join or it is certain that too few will.

        Args:
            everyone: the number of clients; those that have not answered may still have budget.
            must_answer: nodes that the round cannot do without (the server of the central protocol).
        """
        give_up_s = self._now_s + self.rules.invite_timeout
        while True:
            silent = [node for node in self.targets if node not in self.answers]
            missing = needed - len(self.joined())
            # `first_come` closes the window once the cohort is complete; `uniform` samples from all answers in it.
            wanted = max(1, missing) if self.rules.selection == "first_come" else len(silent)
            yield from self.once(silent, wanted)
            spent = sum(answer.declines == "budget" for answer in self.answers.values())
            if len(self.joined()) >= needed and all(node in self.answers for node in must_answer):
                return
            # Budget never returns, so this cannot improve; clients that are merely offline can, until the timeout.
            if everyone - spent < needed:
                self.why_not = f"{everyone - spent} of {needed} needed clients have budget left"
                return
            if self._now_s >= give_up_s:
                self.why_not = f"{len(self.joined())} of {needed} needed clients joined before the invitation timed out"
                return
            if len(self.joined()) + len(self.without_model()) >= needed and self.without_model():
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
            # A node that was invited twice may answer twice; its first answer holds the key that is used.
            fresh = {answer.node: answer for answer in new if answer.node not in self.answers}
            self.answers.update(fresh)
            missing -= len(fresh)
            wanted -= sum(not answer.declines for answer in fresh.values())
        # Without this pause `until_enough` would spin at one instant when all targets have answered.
        if not nodes:
            yield self.world.clock.sleep(self.rules.invite_window, self.world.proxy)

    def joined(self) -> list[Answer]:
        """Returns the answers of the clients that join, in the order of arrival."""
        return [answer for answer in self.answers.values() if not answer.declines and answer.node != self.world.server]

    def without_model(self) -> list[int]:
        """Returns the nodes that declined because they have no model yet."""
        return sorted(node for node, answer in self.answers.items() if answer.declines == "declined")

    def log_absences(self, needed: int) -> None:
        """Logs the invited nodes that did not join; under `first_come`, merely slower nodes are not absent."""
        first_come = self.rules.selection == "first_come" and len(self.joined()) >= needed
        asked: Iterable[int] = self.answers if first_come else self.targets
        for node in asked:
            answer = self.answers.get(node)
            if node != self.world.server and (answer is None or answer.declines):
                reason = answer.declines if answer else "offline"
                self.world.log.dropout("absence", self.round_number, node, reason, self._now_s)

    def _ask_decliners_again(self) -> None:
        """Drops the answers of nodes without a model, which may have one by now; spent budgets never return."""
        for node in [node for node, answer in self.answers.items() if answer.declines == "declined"]:
            del self.answers[node]

    @property
    def _now_s(self) -> float:
        return float(self.world.clock.now)
