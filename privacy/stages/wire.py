"""Encodings of releases: fixed-width, so that the bytes on the wire follow from the stages alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.sealing.wire_format import decode_vector, encode_vector, vector_size

Row = NDArray[np.float32]


class Encoding(Protocol):
    """The bytes of one release."""

    def size_bytes(self, dimension: int) -> int:
        """Returns the bytes of a release of that many coordinates."""

    def encode(self, row: Row) -> bytes:
        """Returns a release as exactly that many bytes."""

    def decode(self, data: bytes, dimension: int) -> Row:
        """Returns the release again, bit for bit; any bytes of the right length decode to some row."""


class WireFormat(Protocol):
    """How a run's releases are encoded."""

    def bound(self, seed: int, round_number: int, node: int, memory: Mapping[str, NDArray[Any]]) -> Encoding:
        """Returns the encoding of one release, where it depends on the round or on what stages remember."""


class Dense:
    """Every coordinate as a float32 number, as models are sent."""

    def size_bytes(self, dimension: int) -> int:
        """Returns 4 bytes per coordinate."""
        return vector_size(dimension)

    def encode(self, row: Row) -> bytes:
        """Returns the numbers in order."""
        return encode_vector(row)

    def decode(self, data: bytes, dimension: int) -> Row:
        """Returns a read-only view of the numbers."""
        return decode_vector(data)

    def bound(self, seed: int, round_number: int, node: int, memory: Mapping[str, NDArray[Any]]) -> Encoding:
        """Returns the same."""
        return self


DENSE = Dense()
