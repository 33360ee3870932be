"""How messages look on the wire: fixed-width, little-endian, uncompressed, so a size follows from kind and shape.

A message is a header of 82 bytes and a payload. Payloads are either a float32 vector (4 bytes a parameter) or a
control message (one byte saying which, then fixed fields). Sealing adds to this; see sealing.py.
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
"""Bit of the kind's byte: the payload is shared by many receivers and its key comes wrapped."""

_HEADER = struct.Struct("<BBII32s32sQ")
HEADER_BYTES = _HEADER.size
NAME_BYTES = HEADER_BYTES - 8
"""The header's part before the payload length: it names the message, and so derives its key."""


class Header(NamedTuple):
    """A message's header; `code` is the kind's number, with `MANY` or without."""

    code: int
    round: int
    sequence: int
    sender: bytes
    receiver: bytes
    payload_bytes: int


def encode_header(code: int, round: int, sequence: int, sender: bytes, receiver: bytes, payload_bytes: int) -> bytes:
    """The header's 82 bytes."""
    return _HEADER.pack(VERSION, code, round, sequence, sender, receiver, payload_bytes)


def decode_header(data: bytes) -> Header:
    """Reads a header.

    Raises:
        ValueError: too short, or of another version.
    """
    if len(data) < HEADER_BYTES or data[0] != VERSION:
        raise ValueError(f"not a header of version {VERSION}")
    return Header(*_HEADER.unpack_from(data)[1:])


def vector_size(dimension: int) -> int:
    """Payload bytes of a vector of that many float32 numbers."""
    return 4 * dimension


def encode_vector(vector: NDArray[np.float32]) -> bytes:
    """The vector's numbers, little-endian."""
    return vector.astype("<f4", copy=False).tobytes()


def decode_vector(data: bytes) -> NDArray[np.float32]:
    """A read-only view of the numbers; nothing is copied."""
    return np.frombuffer(data, dtype="<f4")
