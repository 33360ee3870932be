"""Sealing in a foretold round: who sends to whom is known, but every update is sealed and opened for real."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from privacy.envelopes import Bundle
from privacy.keys import KeyPair
from privacy.sealing import Sealer

if TYPE_CHECKING:
    from nodes.courses import GossipCourse
    from nodes.workbench import Vector

_FIRST_MESSAGE = 1


class SealedExchange:
    """The keys of a round's members, and what they have sealed so far.

    Args:
        addresses: each member's in this round
        keys: each member's one-time pair
    """

    def __init__(self, sealer: Sealer, addresses: Mapping[int, bytes], keys: Mapping[int, KeyPair]) -> None:
        self._sealer, self._addresses, self._keys = sealer, addresses, keys
        self._bundles: dict[int, Bundle] = {}

    def seal(self, course: GossipCourse, place: int, update: Vector) -> None:
        """A member seals its update for all that it sends to."""
        node, addresses, keys = course.members.item(place), self._addresses, self._keys
        receivers = [(addresses[other], keys[other].public) for other in course.successors(place)]
        number, address, payload = course.round_number, addresses[node], update.payload()
        seal = self._sealer.seal_many
        self._bundles[node] = seal("update", number, _FIRST_MESSAGE, keys[node], address, receivers, payload)

    def open(self, course: GossipCourse, place: int) -> list[Vector]:
        """A member opens what it has got, in the order of arrival; raises `Rejected` if it cannot."""
        keys, bundles, read = self._keys, self._bundles, self._sealer.open_in
        own, senders = keys[course.members.item(place)], course.senders_to(place)
        places = (course.heard[place] % course.heard.shape[1]).tolist()
        return [read(bundles[one], at, own, keys[one].public) for one, at in zip(senders, places, strict=True)]
