"""What travels: an envelope with its size, and the payload it refers to.

Payloads go by reference: a receiver that may open an envelope gets the sender's own `value`, not a copy.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy import wire
from privacy.anonymity import Sealed

TAG_BYTES = 16
WRAP_BYTES = 32 + 32 + TAG_BYTES
"""A wrapped content key: the key, the ciphertext's SHA-256, and the tag."""
UNREADABLE = object()
"""The value of bytes that nobody can make sense of."""
ENCIPHERED = object()
"""Stands where a value is that has to be deciphered first."""


Refusal = Literal["corrupt", "unknown_address", "not_neighbour", "replay"]


class Rejected(Exception):  # noqa: N818 (a refusal is an ordinary outcome here, not an error of the program)
    """A message arrived and is refused; `reason` is the one the books record."""

    def __init__(self, reason: Refusal = "corrupt") -> None:
        super().__init__(reason)
        self.reason = reason


class Payload:
    """A value on its way, of known size; its bytes are made only where a cipher needs them.

    Args:
        encode: makes the bytes, exactly `size_bytes` of them.
        decode: reads them back; needed only to say what an unsealed, altered message turns into.
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
        """The payload as sent; refuses to be of another size than was stated and counted."""
        data = self._encode()
        if len(data) != self.size_bytes:
            raise RuntimeError(f"a payload stated as {self.size_bytes} bytes has {len(data)}")
        return data

    def altered(self, data: bytes) -> Payload:
        """What a reader makes of other bytes in this one's place: their value, or `UNREADABLE`."""
        value: Any = UNREADABLE
        if self._decode:
            with suppress(ValueError, LookupError, struct.error):
                value = self._decode(data)
        return Payload(value, len(data), lambda: data, self._decode)


def vector_payload(vector: NDArray[np.float32]) -> Payload:
    """The payload of an update or model; the row must not change until its last message has ended."""
    size_bytes = wire.vector_size(vector.size)
    return Payload(vector, size_bytes, lambda: wire.encode_vector(vector), wire.decode_vector)


class Ciphertext:
    """A sealed payload, shared by all envelopes that carry it.

    Its bytes never change (a damaged copy is another object), so it may remember their SHA-256 once somebody
    has computed it, and the key that has opened it: fifty readers cost one hash and one decryption.
    """

    __slots__ = ("_digest", "data", "opened_with", "payload")

    def __init__(self, data: bytes, payload: Payload) -> None:
        self.data = data
        self.payload = payload
        self._digest: bytes | None = None
        self.opened_with: bytes | None = None

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the bytes."""
        if self._digest is None:
            self._digest = hashlib.sha256(self.data).digest()
        return self._digest


class Envelope(NamedTuple):
    """One message on the wire. Its first six fields are the header; `size_bytes` is all of it.

    Attributes:
        code: the kind's number on the wire, with `wire.MANY` or without
        content: the ciphertext or, where nothing is enciphered, the payload itself
        wrap: the wrapped content key; empty if there is none; a tuple stands for the seal in mode `sizes`
        tampered: whether somebody changed it on the way; only mode `sizes` may look at it
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
        """The kind its header states; `unknown` if the header was damaged."""
        return wire.KIND_NAMES.get(self.code & ~wire.MANY, "unknown")

    @property
    def overhead_bytes(self) -> int:
        """Everything but the plain payload: header and seal."""
        return self.size_bytes - self.payload_bytes


class Bundle:
    """One payload sealed for many: the envelopes of its receivers, each made when somebody asks for it.

    Attributes:
        public: the key of the sender
        receivers: their addresses and keys
        wraps: the content key as wrapped for each receiver; none where nothing is enciphered
        plain: the value, which whoever has the right keys is given; or `ENCIPHERED`
    """

    __slots__ = ("_named", "content", "plain", "public", "receivers", "sender", "sequence", "size_bytes", "wraps")

    def __init__(
        self,
        named: tuple[int, int, int, bytes, int],
        public: bytes,
        receivers: Sequence[tuple[bytes, bytes]],
        content: Ciphertext | Payload,
        wraps: Sequence[bytes | tuple[object, ...]] | None,
        size_bytes: int,
    ) -> None:
        self._named, self.public, self.receivers = named, public, receivers
        self.content, self.wraps, self.size_bytes = content, wraps, size_bytes
        self.sequence, self.sender = named[2], named[3]
        self.plain = content.value if wraps is None and isinstance(content, Payload) else ENCIPHERED

    def __len__(self) -> int:
        return len(self.receivers)

    def __iter__(self) -> Iterator[Envelope]:
        return (self[index] for index in range(len(self.receivers)))

    def __getitem__(self, index: int, /) -> Envelope:
        code, round_number, sequence, sender, payload_bytes = self._named
        address, public_key = self.receivers[index]
        name = (code, round_number, sequence, sender, address, payload_bytes, self.content)
        # In mode `sizes` an envelope keeps what it was sealed with.
        wrap = (self.public, public_key, *name) if self.wraps is None else self.wraps[index]
        return Envelope(*name, wrap, self.size_bytes)

    @property
    def overhead_bytes(self) -> int:
        """Header and seal of each message."""
        return self.size_bytes - self._named[4]


@cache
def message_size(payload_bytes: int, *, many: bool, sealed: Sealed) -> int:
    """Bytes of a whole message; `many` if its payload goes to more than one receiver at once.

    Every kind has the same header and the same seal, so the kind does not enter.
    """
    return wire.HEADER_BYTES + payload_bytes + seal_size(many=many, sealed=sealed)


def seal_size(*, many: bool, sealed: Sealed) -> int:
    """The bytes that sealing adds to one message."""
    if sealed is False:
        return 0
    return TAG_BYTES + (WRAP_BYTES if many else 0)
