"""A participant's side of the exchange: send and receive shares, protect the upload, answer correction requests."""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from nodes.learning.deferred_vectors import Vector
from nodes.messaging.control_messages import Assignment, Peer, PeerLost
from nodes.noise_shares.exchange_log import NoiseShareLog, united
from nodes.noise_shares.exchange_log import Opened as OpenedShares
from nodes.noise_shares.plan import NoiseSharePlan
from nodes.noise_shares.wire_messages import Missing, Opened, Opening, missing_payload, opening_payload, seed_payload
from p2p.random_streams import stream
from privacy.noise_shares.seed_expansion import SEED_BYTES, address_number
from privacy.noise_shares.uploads import ReceivedShare, Share, Upload
from privacy.sealing.envelopes import Payload

if TYPE_CHECKING:
    from nodes.messaging.round_session import Received
    from nodes.roles.client import Client
    from nodes.roles.participant import Participant
    from nodes.world import World

Exchanging = Generator[simpy.Event, Any, bool]
Repairing = Generator[simpy.Event, Any, list[Vector]]


class NoiseShareClient:
    """One node's side of the exchange; a crash destroys its uploads but not its count of draws."""

    def __init__(self, node: int, world: World, plan: NoiseSharePlan, share_log: NoiseShareLog) -> None:
        self._node, self._world, self._plan, self._share_log = node, world, plan, share_log
        self._groups = plan.group_of()
        self._uploads: dict[int, Upload] = {}
        self._disclosed: dict[int, OpenedShares] = {}
        self._withheld: set[int] = set()
        self._draws = 0

    def lose_state(self) -> None:
        """Discards seeds and received shares at a crash; the count of draws stays, so that no seed is drawn twice."""
        self._uploads, self._disclosed, self._withheld = {}, {}, set()

    def protects(self, round_number: int) -> bool:
        """Returns whether this round's update has its noise."""
        return round_number in self._uploads

    def charged_std(self, assignment: Assignment) -> float:
        """Returns the noise per coordinate of the unweighted update that cannot be cancelled; only that is charged."""
        weight = self._plan.weight(self._node, assignment.weight_total)
        # Independent noises add in variance. `tau_ind` is added to the weighted upload, hence the division.
        return math.hypot(float(self._plan.noise_std[self._node]), self._plan.settings.tau_ind / weight)

    def exchange(self, client: Client, assignment: Assignment, deadline_s: float) -> Exchanging:
        """Sends and receives shares and adds the noise to the upload; returns False if it must not be sent.

        A round has one exchange: a member that takes part again under a newer plan keeps its upload, or withholds it.
        """
        settings, number = self._plan.settings, assignment.round_number
        # Another upload of the same update, with other noise, would let its receivers average the noise away.
        if number in self._uploads or number in self._withheld:
            return number in self._uploads
        until_s = max(deadline_s - self._plan.margin_s, 0.0)
        # Names the streams of this exchange; it survives a crash, so no seed is drawn a second time.
        self._draws += 1
        lost = self._lost_partners(client, number)
        # No share for a partner that is lost already: its negated part would never enter the sum and cancel.
        receivers = [peer for peer in assignment.send_to.get("share", ()) if peer.address not in lost]
        senders = assignment.expect_from.get("share", ())
        if receivers:
            self._world.phase_hooks.notify(self._node, number, "share")
        sent = self._send(client, assignment, receivers, until_s)
        taken = yield from self._take(client, assignment, senders, until_s)
        # `omit` waits out the deadline, since a partner may be reported lost until then.
        if settings.policy == "omit":
            yield from client.wait_until(until_s, assignment, "idle")
            lost |= self._lost_partners(client, number)
            taken = tuple(one for one in taken if one.share.sender not in {self._true(address) for address in lost})
        upload = self._decide(assignment, sent, taken, len(senders))
        if upload is None:
            self._share_log.skipped.append((number, self._node))
            self._withheld.add(number)
            return False
        self._uploads[number] = upload
        self._share_log.add(upload)
        node, share_log = self._node, self._share_log
        client.learning.protect(node, number, upload.weight, lambda: share_log.noise(number, node))
        return True

    def _decide(
        self, assignment: Assignment, sent: tuple[Share, ...], taken: tuple[ReceivedShare, ...], expected: int
    ) -> Upload | None:
        """Returns the upload; None if too few shares arrived and the client withholds its update."""
        settings, variance = self._plan.settings, self._plan.settings.tau_ind**2
        weight = self._plan.weight(self._node, assignment.weight_total)
        # A leader has no partners, and its update leaves its node only inside the model.
        if assignment.role != "leader" and len(taken) < settings.least_shares:
            if settings.when_short == "skip":
                return None
            sigma = self._plan.sigma(self._node, assignment.weight_total)
            partners = max(len(assignment.send_to.get("share", ())), 1)
            # Independent noise replaces missing shares (sigma^2 / partners each), and the sent ones if none left.
            variance += sigma**2 * (max(expected - len(taken), 1) / partners + (not sent))
        seed = self._random("share-independent").bytes(SEED_BYTES)
        return Upload(assignment.round_number, self._node, weight, sent, taken, math.sqrt(variance), seed)

    def _send(
        self, client: Client, assignment: Assignment, receivers: Sequence[Peer], until_s: float
    ) -> tuple[Share, ...]:
        """Makes this client's shares and sends them, unless the receivers' deadline has passed."""
        if not receivers:
            return ()
        # The shares' variances add up to sigma_k^2, whatever their number.
        std = self._plan.sigma(self._node, assignment.weight_total) / math.sqrt(len(receivers))
        if self._plan.settings.share_as == "pairwise":
            return tuple(self._agreed(client, assignment, peer, std, outward=True) for peer in receivers)
        # Shares would arrive too late to be used, and the upload would carry noise that does not cancel.
        if self._world.clock.now > until_s:
            return ()
        random = self._random("share-seed")
        shares = [self._share(assignment, peer, std, random.bytes(SEED_BYTES), outward=True) for peer in receivers]
        number = assignment.round_number
        self._share_log.shares |= {(number, share.sender, share.receiver): share for share in shares}
        items = [(peer, self._payload(share)) for peer, share in zip(receivers, shares, strict=True)]
        client.endpoint.send_each(number, "share", items, until_s)
        return tuple(shares)

    def _take(
        self, client: Client, assignment: Assignment, senders: Sequence[Peer], until_s: float
    ) -> Generator[simpy.Event, Any, tuple[ReceivedShare, ...]]:
        """Returns the shares received in time, at most one per sender; `pairwise` shares are derived, not received."""
        if self._plan.settings.share_as == "pairwise":
            count = len(assignment.send_to.get("share", ())) or len(senders)
            std = self._plan.sigma(self._node, assignment.weight_total) / math.sqrt(max(count, 1))
            shares = [self._agreed(client, assignment, peer, std, outward=False) for peer in senders]
            return self._multiplied(shares)
        received: list[Received] = yield from client.collect(assignment, "share", until_s)
        received += client.endpoint.inbox.take(("share", assignment.round_number))
        first: dict[bytes, Received] = {}
        for item in received:
            # A duplicate would take the same share off twice.
            first.setdefault(item.sender, item)
        client.endpoint.mark_used(list(first.values()))
        numbers = [self._received_share(assignment.round_number, item) for item in first.values()]
        return self._multiplied([share for share in numbers if share is not None])

    def _received_share(self, round_number: int, item: Received) -> Share | None:
        """Returns the share of a message; an unsealed seed corrupted in transit expands to other noise."""
        share = self._share_log.shares.get((round_number, self._true(item.sender), self._node))
        # The receiver takes off what it was sent, also where that was damaged on the way.
        return share._replace(seed=item.value) if share and isinstance(item.value, bytes) else share

    def _multiplied(self, shares: Sequence[Share]) -> tuple[ReceivedShare, ...]:
        random, count = self._random("share-factor"), max(len(shares), 1)
        group = self._groups.get(self._node, -1)
        found = []
        # Sorted: factor seeds come from one stream, so they must not depend on the order of arrival.
        for share in sorted(shares, key=lambda share: share.sender):
            together = group >= 0 and self._groups.get(share.sender, -1) == group
            found.append(ReceivedShare(share, self._plan.tau(count, together), random.bytes(SEED_BYTES)))
        return tuple(found)

    def _lost_partners(self, client: Client, round_number: int) -> set[bytes]:
        """Returns the addresses of the partners that the proxy has reported as lost."""
        notices: list[PeerLost] = client.endpoint.inbox.take(("gone", round_number))
        return {notice.address for notice in notices}

    def _share(self, assignment: Assignment, peer: Peer, std: float, seed: bytes, outward: bool) -> Share:
        mine, theirs = self._node, self._true(peer.address)
        my_number, their_number = address_number(assignment.address), address_number(peer.address)
        if outward:
            return Share(assignment.round_number, mine, theirs, my_number, their_number, std, seed)
        return Share(assignment.round_number, theirs, mine, their_number, my_number, std, seed)

    def _agreed(self, client: Client, assignment: Assignment, peer: Peer, std: float, outward: bool) -> Share:
        ends = (assignment.address, peer.address)
        seed = client.endpoint.agree(assignment.round_number, peer, b"".join(ends if outward else ends[::-1]))
        return self._share(assignment, peer, std, seed, outward)

    def _payload(self, share: Share) -> Payload:
        if self._plan.settings.share_as == "seed":
            return seed_payload(share.seed, share.std)
        maker = self._share_log.maker
        return Vector(maker.dimension, lambda: (-maker.share(share)).astype(np.float32)).payload()

    def repair(self, asker: Participant, assignment: Assignment, received: Sequence[Received]) -> Repairing:
        """Runs the aggregator's part of `correct`: asks survivors about missing peers; returns the corrections."""
        number, heard = assignment.round_number, {item.sender for item in received}
        peers = assignment.expect_from.get("update", ())
        missing = [peer.address for peer in peers if peer.address not in heard]
        if self._plan.settings.policy != "correct" or not missing or not heard:
            return []
        question = missing_payload(missing)
        survivors = [(peer, question) for peer in peers if peer.address in heard]
        give_up_s = asker.deadline_s(assignment, self._plan.settings.correct_within)
        asker.endpoint.send_each(number, "correction", survivors, give_up_s)
        key = ("correction", number)
        answers: list[Received] = yield asker.endpoint.inbox.expect(key, len(survivors), give_up_s)
        asker.endpoint.mark_used(answers)
        nodes = [self._true(item.sender) for item in answers]
        # The aggregator is a survivor too; it asks itself without a message.
        if self._open(number, self._node, {self._true(address) for address in missing}) is not None:
            nodes.append(self._node)
        return self._repairs(number, sorted(set(nodes)))

    def _repairs(self, round_number: int, nodes: Sequence[int]) -> list[Vector]:
        share_log = self._share_log
        answered = [node for node in nodes if (round_number, self._node, node) in share_log.answers]
        share_log.repairs[round_number, self._node] = tuple(answered)
        return [_vector(share_log, round_number, self._node, node) for node in answered]

    def answer(self, client: Participant, round_number: int, item: Received) -> bool:
        """Runs a survivor's part: sends its shares with the missing peers; returns False if this is no request."""
        if not isinstance(item.value, Missing):
            return False
        # Places in the request's list stand for addresses in the answer: two bytes instead of 32.
        lost = {self._true(address): place for place, address in enumerate(item.value.addresses)}
        asker = self._true(item.sender)
        opened = self._open(round_number, asker, lost.keys()) or ((), ())
        client.endpoint.mark_used([item])
        payload = opening_payload(_opening(opened, lost))
        if any(opened) and self._plan.settings.share_as == "vector":
            payload = _vector(self._share_log, round_number, asker, self._node).payload()
        client.endpoint.send(round_number, "correction", payload)
        return True

    def _open(self, round_number: int, asker: int, lost: Collection[int]) -> OpenedShares | None:
        """Returns its shares with lost peers; None without any, or if too few others would remain to protect it."""
        upload = self._uploads.get(round_number)
        if upload is None:
            return None
        opened = upload.with_peers(lost)
        # What an earlier leader of the round was told protects no more: leaders may pool their answers.
        disclosed = united(self._disclosed.get(round_number, ((), ())), opened)
        # Opened shares protect no more: those that remain must be as many as an upload needs.
        left = len(upload.sent) + len(upload.taken) - len(disclosed[0]) - len(disclosed[1])
        if not any(opened) or left < self._plan.settings.least_shares:
            return None
        self._disclosed[round_number] = disclosed
        self._share_log.open(round_number, asker, self._node, opened)
        return opened

    def _true(self, address: bytes) -> int:
        """Returns the node behind an address; used for the experimenter's log only."""
        node = self._world.router.node_of(address)
        return -1 if node is None else node

    def _random(self, name: str) -> np.random.Generator:
        return stream(self._world.seed, name, self._node, self._draws)


def _vector(share_log: NoiseShareLog, round_number: int, aggregator: int, node: int) -> Vector:
    """Returns the correction that a survivor's answer yields, in float32 like every upload."""
    return Vector(
        share_log.maker.dimension, lambda: share_log.repair(round_number, aggregator, node).astype(np.float32)
    )


def _opening(opened: OpenedShares, places: dict[int, int]) -> Opening:
    sent = [Opened(places[share.receiver], True, share.seed, share.std) for share in opened[0]]
    taken = [
        Opened(places[one.share.sender], False, one.share.seed, one.share.std, one.seed if one.tau else b"")
        for one in opened[1]
    ]
    return Opening((*sent, *taken))
