"""The proxy's book of addresses: who is behind which pseudonym, for as long as a round lasts.

NOT SECRET, ON PURPOSE: initial addresses and round secrets come from named random streams, because a simulation
must repeat. Whoever knows the seed knows every address; a deployment would draw all of them from the operating
system. Attacks therefore never get the seed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import Literal

from p2p.streams import stream

ADDRESS_BYTES = 32


class Pseudonyms:
    """Issues every address of a run and forgets each round's when told to.

    Guarantees:
        A member's address in round t is HMAC-SHA256(r_t, initial address) with r_t independent of all other
        rounds', so equal members have unrelated addresses and a leaked r_t alone names nobody.
        After `close_round` neither r_t nor the map of that round is held (with `rehash: never` there is one r
        for the run, which stays).
    """

    def __init__(self, seed: int, rehash: Literal["every_round", "never"] = "every_round") -> None:
        self._seed = seed
        self._rehash = rehash
        # One keyed draw per node instead of one generator per node: a million generators would cost a minute.
        self._initial_key = stream(seed, "address").bytes(ADDRESS_BYTES)
        self._initial: dict[int, bytes] = {}
        self._secrets: dict[int, bytes] = {}
        self._nodes: dict[int, dict[bytes, int]] = {}

    def register(self, node: int) -> bytes:
        """The node's initial address, which no peer ever sees; the same at every call."""
        if node not in self._initial:
            drawn = hashlib.sha256(self._initial_key + node.to_bytes(8, "little"))
            self._initial[node] = drawn.digest()
        return self._initial[node]

    def knows(self, node: int) -> bool:
        """Whether a node has registered."""
        return node in self._initial

    def open_round(self, round: int, members: Iterable[int]) -> dict[int, bytes]:
        """This round's address of each member, in their order; a node that never registered gets none.

        May be called again for the same round to admit more members (the last leader, say).
        """
        secret = self._secrets.setdefault(round, self._draw_secret(round))
        initial, digest = self._initial, hmac.digest
        addresses = {node: digest(secret, initial[node], "sha256") for node in members if node in initial}
        book = self._nodes.setdefault(round, {})
        book.update(zip(addresses.values(), addresses.keys(), strict=True))
        return addresses

    def node_of(self, address: bytes) -> int | None:
        """Who is behind an address of a round that is still open, or None."""
        for book in self._nodes.values():
            node = book.get(address)
            if node is not None:
                return node
        return None

    def nodes_of(self, addresses: Sequence[bytes]) -> list[int | None]:
        """The same for many addresses."""
        if len(self._nodes) == 1:
            (book,) = self._nodes.values()
            return [book.get(address) for address in addresses]
        return [self.node_of(address) for address in addresses]

    def close_round(self, round: int) -> None:
        """Erases the round's secret and map; to be called when its last message has ended."""
        self._secrets.pop(round, None)
        self._nodes.pop(round, None)

    def _draw_secret(self, round: int) -> bytes:
        name = (round,) if self._rehash == "every_round" else ()
        return stream(self._seed, "round-secret", *name).bytes(ADDRESS_BYTES)
