"""Vectors that are promised now and known later, and how they go on the wire.

A resumed run replays its events with the learning asleep: vectors then have a size and a name, and get their numbers
when the learning wakes. A message sealed while it slept holds zeros for good, since its bytes must not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.envelopes import Payload
from privacy.wire import decode_vector, encode_vector, vector_size

Matrix = NDArray[np.float32]
Name = tuple[str, int, int]
"""`release, round, node` or `model, node, number`: the same vector in every replay of a run."""


class Vector:
    """A vector of the model's size that is known once somebody asks for it."""

    __slots__ = ("__weakref__", "_array", "_find", "size")

    def __init__(self, size: int, find: Callable[[], Matrix]) -> None:
        self.size = size
        self._find = find
        self._array: Matrix | None = None

    def array(self) -> Matrix:
        """The numbers; computed at the first call, the same object ever after."""
        if self._array is None:
            self._array = self._find()
        return self._array

    def payload(self) -> Payload:
        """This vector on the wire."""
        return Payload(self, vector_size(self.size), self._encode, self._read)

    def _encode(self) -> bytes:
        return encode_vector(self.array())

    def _read(self, data: bytes) -> Vector:
        return Vector(self.size, lambda: decode_vector(data))


class Giver(Protocol):
    """Whoever gives out named vectors."""

    dimension: int
    asleep: bool

    def find(self, name: Name) -> Matrix:
        """The numbers behind a name."""

    def blank(self) -> Matrix:
        """What stands for every vector while the giver is asleep."""


class Given(Vector):
    """A vector that can be found again by its name, also by a resumed run."""

    __slots__ = ("_giver", "name")

    def __init__(self, giver: Giver, name: Name, array: Matrix | None = None) -> None:
        super().__init__(giver.dimension, lambda: giver.find(name))
        self._giver, self.name = giver, name
        self._array = array

    def array(self) -> Matrix:
        """The numbers; zeros, and not for good, while the learning is asleep."""
        if self._array is None and self._giver.asleep:
            return self._giver.blank()
        return super().array()

    def know(self, array: Matrix) -> None:
        """Takes the numbers that were saved under its name."""
        self._array = array

    def payload(self) -> Payload:
        """This vector on the wire; what is sealed in sleep stays as it was sealed."""
        if not self._giver.asleep:
            return super().payload()
        size_bytes = vector_size(self.size)
        return Payload(self, size_bytes, lambda: bytes(size_bytes), self._read_over_zeros)

    def _read_over_zeros(self, data: bytes) -> Vector:
        """Zeros were sent, so the bits that arrive set are those that changed on the way."""
        return Vector(self.size, lambda: decode_vector(_flip(encode_vector(self.array()), data)))


def _flip(data: bytes, bits: bytes) -> bytes:
    return np.bitwise_xor(np.frombuffer(data, np.uint8), np.frombuffer(bits, np.uint8)).tobytes()


def mean_vector(vectors: Sequence[Vector]) -> Vector:
    """The mean of some vectors; of a single one, that one."""
    if len(vectors) == 1:
        return vectors[0]
    rows = np.stack([vector.array() for vector in vectors])
    mean: Matrix = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    return Vector(vectors[0].size, lambda: mean)


def stacked(rows: Sequence[Matrix]) -> Matrix:
    """Rows as one matrix that nobody can write to; not copied if they are all the rows of one, in its order."""
    whole = rows[0].base
    if whole is None or whole.shape != (len(rows), len(rows[0])) or not _in_order(rows, whole):
        whole = np.stack(rows)
    view: Matrix = whole.view()
    view.flags.writeable = False
    return view


def _in_order(rows: Sequence[Matrix], whole: Matrix) -> bool:
    first = whole.__array_interface__["data"][0]
    starts = [row.__array_interface__["data"][0] - first for row in rows]
    return all(row.base is whole for row in rows) and starts == [n * whole.strides[0] for n in range(len(rows))]
