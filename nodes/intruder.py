"""A node that never registered: it overhears envelopes, replays them, forges others and guesses addresses.

It knows what an eavesdropper on the wire knows: envelopes as they pass, not what is in them. Nothing it sends may be
used.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from nodes.endpoint import World
from p2p.clock import Clock
from p2p.network import Parcel
from p2p.records import NOBODY
from p2p.streams import stream
from privacy.envelopes import Envelope

KEPT = 64
"""How many overheard envelopes it remembers."""


class Intruder:
    """One process that bothers the others at random times."""

    def __init__(self, node: int, world: World, name: str, every_s: float, end_s: float) -> None:
        self._node, self._world, self._every_s, self._end_s = node, world, every_s, end_s
        self._rng = stream(world.seed, "intruder", name)
        self._overheard: list[Parcel] = []

    def begin(self, clock: Clock) -> None:
        """Starts to listen and to send."""
        self._world.network.listen(self._overhear)
        clock.process(self._run())

    def _overhear(self, parcel: Parcel) -> None:
        if parcel.sender != self._node and isinstance(parcel.content, Envelope):
            self._overheard = [*self._overheard[-KEPT + 1 :], parcel]

    def _run(self) -> Generator[simpy.Event, Any, None]:
        while True:
            yield self._world.clock.sleep(float(self._rng.exponential(self._every_s)) + 1e-6, self._node)
            if self._world.clock.now > self._end_s:
                return
            if self._overheard:
                self._bother(self._overheard[int(self._rng.integers(len(self._overheard)))])

    def _bother(self, parcel: Parcel) -> None:
        """Replays an envelope, forges its sender, or sends it to an address it made up."""
        envelope: Envelope = parcel.content
        receiver = parcel.receiver
        trick = int(self._rng.integers(3))
        if trick == 1:
            envelope = envelope._replace(sender=self._rng.bytes(32), tampered=True)
        elif trick == 2:
            envelope = envelope._replace(receiver=self._rng.bytes(32), tampered=True)
            found = self._world.router.node_of(envelope.receiver)
            receiver = NOBODY if found is None else found
        sizes = envelope.size_bytes, envelope.overhead_bytes
        self._world.network.send(
            self._node, [receiver], parcel.kind, parcel.round_number, *sizes, [envelope], give_up_s=-np.inf
        )
