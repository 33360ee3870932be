"""Expected bytes of a run by message kind, from the projected rounds and the wire format.

Message loss enters by the expected number of transmissions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nodes.faults.availability import Always
from nodes.messaging.control_messages import (
    Answer,
    Assignment,
    CommitReply,
    CommitRequest,
    Control,
    Done,
    Invite,
    Register,
)
from nodes.protocols.api import RoundPlan
from nodes.protocols.central import Central
from nodes.protocols.rotating_leader import RotatingLeader
from privacy.anonymity.settings import Sealed
from privacy.calibration.noise_plan import NoisePlan
from privacy.sealing.message_sizes import message_size
from privacy.stages.wire import DENSE, WireFormat
from scenarios.composition.learning_setup import memory_rules
from scenarios.planning.participation import PlannedRound, Rehearsal
from scenarios.planning.timing import Trial
from scenarios.schema import Scenario

Bytes = Counter[str]


class Sizes:
    """Message sizes of a scenario, in bytes."""

    def __init__(self, scenario: Scenario, dimension: int, wire: WireFormat = DENSE) -> None:
        self._scenario, self._dimension, self._wire = scenario, dimension, wire
        # Public keys travel in registrations and answers only if messages are sealed.
        self._keyed = scenario.anonymity.sealed is not False

    def vectors(self, edges: NDArray[np.int64], kind: str, round_number: int = 0) -> int:
        """Returns the bytes of all messages of a kind along these edges, relay hops included.

        Each sender has one payload, sealed either for a single receiver or for several at once.
        """
        wire = self._wire.bound(self._scenario.seed, round_number, 0, {}) if kind == "update" else DENSE
        _, receivers = np.unique(edges[:, 0], return_counts=True)
        single, many = int((receivers == 1).sum()), int(receivers[receivers > 1].sum())
        # A training loss that goes with an update takes eight bytes.
        payload = wire.size_bytes(self._dimension) + 8 * (kind == "update" and self._scenario.aggregate.sends_loss)
        if kind in ("model", "handover", "collect"):
            attached = memory_rules(self._scenario, self._dimension).attachments
            payload += sum(part.size_bytes(self._dimension) for part in attached.values())
        return single * self._vector(payload, many=False) + many * self._vector(payload, many=True)

    def control(self, said: Control) -> int:
        """Returns the size of one control message."""
        return message_size(said.payload_bytes, many=False, sealed=self._sealed)

    def register(self) -> int:
        """Returns the size of one registration."""
        return self.control(Register(0, self._keyed))

    def question(self) -> int:
        """Returns the size of one invitation and its answer."""
        return self.control(Invite(1, 1.0)) + self.control(Answer(1, 0, "", self._keyed))

    def refusal(self) -> int:
        """Returns by how many bytes a refusal is longer than a consent."""
        return self.control(Answer(1, 0, "budget", self._keyed)) - self.control(Answer(1, 0, "", self._keyed))

    def commit(self) -> int:
        """Returns the size of a leader's request to commit its average, and of the answer."""
        return self.control(CommitRequest(1, 0, 0)) + self.control(CommitReply(1, 0))

    def orders(self, round_plan: RoundPlan, members: NDArray[np.int64]) -> int:
        """Returns the size of a round's assignments and completion reports."""
        ends = np.concatenate([*(edges for edges in round_plan.edges.values()), np.zeros((0, 2), dtype=np.int64)])
        nodes = np.unique(np.concatenate([ends.ravel(), members]))
        updates = len(round_plan.edges.get("update", ()))
        whole = updates if self._scenario.anonymity.hand_out == "graph" else 0
        # An assignment lists every peer of its node once, whether the node sends to it, receives from it, or both.
        pairs = np.unique(np.concatenate([ends, ends[:, ::-1]]), axis=0)
        # Handing out the graph lists all members to every node; otherwise each node learns only its peers.
        known = len(nodes) * len(members) if whole else len(pairs)
        reads = self._scenario.schedule.reads
        losses = {"noisy_losses": len(members), "public_loss": 1}.get(reads, 0)
        loss = self.control(Done(1, 0, has_loss=True)) - self.control(Done(1, 0))
        one = self.control(self._assignment(0, whole)) + self.control(Done(1, 0))
        # Sizes are linear in the number of entries, so one entry's size is a difference.
        entry = self.control(self._assignment(1, 0)) - self.control(self._assignment(0, 0))
        weights = 0 if round_plan.weights is None else len(round_plan.weights) + len(round_plan.own_weights)
        weight = self.control(self._assignment(0, 0)._replace(mixing={b"": 1.0})) - self.control(self._assignment(0, 0))
        return len(nodes) * one + known * entry + weights * weight + losses * loss

    def _assignment(self, known: int, edges: int) -> Assignment:
        planned = 1.0 if self._scenario.schedule.reads else 0.0
        keyed = self._keyed
        return Assignment(1, "member", b"", {}, {}, known=known, edges=edges, keyed=keyed, planned_rounds=planned)

    def _vector(self, payload: int, *, many: bool) -> int:
        """Returns the bytes of one message over all its hops."""
        size = message_size(payload, many=many and self._sealed is not False, sealed=self._sealed)
        if not self._scenario.anonymity.relay_count:
            return size
        hops, layer = self._scenario.anonymity.hops, message_size(0, many=False, sealed=self._sealed)
        # Each relay removes one layer, so the hops carry hops, hops - 1, ..., 0 layers.
        return (hops + 1) * size + layer * hops * (hops + 1) // 2

    @property
    def _sealed(self) -> Sealed:
        return self._scenario.anonymity.sealed


def planned_bytes(
    scenario: Scenario, rehearsal: Rehearsal, dimension: int, noise: NoisePlan | None, trial: Trial | None = None
) -> dict[str, Mapping[str, int]]:
    """Returns bytes by kind of an average round, and of the whole run with set-up and collection.

    Where clients come and go, rounds are those of the trial: what is cut off is sent again, and members that were away
    are handed the model. Only a trial tells how often.
    """
    sizes = Sizes(scenario, dimension, DENSE if noise is None else noise.wire)
    rounds: Bytes = Counter()
    for planned in rehearsal.arranged:
        rounds.update(_round(scenario, sizes, planned))
    if trial is not None and not isinstance(scenario.availability, Always):
        factor = transmissions(scenario.network.loss, scenario.network.retransmit.tries)
        share = len(rehearsal.arranged) / trial.rounds
        # The trial sends plain vectors, so its bytes are scaled to those of the update's format.
        plain: Bytes = Counter()
        for planned in rehearsal.arranged:
            plain.update(_round(scenario, Sizes(scenario, dimension, DENSE), planned))
        scale = {kind: rounds[kind] / plain[kind] for kind in plain if plain[kind]}
        # Without the losses, which are counted below by their expectation.
        tried = {kind: amount * share * scale.get(kind, 1.0) / factor for kind, amount in trial.bytes.items()}
        rounds = Counter({kind: round(amount) for kind, amount in tried.items()})
    projected = max(len(rehearsal.arranged), 1)
    total = Counter({kind: round(amount * rehearsal.rounds / projected) for kind, amount in rounds.items()})
    total.update(_set_up(scenario, sizes))
    total.update(_end(scenario, sizes, rehearsal))
    factor = transmissions(scenario.network.loss, scenario.network.retransmit.tries)
    per_round = {kind: round(factor * amount / projected) for kind, amount in rounds.items()}
    return {"per_round": per_round, "total": {kind: round(factor * amount) for kind, amount in total.items()}}


def transmissions(loss: float, tries: int) -> float:
    """Returns the expected number of transmissions of a message until it arrives or is given up."""
    return float(sum(loss**attempt for attempt in range(tries)))


def _round(scenario: Scenario, sizes: Sizes, planned: PlannedRound) -> Bytes:
    edges_of = planned.round_plan.edges
    found: Bytes = Counter({kind: sizes.vectors(edges, kind, planned.number) for kind, edges in edges_of.items()})
    found["control"] = _invited(scenario) * sizes.question() + planned.declining * sizes.refusal()
    found["control"] += sizes.orders(planned.round_plan, planned.members)
    if isinstance(scenario.protocol, RotatingLeader):
        found["control"] += sizes.commit()
    return found


def _invited(scenario: Scenario) -> int:
    # A central protocol invites the server along with the clients.
    return scenario.clients + isinstance(scenario.protocol, Central)


def _set_up(scenario: Scenario, sizes: Sizes) -> Bytes:
    # The server registers as well.
    found: Bytes = Counter({"control": (scenario.clients + 1) * sizes.register()})
    if not isinstance(scenario.protocol, Central):
        clients = np.arange(scenario.clients)
        edges = np.column_stack([np.full_like(clients, scenario.clients + 3), clients])
        found["control"] += sizes.orders(RoundPlan({"bootstrap": edges}), clients[:0])
        found["bootstrap"] = sizes.vectors(edges, "bootstrap")
    return found


def _end(scenario: Scenario, sizes: Sizes, rehearsal: Rehearsal) -> Bytes:
    found: Bytes = Counter()
    if rehearsal.stopped_in is not None:
        # The round that fails for lack of budget has sent its invitations.
        found["control"] += _invited(scenario) * sizes.question()
    if not isinstance(scenario.protocol, Central):
        sources = np.arange(scenario.clients if getattr(scenario.protocol, "collect", "") == "mean" else 1)
        edges = np.column_stack([sources, np.full_like(sources, scenario.clients + 3)])
        found["collect"] = sizes.vectors(edges, "collect")
        found["control"] += (len(sources) + 1) * sizes.question()
        found["control"] += sizes.orders(RoundPlan({"collect": edges}), sources[:0])
    return found
