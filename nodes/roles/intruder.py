"""A node that never registered: it overhears envelopes, replays them, forges others and guesses addresses.

It knows what an eavesdropper on the wire knows: envelopes as they pass, not what is in them. Nothing it sends may be
used.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from nodes.world import World
from p2p.clock import Clock
from p2p.log.records import NOBODY
from p2p.random_streams import stream
from p2p.transport.messages import Batch, Message
from privacy.sealing.envelopes import Envelope

KEPT = 64
"""How many overheard envelopes it remembers."""


class Intruder:
    """One process that bothers the others at random times."""

    def __init__(self, node: int, world: World, name: str, every_s: float, end_s: float) -> None:
        self._node, self._world, self._every_s, self._end_s = node, world, every_s, end_s
        self._rng = stream(world.seed, "intruder", name)
        self._overheard: list[Message] = []

    def begin(self, clock: Clock) -> None:
        """Starts to listen and to send."""
        self._world.network.listen(self._overhear)
        clock.process(self._run())

    def _overhear(self, message: Message) -> None:
        if message.sender != self._node and isinstance(message.content, Envelope):
            self._overheard = [*self._overheard[-KEPT + 1 :], message]

    def _run(self) -> Generator[simpy.Event, Any, None]:
        while True:
            yield self._world.clock.sleep(float(self._rng.exponential(self._every_s)) + 1e-6, self._node)
            if self._world.clock.now > self._end_s:
                return
            self._world.network.read_wire()
            if self._overheard:
                self._bother(self._overheard[int(self._rng.integers(len(self._overheard)))])

    def _bother(self, message: Message) -> None:
        """Replays an envelope, forges its sender, or sends it to an address it made up."""
        envelope: Envelope = message.content
        receiver = message.receiver
        trick = int(self._rng.integers(3))
        if trick == 1:
            envelope = envelope._replace(sender=self._rng.bytes(32), tampered=True)
        elif trick == 2:
            envelope = envelope._replace(receiver=self._rng.bytes(32), tampered=True)
            found = self._world.router.node_of(envelope.receiver)
            receiver = NOBODY if found is None else found
        sizes = envelope.size_bytes, envelope.overhead_bytes
        batch = Batch(self._node, [receiver], message.kind, message.round_number, *sizes, [envelope], give_up_s=-np.inf)
        self._world.network.send(batch)
