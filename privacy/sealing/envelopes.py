"""Message envelopes, and the payloads they carry.

Payloads are passed by reference: a receiver that can open an envelope gets the sender's `value` object, not a copy.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from privacy.sealing import wire_format

UNREADABLE = object()
"""The value of bytes that cannot be decoded."""
ENCIPHERED = object()
"""Placeholder for a value that must be decrypted first."""


Refusal = Literal["corrupt", "unknown_address", "not_neighbour", "replay"]


class Rejected(Exception):  # noqa: N818 (a refusal is an ordinary outcome here, not an error of the program)
    """The receiver rejects a message; `reason` is recorded in the message log."""

    def __init__(self, reason: Refusal = "corrupt") -> None:
        super().__init__(reason)
        self.reason = reason


class Payload:
    """A value in transit, of known size; its bytes are computed only if a cipher needs them.

    Args:
        encode: returns the bytes, exactly `size_bytes` of them.
        decode: decodes the bytes; needed only for unsealed messages that are altered in transit.
    """

    __slots__ = ("_decode", "_encode", "size_bytes", "value")

    def __init__(
        self,
        value: Any,
        size_bytes: int,
        encode: Callable[[], bytes],
        decode: Callable[[bytes], Any] | None = None,
    ) -> None:
        self.value = value
        self.size_bytes = size_bytes
        self._encode = encode
        self._decode = decode

    def to_bytes(self) -> bytes:
        """Returns the payload's bytes; raises RuntimeError if their number is not `size_bytes`."""
        data = self._encode()
        # Sizes are stated without making bytes, so every time they are made is a check of that.
        if len(data) != self.size_bytes:
            raise RuntimeError(f"a payload stated as {self.size_bytes} bytes has {len(data)}")
        return data

    def altered(self, data: bytes) -> Payload:
        """Returns a payload with other bytes; its value is decoded from them, or `UNREADABLE`."""
        value: Any = UNREADABLE
        if self._decode:
            # The errors of decoders on malformed bytes; any other error is a bug and propagates.
            with suppress(ValueError, LookupError, struct.error):
                value = self._decode(data)
        return Payload(value, len(data), lambda: data, self._decode)


class Ciphertext:
    """A sealed payload, shared by all envelopes that carry it.

    Its bytes never change (a corrupted copy is another object). It therefore caches their SHA-256 and the key that
    has decrypted them: fifty readers take one hash and one decryption.
    """

    __slots__ = ("_digest", "data", "opened_with", "payload")

    def __init__(self, data: bytes, payload: Payload) -> None:
        self.data = data
        self.payload = payload
        self._digest: bytes | None = None
        self.opened_with: bytes | None = None

    @property
    def digest(self) -> bytes:
        """SHA-256 of the bytes."""
        if self._digest is None:
            # On first use: a message to a single receiver needs no digest.
            self._digest = hashlib.sha256(self.data).digest()
        return self._digest


class Envelope(NamedTuple):
    """One message on the wire; its first six fields are the header, `size_bytes` is the total.

    Attributes:
        code: code of the kind, with or without `wire.MANY`
        content: the ciphertext or, without encryption, the payload itself
        wrap: the wrapped content key; empty if there is none; in mode `sizes` a tuple in place of the seal
        tampered: whether the message was altered in transit; only mode `sizes` may read it
    """

    code: int
    round: int
    sequence: int
    sender: bytes
    receiver: bytes
    payload_bytes: int
    content: Ciphertext | Payload
    wrap: bytes | tuple[object, ...]
    size_bytes: int
    tampered: bool = False

    @property
    def kind(self) -> str:
        """The kind in the header; `unknown` if the header was corrupted."""
        return wire_format.KIND_NAMES.get(self.code & ~wire_format.MANY, "unknown")

    @property
    def overhead_bytes(self) -> int:
        """Bytes beyond the plain payload: header and seal."""
        # The content's size, not the header's field, which may have been altered in transit.
        payload = self.content.payload if isinstance(self.content, Ciphertext) else self.content
        return self.size_bytes - payload.size_bytes


class Bundle:
    """One payload sealed for many receivers; each envelope is created on access.

    Attributes:
        public: the sender's public key
        receivers: their addresses and keys
        wraps: the content key as wrapped for each receiver; none without encryption
        plain: the value, available to receivers with the right keys; or `ENCIPHERED`
        planned, first: the plan's messages that these are a part of, if they are, and the number of the first of them;
            set by the sender's endpoint
    """

    __slots__ = (
        *("_code", "_payload_bytes", "_round", "content", "first", "plain", "planned", "public", "receivers"),
        *("sender", "sequence", "size_bytes", "wraps"),
    )

    def __init__(
        self,
        named: tuple[int, int, int, bytes, int],
        public: bytes,
        receivers: Sequence[tuple[bytes, bytes]],
        content: Ciphertext | Payload,
        wraps: Sequence[bytes | tuple[object, ...]] | None,
        size_bytes: int,
    ) -> None:
        self._code, self._round, self.sequence, self.sender, self._payload_bytes = named
        self.public, self.receivers = public, receivers
        self.content, self.wraps, self.size_bytes = content, wraps, size_bytes
        self.plain = content.value if wraps is None and isinstance(content, Payload) else ENCIPHERED
        self.planned: object = None
        self.first = 0

    def __len__(self) -> int:
        return len(self.receivers)

    def __iter__(self) -> Iterator[Envelope]:
        return (self[index] for index in range(len(self.receivers)))

    def __getitem__(self, index: int, /) -> Envelope:
        address, public_key = self.receivers[index]
        name = (self._code, self._round, self.sequence, self.sender, address, self._payload_bytes, self.content)
        # In mode `sizes` the wrap is a copy of keys and header, which opening compares with the envelope.
        wrap = (self.public, public_key, *name) if self.wraps is None else self.wraps[index]
        return Envelope(*name, wrap, self.size_bytes)

    @property
    def overhead_bytes(self) -> int:
        """Bytes of header and seal of each message."""
        return self.size_bytes - self._payload_bytes
