"""Encodings of releases with few coordinates, or with coordinates of few bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.random_streams import stream
from privacy.stages.wire import DENSE, Encoding, Row

_INDEX_BYTES, _VALUE_BYTES = 4, 4


@dataclass(frozen=True, slots=True)
class Sparse:
    """`kept` values with their places: 4-byte indices or a bitmap of all coordinates, whichever is shorter."""

    kept: int

    def size_bytes(self, dimension: int) -> int:
        """Returns 4 bytes per value, and the places."""
        return _VALUE_BYTES * self.kept + min(_INDEX_BYTES * self.kept, _bitmap_bytes(dimension))

    def encode(self, row: Row) -> bytes:
        """Returns the places, ascending, then the values; zeros fill up what is missing to `kept`."""
        places = np.flatnonzero(row)
        if len(places) < self.kept:
            # A kept coordinate can be zero; the length must not tell how many are.
            zeros = np.flatnonzero(row == 0.0)[: self.kept - len(places)]
            places = np.sort(np.concatenate([places, zeros]))
        if self._indexed(len(row)):
            where = places.astype("<u4").tobytes()
        else:
            bits = np.zeros(len(row), dtype=np.bool_)
            bits[places] = True
            where = np.packbits(bits).tobytes()
        return where + row[places].astype("<f4").tobytes()

    def decode(self, data: bytes, dimension: int) -> Row:
        """Returns the row; of damaged places, those that exist count."""
        cut = len(data) - _VALUE_BYTES * self.kept
        if self._indexed(dimension):
            # Bytes that were damaged on the way must decode to some row, so a place out of range wraps around.
            places = np.frombuffer(data[:cut], dtype="<u4").astype(np.int64) % dimension
        else:
            places = np.flatnonzero(np.unpackbits(np.frombuffer(data[:cut], np.uint8), count=dimension))[: self.kept]
        row = np.zeros(dimension, dtype=np.float32)
        # Damaged bits of a bitmap may name fewer places than there are values.
        row[places] = np.frombuffer(data[cut:], dtype="<f4")[: len(places)]
        return row

    def bound(self, seed: int, round_number: int, node: int, memory: Mapping[str, NDArray[Any]]) -> Encoding:
        """Returns the same: it does not depend on the release."""
        return self

    def _indexed(self, dimension: int) -> bool:
        # Both ends know `kept` and the dimension, so the form needs no flag.
        return _INDEX_BYTES * self.kept <= _bitmap_bytes(dimension)


@dataclass(frozen=True, slots=True)
class CommonMask:
    """`kept` values at places that all know: drawn by round, or those that a client's model tells.

    Attributes:
        kept: coordinates of the mask.
        random: whether the mask is drawn in every round.
        refresh: otherwise, rounds between releases of everything; 0 has only the first.
    """

    kept: int
    random: bool
    refresh: int = 0

    def size_bytes(self, dimension: int) -> int:
        """Returns 4 bytes per value of the mask; a round that sends everything is longer."""
        return _VALUE_BYTES * self.kept

    def sends_all(self, round_number: int) -> bool:
        """Returns whether a round sends all coordinates, from which later masks are found."""
        first = round_number <= 1
        return not self.random and (first or (bool(self.refresh) and (round_number - 1) % self.refresh == 0))

    def drawn(self, seed: int, round_number: int, dimension: int) -> NDArray[np.int64]:
        """Returns the places of a round's random mask, ascending."""
        chosen = stream(seed, "mask", round_number).choice(dimension, self.kept, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int64)

    def bound(self, seed: int, round_number: int, node: int, memory: Mapping[str, NDArray[Any]]) -> Encoding:
        """Returns the encoding of one release."""
        if self.sends_all(round_number):
            return DENSE
        return _Masked(self, seed, round_number, None if self.random else memory.get("mask"), node)


@dataclass(frozen=True, slots=True)
class _Masked:
    """The values of one release at the places of its mask."""

    mask: CommonMask
    seed: int
    round_number: int
    bits: NDArray[Any] | None
    node: int

    def size_bytes(self, dimension: int) -> int:
        """Returns 4 bytes per value."""
        return self.mask.size_bytes(dimension)

    def encode(self, row: Row) -> bytes:
        """Returns the values in the order of their places."""
        return row[self._places(len(row))].astype("<f4").tobytes()

    def decode(self, data: bytes, dimension: int) -> Row:
        """Returns the row, zero outside the mask."""
        row = np.zeros(dimension, dtype=np.float32)
        row[self._places(dimension)] = np.frombuffer(data, dtype="<f4")
        return row

    def _places(self, dimension: int) -> NDArray[np.int64]:
        if self.bits is None:
            return self.mask.drawn(self.seed, self.round_number, dimension)
        places = np.flatnonzero(np.unpackbits(self.bits[self.node], count=dimension))
        # A run without learning has no models to find places from; any will do for its bytes.
        return places if len(places) == self.mask.kept else np.arange(self.mask.kept)


class Positions:
    """The places of a vector that are not zero, one bit for every coordinate."""

    def size_bytes(self, dimension: int) -> int:
        """Returns the bytes of a bitmap."""
        return _bitmap_bytes(dimension)

    def encode(self, row: Row) -> bytes:
        """Returns the bits."""
        return np.packbits(row != 0.0).tobytes()

    def decode(self, data: bytes, dimension: int) -> Row:
        """Returns 1 at the places; damaged bits are other places."""
        return np.unpackbits(np.frombuffer(data, np.uint8), count=dimension).astype(np.float32)


def _bitmap_bytes(dimension: int) -> int:
    return -(-dimension // 8)
