"""Carries out rounds that were foretold: the members' processes go on at their instants, and the books are written."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np
import simpy

from nodes.client import Client
from nodes.courses import Course, Cue, GossipCourse
from nodes.endpoint import World
from nodes.foresight import Foresight
from nodes.sealed_exchange import SealedExchange
from p2p.clock import LAST, Rank

Steps = Generator[simpy.Event, Any, None]


class Conductor:
    """Asks whether a round can be foretold, and sees it through if so; the proxy does the rest.

    Until a foretold round is over, its messages are not in the books: a run that is interrupted meanwhile tells
    nothing of it.
    """

    def __init__(self, world: World, clients: Sequence[Client], foresight: Foresight) -> None:
        self._world, self._clients, self._foresight = world, clients, foresight
        self._course: Course | None = None

    def foresee_set_up(self) -> bool:
        """Before anybody starts: whether all is known that happens until everyone has a model."""
        self._course = self._foresight.set_up()
        return self._course is not None

    def foresee(self, round_number: int) -> GossipCourse | None:
        """The course of a round that begins now, if it is clear what everybody will do."""
        return self._foresight.round(round_number)

    def set_up(self) -> Steps:
        """Until everyone has the first model, if that was foretold."""
        if self._course is None:
            raise RuntimeError("the set-up was not foretold")
        yield self._world.clock.at(self._course.end_s, Rank.START, LAST)
        self._course.write_down(self._world.network, self._world.log)
        bench = self._clients[0].bench
        first = bench.first_model()
        for client in self._clients:
            bench.adopt(client.node, first)
            client.model_round = 0

    def play(self, course: GossipCourse, addresses: Mapping[int, bytes]) -> Steps:
        """From the forming of a cohort, when members get addresses, until the proxy has heard of everybody's end."""
        if self._world.sealed is True:
            course.sealing = self._sealing(course, addresses)
        course.has_contents = self._clients[0].bench.learns or course.sealing is not None
        self._give_cues(course)
        yield self._world.clock.at(course.end_s, Rank.START, LAST)
        course.write_down(self._world.network, self._world.log)
        self._charge(course)

    def _sealing(self, course: GossipCourse, addresses: Mapping[int, bytes]) -> SealedExchange:
        world, number = self._world, course.round_number
        lives = [(node, self._clients[node].endpoint.life) for node in course.members.tolist()]
        keys = {node: world.sealer.draw_keys(world.seed, node, number, life) for node, life in lives}
        return SealedExchange(world.sealer, addresses, keys)

    def _give_cues(self, course: GossipCourse) -> None:
        """Lets each member begin when it is assigned, seal when it sends, and average when it has heard from all.

        Where updates are byte counts only, nothing of that is worth waking it for but the last.
        """
        clients, members = self._clients, course.members
        waiting = [clients[node].endpoint.mailbox for node in members.tolist()]
        cues = [mailbox.promise("orders", Cue(course, place)) for place, mailbox in enumerate(waiting)]
        times_s = [course.begins_s, course.averages_s] if course.has_contents else [course.averages_s]
        if course.sealing is not None:
            times_s.insert(1, course.sends_s)
        self._world.clock.at_each(np.concatenate(times_s), np.tile(members, len(times_s)), cues * len(times_s))

    def _charge(self, course: GossipCourse) -> None:
        """Charges the members for what they have sent, in that order."""
        if self._clients[0].ledger is not None:
            for place in np.lexsort([course.members, course.sends_s]).tolist():
                self._clients[course.members.item(place)].charge_for(course.round_number)
