"""Foretells rounds that nothing can disturb: what each member will do is worked out for all of them at once.

This is a matter of speed only. A round is foretold if nothing else is under way or planned and nobody has a choice:
everyone joins, trains in time, hears from all, and no downlink is short. Every other round is played out message by
message; what happens is the same either way (tests/scenarios/test_short_cuts.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodes.client import Client, Draft
from nodes.cohorts import choose_cohort
from nodes.controls import Answer, Control, Done, Invite, Register
from nodes.courses import Course, GossipCourse, Stretches
from nodes.endpoint import EARLY_S, World
from nodes.protocols.gossip import Gossip
from nodes.registration import AGAIN_S
from p2p.foretelling import Exchange, Foretelling, Load, Plan, Sendings
from p2p.records import NOBODY
from privacy.controls import assignment_size
from privacy.envelopes import message_size
from privacy.wire import vector_size

Nodes = NDArray[np.int64]


class Foresight:
    """What the simulation knows and no proxy could; the proxy asks it to save time, and for nothing else."""

    def __init__(self, world: World, clients: Sequence[Client], protocol: Gossip, *, whole_graph: bool) -> None:
        self._world, self._clients, self._protocol = world, clients, protocol
        self._whole_graph = whole_graph
        self._everyone = np.arange(len(clients))
        self._train_s = np.array([client.means.train_s for client in clients])
        self._key = world.sealer.draw_keys(world.seed, 0, 0).public

    def set_up(self) -> Course | None:
        """The registration of everybody and the first model's way to all clients; None if it has to be played out."""
        links = self._links()
        if links is None or self._world.sealed is True:
            return None  # the server seals the first model for everyone
        world, rules, now_s = self._world, self._protocol, self._world.clock.now
        clients, everyone = self._everyone, np.append(self._everyone, world.server)
        starts_s = np.full(len(everyone), now_s)
        registers = links.to_hub(self._control(0, Register(0, self._key)), everyone, world.proxy, starts_s)
        formed_s = registers.last_s
        closes_s = formed_s + (rules.longest_s + rules.grace)
        neighbours = np.append(np.ones_like(clients), len(clients))
        assigns = links.from_hub(self._assignments(0, neighbours, 0), world.proxy, everyone, formed_s)
        begins_s, served_s = assigns.arrived_s[:-1], float(assigns.arrived_s[-1])
        models = links.from_hub(self._vectors("bootstrap", 0, len(clients)), world.server, clients, served_s)
        have_s = np.maximum(begins_s, models.arrived_s)
        ends_s = np.append(have_s, served_s)
        reports = links.to_hub(self._control(0, Done(0, 0)), everyone, world.proxy, ends_s)
        smooth = (
            formed_s <= now_s + rules.invite_window
            and formed_s < now_s + AGAIN_S
            and links.apart(assigns, clients, models)
            and (models.arrived_s + EARLY_S > begins_s).all()
            and reports.last_s <= closes_s
        )
        waits = Stretches("wait", clients, begins_s, have_s)
        return Course(0, reports.last_s, [registers, assigns, models, reports], [waits]) if smooth else None

    def round(self, number: int) -> GossipCourse | None:
        """A round that begins now; None if it has to be played out."""
        links, world, rules = self._links(), self._world, self._protocol
        if links is None or not all(client.is_willing(number) for client in self._clients):
            return None
        now_s, everyone, proxy = world.clock.now, self._everyone, world.proxy
        invite, answer = Invite(number, rules.invite_window), Answer(number, 0, "", self._key)
        invites = links.from_hub(self._control(number, invite), proxy, everyone, now_s)
        answers = links.to_hub(self._control(number, answer), everyone, proxy, invites.arrived_s)
        formed_s = answers.last_s
        if formed_s > now_s + rules.invite_window:
            return None
        members = choose_cohort(everyone, rules.cohort_size, rules.selection, world.seed, number)
        nobody = np.empty(0, dtype=np.int64)
        arrangement = rules.arrange(Draft(world.seed, number, members, NOBODY, nobody, world.server))
        edges = arrangement.edges["update"]
        assigns = links.from_hub(self._told(number, members, edges), proxy, members, formed_s)
        begins_s, train_s = assigns.arrived_s, self._train_s[members]
        ready_s = sends_s = begins_s + train_s
        if rules.send_at == "barrier":
            sends_s = np.maximum(ready_s, formed_s + train_s.max() + (formed_s - now_s))
        update, report = self._vectors("update", number, len(edges) // len(members)), self._control(number, Done(0, 0))
        found = links.exchange(Plan(update, report, proxy, members, edges, sends_s))
        if found is None or not self._is_smooth(links, members, formed_s, assigns, found):
            return None
        return GossipCourse(
            round_number=number,
            end_s=found.reports.last_s,
            sendings=[invites, answers, assigns, found.updates, found.reports],
            stretches=[
                Stretches("invite", members, invites.arrived_s[members], begins_s),
                Stretches("train", members, begins_s, ready_s),
                Stretches("idle", members, ready_s, sends_s),
                Stretches("wait", members, sends_s, found.averages_s),
                Stretches("aggregate", members, found.first_s, found.averages_s),
            ],
            formed_s=formed_s,
            members=members,
            arrangement=arrangement,
            begins_s=begins_s,
            sends_s=sends_s,
            averages_s=found.averages_s,
            heard=found.heard,
            include_own=rules.include_own,
        )

    def _is_smooth(
        self, links: Foretelling, members: Nodes, formed_s: float, assigns: Sendings, found: Exchange
    ) -> bool:
        """Whether everyone has all in time, and no update meets its receiver's assignment, or is far too early."""
        rules, begins_s, updates = self._protocol, assigns.arrived_s, found.updates
        closes_s = formed_s + (rules.longest_s + rules.grace)
        receivers = self._places(members, np.asarray(updates.receivers))
        return bool(
            (found.averages_s <= np.minimum(begins_s + rules.deadline, closes_s)).all()
            and links.apart(assigns, receivers, updates)
            and (updates.arrived_s + EARLY_S > begins_s[receivers]).all()
            and found.reports.last_s <= closes_s
        )

    def _links(self) -> Foretelling | None:
        world = self._world
        links = None if world.triggers.watches else world.network.foretell()
        return links if links is not None and links.knows(len(self._clients), (world.proxy, world.server)) else None

    def _control(self, number: int, control: Control) -> Load:
        return self._load("control", number, control.payload_bytes)

    def _told(self, number: int, members: Nodes, edges: Nodes) -> Load:
        """The members' assignments."""
        if self._whole_graph:
            return self._assignments(number, np.full(len(members), len(members)), len(edges))
        senders, receivers = edges.T
        pairs = np.sort(np.concatenate([senders << 32 | receivers, receivers << 32 | senders]))
        ends = pairs[np.append(True, pairs[1:] != pairs[:-1])] >> 32
        return self._assignments(number, np.bincount(self._places(members, ends), minlength=len(members)), 0)

    def _places(self, members: Nodes, nodes: Nodes) -> Nodes:
        """Where these nodes stand among the members."""
        return nodes if len(members) == len(self._everyone) else np.searchsorted(members, nodes)

    def _assignments(self, number: int, neighbours: Nodes, edges: int) -> Load:
        keyed = bool(self._key)
        each = assignment_size(1, 0, keyed) - assignment_size(0, 0, keyed)
        return self._load("control", number, assignment_size(0, edges, keyed) + neighbours * each)

    def _vectors(self, kind: str, number: int, receivers: int) -> Load:
        payload_bytes = vector_size(self._clients[0].bench.dimension)
        return self._load(kind, number, payload_bytes, many=receivers > 1)

    def _load(self, kind: str, number: int, payload_bytes: Nodes | int, *, many: bool = False) -> Load:
        overhead_bytes = message_size(0, many=many, sealed=self._world.sealed)
        return Load(kind, number, payload_bytes + overhead_bytes, overhead_bytes)
