"""The proxy's address table: the node behind each pseudonym, for the duration of a round.

NOT SECRET, ON PURPOSE: initial addresses and round secrets come from named random streams, because a simulation must
be repeatable. Knowledge of the seed reveals every address; a deployment would draw them from the operating system.
Attacks therefore never get the seed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from p2p.random_streams import stream
from privacy.anonymity.settings import Rehash

ADDRESS_BYTES = 32


class RoundAddresses(Mapping[int, bytes]):
    """The addresses of a round's members, each computed when it is first asked for.

    Those that nothing has asked for when the round is closed stay unknown.
    """

    __slots__ = ("_by_address", "_compute", "_known", "_members")

    def __init__(self, compute: Callable[[int], bytes]) -> None:
        self._compute: Callable[[int], bytes] | None = compute
        self._members: dict[int, None] = {}
        self._known: dict[int, bytes] = {}
        self._by_address: dict[bytes, int] = {}

    def admit(self, members: Iterable[int]) -> None:
        """Gives more members an address."""
        self._members.update(dict.fromkeys(members))

    def node_of(self, address: bytes) -> int | None:
        """Returns the member behind an address, or None."""
        if len(self._by_address) < len(self):
            self._by_address = {one: node for node, one in self.items()}
        return self._by_address.get(address)

    def close(self) -> None:
        """Forgets how addresses are computed, and whose they are."""
        self._compute, self._by_address = None, {}
        self._members = dict.fromkeys(self._known)

    def __getitem__(self, node: int) -> bytes:
        known = self._known.get(node)
        if known is None:
            if self._compute is None or node not in self._members:
                raise KeyError(node)
            known = self._known[node] = self._compute(node)
        return known

    def __iter__(self) -> Iterator[int]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


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
        self._addresses: dict[int, RoundAddresses] = {}
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

    def knows_all(self, nodes: Set[int]) -> bool:
        """Returns whether all these nodes have registered."""
        return nodes <= self._initial.keys()

    def open_round(self, round: int, members: Iterable[int]) -> RoundAddresses:
        """Returns this round's addresses of all registered members so far.

        Further calls for the same round admit more members (such as the last leader).
        """
        registered = [node for node in members if node in self._initial]
        # Secrets are named streams: drawing one again gives the same bytes.
        secret = self._secrets.setdefault(round, self._draw_secret(round))
        if self._rehash == "chained":
            self._move_chain(round, secret, registered)
        if round not in self._addresses:
            self._addresses[round] = RoundAddresses(self._computing(secret))
        addresses = self._addresses[round]
        addresses.admit(registered)
        return addresses

    def _computing(self, secret: bytes) -> Callable[[int], bytes]:
        """Returns what computes a node's address in the round with this secret."""
        initial, digest = self._initial, hmac.digest
        if self._rehash == "chained":
            # The chain has moved to this round, and moves on when another one opens.
            chained = self._chained
            return lambda node: hashlib.sha256(chained[node]).digest()
        return lambda node: digest(secret, initial[node], "sha256")

    def _move_chain(self, round: int, secret: bytes, members: Iterable[int]) -> None:
        """Moves all current addresses one round on, once per round."""
        if round > self._chained_to:
            self._chained_to = round
            # All of them, members or not: an address that stood still would tell who was absent.
            self._chained = {
                node: hmac.digest(secret, self._chained.get(node, first), "sha256")
                for node, first in self._initial.items()
            }
        for node in members:
            if node not in self._chained:  # registered after this round's addresses were computed
                self._chained[node] = hmac.digest(secret, self._initial[node], "sha256")

    def is_open(self, round: int) -> bool:
        """Returns whether the round's addresses are in use."""
        return round in self._addresses

    def node_of(self, address: bytes) -> int | None:
        """Returns the node behind an address of an open round, or None."""
        # Few rounds are open at once; a round stays open until its last message has ended.
        for addresses in self._addresses.values():
            node = addresses.node_of(address)
            if node is not None:
                return node
        return None

    def nodes_of(self, addresses: Sequence[bytes]) -> list[int | None]:
        """Returns `node_of` for many addresses."""
        return [self.node_of(address) for address in addresses]

    def close_round(self, round: int) -> None:
        """Discards the round's secret and map; to be called when its last message has ended."""
        self._secrets.pop(round, None)
        if round in self._addresses:
            self._addresses.pop(round).close()

    def _draw_secret(self, round: int) -> bytes:
        name = () if self._rehash == "never" else (round,)
        return stream(self._seed, "round-secret", *name).bytes(ADDRESS_BYTES)
