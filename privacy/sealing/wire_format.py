"""Wire format of messages: fixed-width, little-endian, uncompressed, so that sizes follow from kind and shape.

A message is a header of 82 bytes and a payload. A payload is a float32 vector (4 bytes per parameter) or a control
message (one byte for its type, then fixed fields). Sealing adds to this; see sealing.py.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VERSION = 1
KINDS = {
    "control": 1,
    "bootstrap": 2,
    "update": 3,
    "model": 4,
    "handover": 5,
    "share": 6,
    "correction": 7,
    "collect": 8,
}
KIND_NAMES = {code: name for name, code in KINDS.items()}
MANY = 0x80
"""Bit of the kind's byte: the payload is shared by many receivers and its key is wrapped for each."""

# Version, kind, round, sequence, sender, receiver, payload bytes; `<` also rules out padding.
_HEADER = struct.Struct("<BBII32s32sQ")
HEADER_BYTES = _HEADER.size
NAME_BYTES = HEADER_BYTES - 8
"""Length of the header's part before the payload length; this part names the message and derives its key."""


class Header(NamedTuple):
    """A message's header; `code` is the kind's code, with or without `MANY`."""

    code: int
    round: int
    sequence: int
    sender: bytes
    receiver: bytes
    payload_bytes: int


def encode_header(code: int, round: int, sequence: int, sender: bytes, receiver: bytes, payload_bytes: int) -> bytes:
    """Returns the header's 82 bytes."""
    return _HEADER.pack(VERSION, code, round, sequence, sender, receiver, payload_bytes)


def decode_header(data: bytes) -> Header:
    """Decodes a header.

    Raises:
        ValueError: too short, or of another version.
    """
    # The version comes first, so that later versions may change all that follows.
    if len(data) < HEADER_BYTES or data[0] != VERSION:
        raise ValueError(f"not a header of version {VERSION}")
    return Header(*_HEADER.unpack_from(data)[1:])


def vector_size(dimension: int) -> int:
    """Returns the payload bytes of a vector of that many float32 numbers."""
    return 4 * dimension


def encode_vector(vector: NDArray[np.float32]) -> bytes:
    """Returns the vector's numbers as little-endian bytes."""
    # The order of bytes is fixed, so sizes and ciphertexts are the same on every machine.
    return vector.astype("<f4", copy=False).tobytes()


def decode_vector(data: bytes) -> NDArray[np.float32]:
    """Returns a read-only view of the numbers, without a copy."""
    return np.frombuffer(data, dtype="<f4")
