"""One-time keys and the secrets that pairs of them share.

NOT SECRET, ON PURPOSE: private keys come from named random streams, because a simulation must repeat. Whoever knows
the seed can open everything; a deployment would draw keys from the operating system.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import TYPE_CHECKING

from p2p.streams import stream

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

SALT = b"peerveil sealing, version 1"
_NAME = struct.Struct("<BII")


class KeyPair:
    """What one member seals and opens with in one round."""

    __slots__ = ("_content_secret", "_used", "private", "public")

    def __init__(self, private: X25519PrivateKey | None, public: bytes, content_secret: bytes = b"") -> None:
        self.private = private
        self.public = public
        self._content_secret = content_secret
        self._used: set[tuple[int, int, bytes]] | None = None  # a million stand-ins never seal

    def claim(self, code: int, sequence: int, receiver: bytes = b"") -> None:
        """Notes that a message is being sealed; refuses to seal another one under the same keys."""
        name = (code, sequence, receiver)
        if self._used is None:
            self._used = set()
        if name in self._used:
            raise ValueError(f"sequence {sequence} of kind {code} was sealed before; keys seal one plaintext only")
        self._used.add(name)

    def content_key(self, code: int, round: int, sequence: int) -> bytes:
        """A fresh key for a payload to many receivers."""
        return hmac.digest(self._content_secret, _NAME.pack(code, round, sequence), "sha256")


def draw_key_pair(seed: int, node: int, round: int, life: int = 0) -> KeyPair:
    """A node's one-time X25519 pair for a round.

    Args:
        life: how often the node has recovered, or the run been resumed. A second life may have another
            plaintext to send in the same round, so it needs other keys.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    drawn = stream(seed, "key", node, round, life).bytes(64)
    private = X25519PrivateKey.from_private_bytes(drawn[:32])
    return KeyPair(private, private.public_key().public_bytes_raw(), drawn[32:])


def draw_stand_in(seed: int, node: int, round: int, life: int = 0) -> KeyPair:
    """As `draw_key_pair`, with a public half that looks the same and has no private half behind it."""
    return KeyPair(None, hashlib.sha256(f"{seed}/{node}/{round}/{life}".encode()).digest())


class PairSecrets:
    """The secret of each unordered pair of one-time keys, computed once and used by both ends.

    Both ends would find the same one (X25519 commutes), so the simulation does the work of one. The same holds for
    the key of a message, which its sender has derived before.
    """

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        self._read_public = X25519PublicKey.from_public_bytes
        self._rounds: dict[int, dict[tuple[bytes, bytes], bytes]] = {}
        self._publics: dict[int, dict[bytes, X25519PublicKey]] = {}
        self._derived: dict[int, dict[tuple[bytes, bytes], bytes]] = {}

    def begin(self, round: int) -> None:
        """Keeps the secrets of this round from now on."""
        if round not in self._rounds:
            self._rounds[round], self._publics[round], self._derived[round] = {}, {}, {}

    def key_to_seal(self, round: int, own: KeyPair, other_public: bytes, name: bytes) -> bytes:
        """The key of a message with this name; kept for whoever opens it."""
        secret = self.secret(round, own, other_public)
        key = self._derived[round][secret, name] = expand(secret, name)
        return key

    def key_to_open(self, round: int, own: KeyPair, other_public: bytes, name: bytes) -> bytes:
        """The same at the other end; derived anew if nobody with this pair's secret has sealed such a message."""
        secret = self.secret(round, own, other_public)
        return self._derived.get(round, {}).pop((secret, name), b"") or expand(secret, name)

    def secret(self, round: int, own: KeyPair, other_public: bytes) -> bytes:
        """HKDF's pseudorandom key of the pair; computed, but not kept, for a round that nobody began.

        Raises:
            ValueError: `other_public` is no usable X25519 key.
        """
        public = own.public
        pair = (public, other_public) if public < other_public else (other_public, public)
        known = self._rounds.get(round, {})
        found = known.get(pair)
        if found is None:
            found = known[pair] = extract(self._exchange(round, own, other_public))
        return found

    def drop(self, round: int) -> None:
        """Forgets a round's secrets."""
        for kept in (self._rounds, self._publics, self._derived):
            kept.pop(round, None)

    def _exchange(self, round: int, own: KeyPair, other_public: bytes) -> bytes:
        if own.private is None:
            raise ValueError("a stand-in has no private key to exchange with")
        known = self._publics.get(round, {})
        public = known.get(other_public)
        if public is None:
            public = known[other_public] = self._read_public(other_public)
        return own.private.exchange(public)


def extract(shared: bytes) -> bytes:
    """The first half of HKDF-SHA256 (RFC 5869); by hand, for the second half runs once per message."""
    return hmac.digest(SALT, shared, "sha256")


def expand(secret: bytes, info: bytes) -> bytes:
    """The second half: the 32-byte key that `info` names."""
    return hmac.digest(secret, info + b"\x01", "sha256")
