"""Sealed messages: only the named receiver can read them, and the sender's address is authenticated.

    sealer = make_sealer(True)                       # or "sizes", or False: one interface, see `Sealer`
    keys = sealer.draw_keys(seed, node, round)       # each member, each round; keys.public goes to the proxy
    envelopes = sealer.seal_many("update", round, sequence, keys, address, receivers, vector_payload(row))
    value = sealer.open(envelope, my_keys, sender_public_key)       # or raises Rejected("corrupt")
    sealer.close_round(round)                        # when the round's last message has ended

`receivers` are pairs (address, public key). A retransmission sends the same envelope again. A new message needs a new
sequence number. A recovered node, or a resumed run, draws its keys with the next `life`.

Mode true: the key of a message is HKDF-SHA256 of the X25519 secret of the sender's and the receiver's one-time keys,
with the header up to the payload length (version, kind, round, sequence, sender, receiver) as info. A message to one
receiver is its payload under that key (AES-256-GCM, the header as associated data). A payload for many receivers is
encrypted once under a fresh content key. Each receiver gets that key and the ciphertext's SHA-256 under its message
key, so that other holders of the content key cannot substitute another payload. Nonces are zero: no key seals two
plaintexts, since the key depends on the message's full name, and names are not used twice.

Mode sizes counts the same bytes and rejects the same messages, by comparison instead of encryption. Mode false
protects nothing: a payload altered in transit arrives altered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from privacy.anonymity.settings import Sealed
from privacy.sealing.envelopes import UNREADABLE, Bundle, Ciphertext, Envelope, Payload, Rejected
from privacy.sealing.keys import KeyPair, PairSecrets, draw_key_pair, draw_stand_in, expand
from privacy.sealing.message_sizes import message_size, seal_size
from privacy.sealing.wire_format import HEADER_BYTES, KIND_NAMES, KINDS, MANY, NAME_BYTES, decode_header, encode_header

Receiver = tuple[bytes, bytes]
"""A receiver's address and public key."""
_NONCE = bytes(12)  # zero is safe, since every key seals one plaintext only


class Sealer(Protocol):
    """The common interface of the three sealing modes."""

    def draw_keys(self, seed: int, node: int, round: int, life: int = 0) -> KeyPair:
        """Returns a member's keys for a round."""

    def seal_many(
        self,
        kind: str,
        round: int,
        sequence: int,
        keys: KeyPair,
        sender: bytes,
        receivers: Sequence[Receiver],
        payload: Payload,
    ) -> Bundle:
        """Returns one envelope per receiver, in their order; a single receiver's is sealed as by `seal_one`."""

    def seal_one(
        self, kind: str, round: int, sequence: int, keys: KeyPair, sender: bytes, receiver: Receiver, payload: Payload
    ) -> Envelope:
        """Returns an envelope for a single receiver."""

    def open(self, envelope: Envelope, keys: KeyPair, sender_public_key: bytes) -> Any:
        """Returns the payload's value by reference; raises `Rejected` if the envelope differs from the sealed one."""

    def agree(self, round: int, keys: KeyPair, other_public_key: bytes, purpose: bytes) -> bytes:
        """Returns 32 bytes that both ends derive from their keys alone, different for every purpose."""

    def close_round(self, round: int) -> None:
        """Discards the round's cached secrets."""


def make_sealer(sealed: Sealed) -> Sealer:
    """Returns the sealer for the scenario's `anonymity.sealed`."""
    if sealed is True:
        return RealSealer()
    return CountingSealer() if sealed == "sizes" else PlainSealer()


class RealSealer:
    """Encrypts messages with the `cryptography` package."""

    def __init__(self) -> None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM
        self._invalid = (InvalidTag, ValueError)  # ValueError: the sender's key is not a usable X25519 key
        self._pairs = PairSecrets()

    def draw_keys(self, seed: int, node: int, round: int, life: int = 0) -> KeyPair:
        return draw_key_pair(seed, node, round, life)

    def seal_many(
        self,
        kind: str,
        round: int,
        sequence: int,
        keys: KeyPair,
        sender: bytes,
        receivers: Sequence[Receiver],
        payload: Payload,
    ) -> Bundle:
        if len(receivers) == 1:
            # A content key pays only if several receivers share the ciphertext.
            one = self.seal_one(kind, round, sequence, keys, sender, receivers[0], payload)
            named = (one.code, round, sequence, sender, one.payload_bytes)
            return Bundle(named, keys.public, receivers, one.content, [one.wrap], one.size_bytes)
        code, length = KINDS[kind] | MANY, payload.size_bytes
        content, key_and_digest = self._encrypt(code, round, sequence, keys, payload)
        size_bytes = message_size(length, many=True, sealed=True)
        cipher, key_to_seal = self._cipher, self._pairs.key_to_seal  # looked up once; the loop is hot
        self._pairs.begin(round)
        wraps = []
        for address, public_key in receivers:
            header = encode_header(code, round, sequence, sender, address, length)
            key = key_to_seal(round, keys, public_key, header[:NAME_BYTES])
            wraps.append(cipher(key).encrypt(_NONCE, key_and_digest, header))
        return Bundle((code, round, sequence, sender, length), keys.public, receivers, content, wraps, size_bytes)

    def _encrypt(
        self, code: int, round: int, sequence: int, keys: KeyPair, payload: Payload
    ) -> tuple[Ciphertext, bytes]:
        """Encrypts the payload under a fresh content key; returns it with that key and the ciphertext's digest."""
        keys.claim(code, sequence)
        content_key = keys.content_key(code, round, sequence)
        data = self._cipher(content_key).encrypt(_NONCE, payload.to_bytes(), None)
        content = Ciphertext(data, payload)
        return content, content_key + content.digest

    def seal_one(
        self, kind: str, round: int, sequence: int, keys: KeyPair, sender: bytes, receiver: Receiver, payload: Payload
    ) -> Envelope:
        code, length = KINDS[kind], payload.size_bytes
        address, public_key = receiver
        keys.claim(code, sequence, address)
        self._pairs.begin(round)
        header = encode_header(code, round, sequence, sender, address, length)
        key = self._pairs.key_to_seal(round, keys, public_key, header[:NAME_BYTES])
        content = Ciphertext(self._cipher(key).encrypt(_NONCE, payload.to_bytes(), header), payload)
        size_bytes = message_size(length, many=False, sealed=True)
        return Envelope(code, round, sequence, sender, address, length, content, b"", size_bytes)

    def open(self, envelope: Envelope, keys: KeyPair, sender_public_key: bytes) -> Any:
        code, round, sequence, sender, receiver, length, content, wrap = envelope[:8]
        if not isinstance(content, Ciphertext) or not isinstance(wrap, bytes):
            raise Rejected
        # From the envelope's own fields: a header that was altered on the way gives another key, and the tag does not
        # fit.
        header = encode_header(code, round, sequence, sender, receiver, length)
        try:
            key = self._pairs.key_to_open(round, keys, sender_public_key, header[:NAME_BYTES])
            if code & MANY:
                key_and_digest = self._cipher(key).decrypt(_NONCE, wrap, header)
                self._verify_and_decrypt(content, key_and_digest[:32], key_and_digest[32:])
            else:
                _compare(self._cipher(key).decrypt(_NONCE, content.data, header), content.payload)
        except self._invalid:
            raise Rejected from None
        return content.payload.value

    def agree(self, round: int, keys: KeyPair, other_public_key: bytes, purpose: bytes) -> bytes:
        self._pairs.begin(round)
        # Purposes are two addresses, which makes 72 bytes; the names of messages have 74, so no key serves for both.
        return expand(self._pairs.secret(round, keys, other_public_key), round.to_bytes(8, "little") + purpose)

    def _verify_and_decrypt(self, content: Ciphertext, content_key: bytes, digest: bytes) -> None:
        """Checks the ciphertext against its digest; decrypts it unless this key has decrypted it before."""
        # Another receiver holds the content key too and could make a ciphertext that opens; only the sender wrapped the
        # digest.
        if content.digest != digest:
            raise Rejected
        # The bytes never change, so what one receiver has decrypted need not be decrypted for the next.
        if content.opened_with != content_key:
            _compare(self._cipher(content_key).decrypt(_NONCE, content.data, None), content.payload)
            content.opened_with = content_key

    def close_round(self, round: int) -> None:
        self._pairs.drop(round)


def _compare(opened: bytes, payload: Payload) -> None:
    """Raises RuntimeError unless the value passed by reference still has the bytes that were sealed."""
    if opened != payload.to_bytes():
        raise RuntimeError("a payload changed between sealing and opening; released rows must not be written to")


class CountingSealer:
    """Counts the bytes of encryption; an envelope stores the keys and header it was sealed with, opening compares."""

    def draw_keys(self, seed: int, node: int, round: int, life: int = 0) -> KeyPair:
        return draw_stand_in(seed, node, round, life)

    def seal_many(
        self,
        kind: str,
        round: int,
        sequence: int,
        keys: KeyPair,
        sender: bytes,
        receivers: Sequence[Receiver],
        payload: Payload,
    ) -> Bundle:
        many, length = len(receivers) > 1, payload.size_bytes
        code = KINDS[kind] | (MANY if many else 0)
        size_bytes = message_size(length, many=many, sealed="sizes")
        # Without wraps the bundle makes tuples of the header and both keys, which opening compares.
        return Bundle((code, round, sequence, sender, length), keys.public, receivers, payload, None, size_bytes)

    def seal_one(
        self, kind: str, round: int, sequence: int, keys: KeyPair, sender: bytes, receiver: Receiver, payload: Payload
    ) -> Envelope:
        return self.seal_many(kind, round, sequence, keys, sender, [receiver], payload)[0]

    def open(self, envelope: Envelope, keys: KeyPair, sender_public_key: bytes) -> Any:
        content = envelope.content
        # A changed header differs from the stored copy. A changed payload has no bytes to compare, hence `tampered`.
        as_sealed = envelope.wrap == (sender_public_key, keys.public, *envelope[:7])
        if envelope.tampered or not as_sealed or not isinstance(content, Payload):
            raise Rejected
        return content.value

    def agree(self, round: int, keys: KeyPair, other_public_key: bytes, purpose: bytes) -> bytes:
        """Replaces the key exchange by a hash of the public keys: equal at both ends, and not secret."""
        # Sorted, so that both ends hash the same bytes.
        pair = b"".join(sorted((keys.public, other_public_key)))
        return expand(pair, round.to_bytes(8, "little") + purpose)

    def close_round(self, round: int) -> None:
        """Does nothing."""


class PlainSealer:
    """Sends header and payload in the clear; rejects only messages that cannot be decoded."""

    def draw_keys(self, seed: int, node: int, round: int, life: int = 0) -> KeyPair:
        return KeyPair(None, b"")

    def seal_many(
        self,
        kind: str,
        round: int,
        sequence: int,
        keys: KeyPair,
        sender: bytes,
        receivers: Sequence[Receiver],
        payload: Payload,
    ) -> Bundle:
        length = payload.size_bytes
        named = (KINDS[kind], round, sequence, sender, length)
        size_bytes = message_size(length, many=False, sealed=False)
        # Empty wraps, not None, which would select the comparison of mode `sizes`.
        return Bundle(named, b"", receivers, payload, [b""] * len(receivers), size_bytes)

    def seal_one(
        self, kind: str, round: int, sequence: int, keys: KeyPair, sender: bytes, receiver: Receiver, payload: Payload
    ) -> Envelope:
        length = payload.size_bytes
        size_bytes = message_size(length, many=False, sealed=False)
        return Envelope(KINDS[kind], round, sequence, sender, receiver[0], length, payload, b"", size_bytes)

    def open(self, envelope: Envelope, keys: KeyPair, sender_public_key: bytes) -> Any:
        content = envelope.content
        if not isinstance(content, Payload) or content.value is UNREADABLE:
            raise Rejected
        # Without a tag only what cannot be decoded is noticed; other damage arrives, as it would on the wire.
        if envelope.code not in KIND_NAMES or envelope.payload_bytes != content.size_bytes:
            raise Rejected
        return content.value

    def agree(self, round: int, keys: KeyPair, other_public_key: bytes, purpose: bytes) -> bytes:
        raise ValueError("without sealing there are no keys to agree with")

    def close_round(self, round: int) -> None:
        """Does nothing."""


def tamper(envelope: Envelope, rng: np.random.Generator) -> Envelope:
    """Returns a copy with one bit flipped in header, wrapped key or payload; the original is unchanged."""
    parts = [_alter_header, _alter_content]
    if _has_wrap(envelope):
        parts.append(_alter_wrap)
    # The part is drawn first, so that a header of 82 bytes is hit as often as a model of millions.
    return parts[rng.integers(len(parts))](envelope, rng)._replace(tampered=True)


def _has_wrap(envelope: Envelope) -> bool:
    """Returns whether the message carries a wrapped key, or in mode `sizes` the bytes of one."""
    # By size: mode `sizes` has no wrap, and the bit MANY of a header may have been altered before.
    return envelope.overhead_bytes == HEADER_BYTES + seal_size(many=True, sealed=True)


def _alter_header(envelope: Envelope, rng: np.random.Generator) -> Envelope:
    header = encode_header(*envelope[:6])
    # The version byte is kept: a message of another version could not be decoded into an envelope at all.
    damaged = header[:1] + _flip(header[1:HEADER_BYTES], rng)
    return envelope._replace(**decode_header(damaged)._asdict())


def _alter_wrap(envelope: Envelope, rng: np.random.Generator) -> Envelope:
    return envelope._replace(wrap=_flip(envelope.wrap, rng)) if isinstance(envelope.wrap, bytes) else envelope


def _alter_content(envelope: Envelope, rng: np.random.Generator) -> Envelope:
    content = envelope.content
    if isinstance(content, Ciphertext):
        return envelope._replace(content=Ciphertext(_flip(content.data, rng), content.payload))
    if isinstance(envelope.wrap, tuple) or not content.size_bytes:
        return envelope  # mode `sizes` has no bytes to alter; the mark `tampered` stands for the change
    return envelope._replace(content=content.altered(_flip(content.to_bytes(), rng)))


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    # One bit: the least damage that a check could miss.
    bit = int(rng.integers(8 * len(data)))
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)
