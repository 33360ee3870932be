"""One-time keys and the shared secrets of key pairs.

NOT SECRET, ON PURPOSE: private keys come from named random streams, because a simulation must be repeatable. Knowledge
of the seed reveals every message; a deployment would draw keys from the operating system.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import TYPE_CHECKING

from p2p.random_streams import stream

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

SALT = b"peerveil sealing, version 1"
_NAME = struct.Struct("<BII")


class KeyPair:
    """The keys with which one member seals and opens messages in one round."""

    __slots__ = ("_content_secret", "_used", "private", "public")

    def __init__(self, private: X25519PrivateKey | None, public: bytes, content_secret: bytes = b"") -> None:
        self.private = private
        self.public = public
        self._content_secret = content_secret
        # Created on first use: mode `sizes` makes many pairs that never seal.
        self._used: set[tuple[int, int, bytes]] | None = None

    def claim(self, code: int, sequence: int, receiver: bytes = b"") -> None:
        """Records the name of a message to be sealed; raises ValueError if the name was used before."""
        # Nonces are constant, so sealing a second plaintext under one name would break the encryption.
        name = (code, sequence, receiver)
        if self._used is None:
            self._used = set()
        if name in self._used:
            raise ValueError(f"sequence {sequence} of kind {code} was sealed before; keys seal one plaintext only")
        self._used.add(name)

    def content_key(self, code: int, round: int, sequence: int) -> bytes:
        """Returns a fresh key for a payload to many receivers."""
        # Derived from the message's name instead of drawn, so that the order of sending does not matter.
        return hmac.digest(self._content_secret, _NAME.pack(code, round, sequence), "sha256")


def draw_key_pair(seed: int, node: int, round: int, life: int = 0) -> KeyPair:
    """Draws a node's one-time X25519 key pair for a round.

    Args:
        life: number of recoveries of the node, or resumptions of the run. After one, the node may send another
            plaintext in the same round, so it needs new keys.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    # One draw for both halves: the exchange key, and the secret behind content keys.
    drawn = stream(seed, "key", node, round, life).bytes(64)
    private = X25519PrivateKey.from_private_bytes(drawn[:32])
    return KeyPair(private, private.public_key().public_bytes_raw(), drawn[32:])


def draw_stand_in(seed: int, node: int, round: int, life: int = 0) -> KeyPair:
    """Like `draw_key_pair`, but returns a public key of the same form without a private key."""
    # Only distinct and repeatable: nothing is encrypted with it.
    return KeyPair(None, hashlib.sha256(f"{seed}/{node}/{round}/{life}".encode()).digest())


class PairSecrets:
    """A cache of the shared secret of each unordered pair of one-time keys.

    Both ends derive the same secret (X25519 commutes), so the simulation computes it once. The same holds for the key
    of a message, which its sender has derived already.
    """

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        self._read_public = X25519PublicKey.from_public_bytes
        self._rounds: dict[int, dict[tuple[bytes, bytes], bytes]] = {}
        self._publics: dict[int, dict[bytes, X25519PublicKey]] = {}
        self._derived: dict[int, dict[tuple[bytes, bytes], bytes]] = {}

    def begin(self, round: int) -> None:
        """Starts caching the secrets of a round."""
        if round not in self._rounds:
            self._rounds[round], self._publics[round], self._derived[round] = {}, {}, {}

    def key_to_seal(self, round: int, own: KeyPair, other_public: bytes, name: bytes) -> bytes:
        """Derives the key of a message with this name and caches it for the receiver."""
        secret = self.secret(round, own, other_public)
        key = self._derived[round][secret, name] = expand(secret, name)
        return key

    def key_to_open(self, round: int, own: KeyPair, other_public: bytes, name: bytes) -> bytes:
        """Returns the key at the receiver; derives it if no message with this pair's secret and name was sealed."""
        secret = self.secret(round, own, other_public)
        # Removed on use: a message is normally opened once, and a replay derives its key again.
        return self._derived.get(round, {}).pop((secret, name), b"") or expand(secret, name)

    def secret(self, round: int, own: KeyPair, other_public: bytes) -> bytes:
        """Returns HKDF's pseudorandom key of the pair; cached only for rounds started by `begin`.

        Raises:
            ValueError: `other_public` is not a usable X25519 key.
        """
        public = own.public
        # Unordered, so that both ends find the same entry.
        pair = (public, other_public) if public < other_public else (other_public, public)
        # Rounds not begun (or already dropped) get a temporary dict, so that nothing accumulates.
        known = self._rounds.get(round, {})
        found = known.get(pair)
        if found is None:
            found = known[pair] = extract(self._exchange(round, own, other_public))
        return found

    def drop(self, round: int) -> None:
        """Discards a round's secrets."""
        for kept in (self._rounds, self._publics, self._derived):
            kept.pop(round, None)

    def _exchange(self, round: int, own: KeyPair, other_public: bytes) -> bytes:
        if own.private is None:
            raise ValueError("a stand-in has no private key to exchange with")
        known = self._publics.get(round, {})
        public = known.get(other_public)
        if public is None:  # parsed once per round, though a key takes part in many pairs
            public = known[other_public] = self._read_public(other_public)
        return own.private.exchange(public)


def extract(shared: bytes) -> bytes:
    """Computes HKDF-Extract with SHA-256 (RFC 5869)."""
    # Written with hmac directly, because `expand` runs once per message and must be cheap.
    return hmac.digest(SALT, shared, "sha256")


def expand(secret: bytes, info: bytes) -> bytes:
    """Computes HKDF-Expand: the 32-byte key for `info`."""
    # 32 bytes are one block of HKDF-Expand, whose counter is 1.
    return hmac.digest(secret, info + b"\x01", "sha256")
