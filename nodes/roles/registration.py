"""How a node makes itself known to the proxy, and waits for what the proxy wants of it."""

from __future__ import annotations

import simpy

from nodes.messaging.control_messages import Register
from nodes.roles.participant import Participant

AGAIN_S = 10.0
"""After so long without a word from the proxy a node that is not known yet registers again: a damaged message is
refused, and nobody tells its sender."""


def register(participant: Participant) -> None:
    """Asks the proxy to take the node in."""
    participant.tell_proxy(0, Register(participant.node, participant.endpoint.draw_keys(0)))


def next_orders(participant: Participant) -> simpy.Event:
    """What yields the proxy's next orders; or none of them, in time to register again."""
    known = participant.world.router.knows(participant.node)
    return participant.endpoint.inbox.expect("orders", 1, None if known else participant.now_s + AGAIN_S)


def register_again(participant: Participant) -> None:
    """There were no orders: maybe the proxy does not know of the node."""
    if not participant.world.router.knows(participant.node):
        register(participant)
