"""Views of a plan's arrays say what lists of peers for every member would say."""

from __future__ import annotations

import numpy as np
import pytest

from nodes.messaging.control_messages import Assignment, Peer
from nodes.messaging.planned_messages import Peers, Routes, both_ways
from nodes.messaging.round_session import RoundSession
from p2p.transport.messages import Delivery
from privacy.sealing.envelopes import ENCIPHERED, Bundle, Payload
from privacy.sealing.keys import KeyPair
from privacy.sealing.sealers import make_sealer

NODES = (3, 0, 7)
PEERS = {node: Peer(bytes([node]) * 32, bytes([100 + node]) * 32) for node in NODES}
EDGES = np.array([[7, 3], [0, 3], [3, 7], [0, 7], [3, 0]])
SENT, HEARD = ({"update": way} for way in both_ways(PEERS, EDGES))
SEALER = make_sealer("sizes")


def member(node: int) -> RoundSession:
    """A member's session of the round, with the keys of the plan."""
    (address, public_key), place = PEERS[node], NODES.index(node)
    routes = Routes(SENT, place), Routes(HEARD, place)
    assignment = Assignment(1, "member", address, *routes, public_key=public_key)
    return RoundSession(assignment, KeyPair(None, public_key))


def sent_by(node: int, sequence: int = 1) -> Bundle:
    """The update of a node, sealed for all its peers."""
    held = member(node)
    peers, payload = held.assignment.send_to["update"], Payload(f"from {node}", 4, lambda: b"four")
    bundle = SEALER.seal_many("update", 1, sequence, held.keys, held.assignment.address, peers, payload)
    assert isinstance(peers, Peers)
    bundle.planned, bundle.first = peers.messages, peers.first
    return bundle


def arrival(place: int, flags: int = 0, batch: int = 1) -> Delivery:
    """A message that stands at a place of its bundle."""
    return Delivery(9, batch, place, 1, 0, 1, 2, flags, 0, 5.0)


@pytest.mark.parametrize("node", NODES)
def test_the_views_are_the_plan_in_its_order(node: int) -> None:
    """Peers in both directions, as they stand in the plan's edges."""
    held = member(node).assignment
    sent, heard = (EDGES[EDGES[:, mine] == node, 1 - mine].tolist() for mine in (0, 1))
    assert list(held.send_to.get("update", ())) == [PEERS[other] for other in sent]
    assert list(held.expect_from.get("update", ())) == [PEERS[other] for other in heard]


def test_a_view_is_a_mapping_of_sequences() -> None:
    """A kind without peers is not in it, as if it were a dictionary of lists."""
    held = member(7).assignment
    assert {kind: list(peers) for kind, peers in held.send_to.items()} == {"update": [PEERS[3]]}
    peers = held.expect_from["update"]
    assert isinstance(peers, Peers)
    assert (peers[0], peers[-1], peers[:1], len(peers)) == (PEERS[3], PEERS[0], [PEERS[3]], 2)
    assert peers.nodes() == [3, 0]
    with pytest.raises(KeyError):
        held.send_to["model"]
    assert "model" not in held.send_to
    nobody = Routes({"update": both_ways(PEERS, EDGES[:1])[0]}, 0)  # node 3 sends to no one there
    assert (len(nobody), list(nobody), nobody.get("update", ())) == (0, [], ())


def test_messages_of_the_plan_are_opened_together() -> None:
    """Node 7 hears from 3 and from 0, whose second peer it is."""
    opened = member(7).open_unaltered(7, "update", [arrival(0), arrival(1, batch=2)], {1: sent_by(3), 2: sent_by(0)})
    assert opened is not None
    assert [(item.sender[0], item.value) for item in opened] == [(3, "from 3"), (0, "from 0")]


def test_other_messages_are_not() -> None:
    """For another node, altered, twice in a group, of a kind that the plan does not have, or after a restart."""
    held = member(7)
    assert held.open_unaltered(7, "update", [arrival(1)], {1: sent_by(3)}) is None
    assert held.open_unaltered(7, "update", [arrival(0, flags=255)], {1: sent_by(3)}) is None
    twice = {1: sent_by(3), 2: sent_by(3, sequence=2)}
    assert held.open_unaltered(7, "update", [arrival(0), arrival(0, batch=2)], twice) is None
    assert held.open_unaltered(7, "model", [arrival(0)], {1: sent_by(3)}) is None
    assert held.open_unaltered(7, "update", [arrival(0)], {1: [sent_by(3)[0]]}) is None
    enciphered = sent_by(3)
    enciphered.plain = ENCIPHERED
    assert held.open_unaltered(7, "update", [arrival(0)], {1: enciphered}) is None
    reborn = RoundSession(held.assignment, KeyPair(None, b"other keys"))
    assert reborn.open_unaltered(7, "update", [arrival(0)], {1: sent_by(3)}) is None


def test_a_newer_plan_may_know_other_keys() -> None:
    """Whether its keys are those of the plan is asked of every plan."""
    held = member(7)
    held.update(held.assignment._replace(epoch=1, public_key=b"other keys"))
    assert held.open_unaltered(7, "update", [arrival(0)], {1: sent_by(3)}) is None
    held.update(held.assignment._replace(epoch=2, public_key=held.keys.public))
    assert held.open_unaltered(7, "update", [arrival(0)], {1: sent_by(3)}) is not None


def test_a_sender_is_heard_once() -> None:
    """Also if its messages come in different groups; another sender's message is opened."""
    held = member(7)
    assert held.open_unaltered(7, "update", [arrival(0)], {1: sent_by(3)}) is not None
    assert held.open_unaltered(7, "update", [arrival(0)], {1: sent_by(3, sequence=2)}) is None
    assert held.open_unaltered(7, "update", [arrival(1)], {1: sent_by(0)}) is not None


def test_a_newer_plan_has_messages_of_its_own() -> None:
    """What was sealed under the old plan is checked one by one."""
    held = member(7)
    heard = {"update": both_ways(PEERS, EDGES)[1]}
    held.update(held.assignment._replace(epoch=1, expect_from=Routes(heard, NODES.index(7))))
    assert held.open_unaltered(7, "update", [arrival(0)], {1: sent_by(3)}) is None
    assert held.senders("update") == {PEERS[3].address: PEERS[3].public_key, PEERS[0].address: PEERS[0].public_key}
