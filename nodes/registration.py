"""How a node makes itself known to the proxy, and waits for what the proxy wants of it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from nodes.controls import Control, Register
from nodes.participant import Participant

AGAIN_S = 10.0
"""After so long without a word from the proxy a node that is not known yet registers again: a damaged message is
refused, and nobody tells its sender."""


def register(participant: Participant) -> None:
    """Asks the proxy to take the node in."""
    participant.tell_proxy(0, Register(participant.node, participant.endpoint.draw_keys(0)))


def await_orders(participant: Participant) -> Generator[simpy.Event, Any, list[Control]]:
    """Waits for the proxy's next orders."""
    while True:
        known = participant.world.router.knows(participant.node)
        until_s = None if known else participant.now_s + AGAIN_S
        orders: list[Control] = yield participant.endpoint.mailbox.expect("orders", 1, until_s)
        if orders:
            return orders
        if not participant.world.router.knows(participant.node):
            register(participant)
