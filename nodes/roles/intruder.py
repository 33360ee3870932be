"""The intruder: an unregistered node that overhears envelopes, replays them, forges others and guesses addresses.

Its knowledge is that of an eavesdropper on the wire: envelopes, not their contents. Receivers must reject everything
it sends.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from nodes.world import World
from p2p.clock import Clock
from p2p.log.records import NO_NODE
from p2p.random_streams import stream
from p2p.transport.messages import Batch, Message
from privacy.sealing.envelopes import Envelope

KEPT = 64
"""The number of overheard envelopes that it keeps."""


class Intruder:
    """One process that injects messages at random times."""

    def __init__(self, node: int, world: World, name: str, every_s: float, end_s: float) -> None:
        self._node, self._world, self._every_s, self._end_s = node, world, every_s, end_s
        self._rng = stream(world.seed, "intruder", name)
        self._overheard: list[Message] = []

    def begin(self, clock: Clock) -> None:
        """Starts listening and sending."""
        self._world.network.listen(self._overhear)
        clock.process(self._run())

    def _overhear(self, message: Message) -> None:
        if message.sender != self._node and isinstance(message.content, Envelope):
            self._overheard = [*self._overheard[-KEPT + 1 :], message]

    def _run(self) -> Generator[simpy.Event, Any, None]:
        while True:
            # The constant keeps intervals positive, so that the loop always advances.
            yield self._world.clock.sleep(float(self._rng.exponential(self._every_s)) + 1e-6, self._node)
            if self._world.clock.now > self._end_s:
                return
            # The network reports overheard messages in bulk; without this call the newest would be missing.
            self._world.network.read_wire()
            if self._overheard:
                self._inject(self._overheard[int(self._rng.integers(len(self._overheard)))])

    def _inject(self, message: Message) -> None:
        """Replays an envelope, forges its sender, or sends it to an invented address."""
        envelope: Envelope = message.content
        receiver = message.receiver
        trick = int(self._rng.integers(3))
        if trick == 1:
            envelope = envelope._replace(sender=self._rng.bytes(32), tampered=True)
        elif trick == 2:
            envelope = envelope._replace(receiver=self._rng.bytes(32), tampered=True)
            found = self._world.router.node_of(envelope.receiver)
            receiver = NO_NODE if found is None else found
        sizes = envelope.size_bytes, envelope.overhead_bytes
        batch = Batch(self._node, [receiver], message.kind, message.round_number, *sizes, [envelope], give_up_s=-np.inf)
        self._world.network.send(batch)
