"""The proxy's address table: the node behind each pseudonym, for the duration of a round.

NOT SECRET, ON PURPOSE: initial addresses and round secrets come from named random streams, because a simulation must
be repeatable. Knowledge of the seed reveals every address; a deployment would draw them from the operating system.
Attacks therefore never get the seed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence

from p2p.random_streams import stream
from privacy.anonymity.settings import Rehash

ADDRESS_BYTES = 32


class Pseudonyms:
    """Issues all addresses of a run and discards each round's on `close_round`.

    Guarantees:
        - A member's address in round t is HMAC-SHA256(r_t, initial address), with r_t independent of all other
          rounds. A member's addresses are therefore unrelated, and a leaked r_t alone identifies no member.
        - With `rehash: chained` (thesis, section 5.2.3) all current addresses are computed anew in every round,
          a_t = HMAC-SHA256(r_t, a_(t-1)) from the initial address a_0, and a member is known by SHA-256(a_t). The
          thesis names neither the computation nor the hash; these are ours.
        - After `close_round` neither r_t nor the map of that round is held (with `rehash: never` all rounds have the
          same r, which stays derivable).
    """

    def __init__(self, seed: int, rehash: Rehash = "every_round") -> None:
        self._seed = seed
        self._rehash = rehash
        # One keyed hash per node instead of one generator per node: a million generators would take a minute.
        self._initial_key = stream(seed, "address").bytes(ADDRESS_BYTES)
        self._initial: dict[int, bytes] = {}
        self._secrets: dict[int, bytes] = {}
        self._nodes: dict[int, dict[bytes, int]] = {}
        self._chained: dict[int, bytes] = {}
        self._chained_to = -1

    def register(self, node: int) -> bytes:
        """Returns the node's initial address, which no peer ever sees; equal on every call."""
        if node not in self._initial:
            drawn = hashlib.sha256(self._initial_key + node.to_bytes(8, "little"))
            self._initial[node] = drawn.digest()
        return self._initial[node]

    def knows(self, node: int) -> bool:
        """Returns whether a node has registered."""
        return node in self._initial

    def open_round(self, round: int, members: Iterable[int]) -> dict[int, bytes]:
        """Returns this round's address of each registered member, in their order.

        Further calls for the same round admit more members (such as the last leader).
        """
        # Secrets are named streams: drawing one again gives the same bytes.
        secret = self._secrets.setdefault(round, self._draw_secret(round))
        initial, digest = self._initial, hmac.digest
        if self._rehash == "chained":
            addresses = self._hash_chained(round, secret, members)
        else:
            addresses = {node: digest(secret, initial[node], "sha256") for node in members if node in initial}
        by_address = self._nodes.setdefault(round, {})
        by_address.update(zip(addresses.values(), addresses.keys(), strict=True))
        return addresses

    def _hash_chained(self, round: int, secret: bytes, members: Iterable[int]) -> dict[int, bytes]:
        """Moves all current addresses one round on, once per round, and returns the hashes of the members'."""
        if round > self._chained_to:
            self._chained_to = round
            # All of them, members or not: an address that stood still would tell who was absent.
            self._chained = {
                node: hmac.digest(secret, self._chained.get(node, first), "sha256")
                for node, first in self._initial.items()
            }
        known, registered = self._chained, [node for node in members if node in self._initial]
        for node in registered:
            if node not in known:  # registered after this round's addresses were computed
                known[node] = hmac.digest(secret, self._initial[node], "sha256")
        return {node: hashlib.sha256(known[node]).digest() for node in registered}

    def node_of(self, address: bytes) -> int | None:
        """Returns the node behind an address of an open round, or None."""
        # Few rounds are open at once; a round stays open until its last message has ended.
        for by_address in self._nodes.values():
            node = by_address.get(address)
            if node is not None:
                return node
        return None

    def nodes_of(self, addresses: Sequence[bytes]) -> list[int | None]:
        """Returns `node_of` for many addresses."""
        if len(self._nodes) == 1:
            (by_address,) = self._nodes.values()
            return [by_address.get(address) for address in addresses]
        return [self.node_of(address) for address in addresses]

    def close_round(self, round: int) -> None:
        """Discards the round's secret and map; to be called when its last message has ended."""
        self._secrets.pop(round, None)
        self._nodes.pop(round, None)

    def _draw_secret(self, round: int) -> bytes:
        name = () if self._rehash == "never" else (round,)
        return stream(self._seed, "round-secret", *name).bytes(ADDRESS_BYTES)
