"""Registration of a node with the proxy, and the wait for the proxy's orders."""

from __future__ import annotations

import simpy

from nodes.messaging.control_messages import Register
from nodes.roles.participant import Participant

AGAIN_S = 10.0
"""An unregistered node registers again after this long without orders: a corrupted registration is rejected without
notice to its sender."""


def register(participant: Participant) -> None:
    """Sends a registration to the proxy."""
    participant.tell_proxy(0, Register(participant.node, participant.endpoint.draw_keys(0)))


def next_orders(participant: Participant) -> simpy.Event:
    """Returns an event that yields the proxy's next orders, or an empty list when it is time to register again."""
    known = participant.world.router.knows(participant.node)
    # Here alone: invitations are answered while a node waits for orders, when its model and budget do not change.
    participant.world.network.set_rule(participant.node, participant.model_round, participant.last_round)
    # A registered node needs no deadline: the proxy invites it again if an invitation is lost.
    return participant.endpoint.inbox.expect("orders", 1, None if known else participant.now_s + AGAIN_S)


def register_again(participant: Participant) -> None:
    """Registers again if the proxy does not know the node, after a wait that ended without orders."""
    if not participant.world.router.knows(participant.node):
        register(participant)
