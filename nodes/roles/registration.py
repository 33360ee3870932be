"""Registration of a node with the proxy, and the wait for the proxy's orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import simpy

from nodes.messaging.control_batches import registration_note
from nodes.messaging.control_messages import Assignment
from nodes.protocols.api import Steps
from nodes.roles.participant import Participant

if TYPE_CHECKING:
    from nodes.roles.client import Client
    from nodes.roles.server import Server

AGAIN_S = 10.0
"""An unregistered node registers again after this long without orders: a corrupted registration is rejected without
notice to its sender."""


def register(participant: Participant) -> None:
    """Sends a registration to the proxy; `read_registration` makes its content when the proxy reads it."""
    world = participant.world
    participant.endpoint.join(0)
    world.network.tell(participant.node, world.proxy, 0, registration_note(world.sealed), 0)


def next_orders(participant: Participant) -> simpy.Event:
    """Returns an event that yields the proxy's next orders, or an empty list when it is time to register again."""
    known = participant.world.router.knows(participant.node)
    # Here alone: invitations are answered while a node waits for orders, when its model and budget do not change.
    participant.world.network.set_rule(participant.node, participant.model_round, participant.last_round)
    # A registered node needs no deadline: the proxy invites it again if an invitation is lost.
    return participant.endpoint.inbox.expect("orders", 1, None if known else participant.now_s + AGAIN_S)


def follow_orders(participant: Client | Server) -> Steps:
    """Registers (again, without a model), and takes part in what the proxy assigns, until the process is stopped."""
    if participant.model_round < 0 or not participant.world.router.knows(participant.node):
        register(participant)
    while True:
        participant.follow_kept_order()
        orders = yield next_orders(participant)
        if not orders:
            register_again(participant)
        for order in orders:
            if isinstance(order, Assignment):
                yield from participant.take_part(order)
        # While it waits, which may be for many rounds, it must not keep the assignments of the last one.
        order = orders = None


def register_again(participant: Participant) -> None:
    """Registers again if the proxy does not know the node, after a wait that ended without orders."""
    if not participant.world.router.knows(participant.node):
        register(participant)
