"""Vectors whose values are computed on demand, and their encoding in messages.

A resumed run replays earlier events with learning paused. Vectors then have only a size and a name; their values are
set when learning is restored. A message sealed during the pause contains zeros permanently, since its bytes must not
change.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nodes.learning.carried_memory import Attachment
from privacy.sealing.envelopes import Payload
from privacy.stages.wire import DENSE, Encoding

Matrix = NDArray[np.float32]
_LOSS = struct.Struct("<d")
NO_ATTACHMENTS: Mapping[str, Attachment] = MappingProxyType({})
Name = tuple[str, int, int]
"""`release, round, node` or `model, node, number`; identifies the same vector in every replay of a run."""


class Vector:
    """A vector of the model's size that is computed on first access; `wire` is its encoding in messages.

    Where updates are weighed by losses, `loss` is the sender's, eight bytes behind the vector. `attached` is what goes
    with a model: its aggregator's momentum, or the mask of its last aggregate.
    """

    __slots__ = ("__weakref__", "_array", "_find", "attached", "loss", "size", "wire")  # weak references: WeakSet

    def __init__(
        self,
        size: int,
        find: Callable[[], Matrix],
        wire: Encoding = DENSE,
        loss: Callable[[], float] | None = None,
        attached: Mapping[str, Attachment] = NO_ATTACHMENTS,
    ) -> None:
        self.attached = attached
        self.size = size
        self.wire = wire
        self.loss = loss
        self._find = find
        self._array: Matrix | None = None

    def array(self) -> Matrix:
        """Returns the values; the first call computes them, later calls return the same object."""
        if self._array is None:
            self._array = self._find()
        return self._array

    def payload(self) -> Payload:
        """Returns this vector as a message payload."""
        return Payload(self, self._size_bytes(), self._encode, self._decode)

    def _size_bytes(self) -> int:
        more = sum(part.wire.size_bytes(self.size) for part in self.attached.values())
        return self.wire.size_bytes(self.size) + (0 if self.loss is None else _LOSS.size) + more

    def _encode(self) -> bytes:
        numbers = [self.wire.encode(self.array())]
        numbers += [] if self.loss is None else [_LOSS.pack(self.loss())]
        return b"".join([*numbers, *(part.wire.encode(part.find()) for part in self.attached.values())])

    def _decode(self, data: bytes) -> Vector:
        start = self.wire.size_bytes(self.size)
        find, loss = partial(self.wire.decode, data[:start], self.size), None
        if self.loss is not None:
            reported = float(_LOSS.unpack(data[start : start + _LOSS.size])[0])
            loss, start = (lambda: reported), start + _LOSS.size
        attached = {}
        for name, part in self.attached.items():
            end = start + part.wire.size_bytes(self.size)
            attached[name] = Attachment(part.wire, partial(part.wire.decode, data[start:end], self.size))
            start = end
        return Vector(self.size, find, self.wire, loss, attached)


class VectorSource(Protocol):
    """A source of named vectors; `paused` is set while a resumed run replays events."""

    dimension: int
    paused: bool

    def find(self, name: Name) -> Matrix:
        """Returns the values of a named vector."""

    def blank(self) -> Matrix:
        """Returns the placeholder for every vector while learning is paused."""


class NamedVector(Vector):
    """A vector that is identified by its name, also across a resume."""

    __slots__ = ("_source", "name")

    def __init__(
        self,
        source: VectorSource,
        name: Name,
        array: Matrix | None = None,
        wire: Encoding = DENSE,
        loss: Callable[[], float] | None = None,
        attached: Mapping[str, Attachment] = NO_ATTACHMENTS,
    ) -> None:
        super().__init__(source.dimension, lambda: source.find(name), wire, loss, attached)
        self._source, self.name = source, name
        self._array = array

    def array(self) -> Matrix:
        """Returns the values; while learning is paused, zeros, which are not cached."""
        if self._array is None and self._source.paused:
            return self._source.blank()
        return super().array()

    def set_value(self, array: Matrix, attached: Mapping[str, Matrix]) -> None:
        """Sets the values that were saved under its name, and those of what goes with it."""
        self._array = array
        self.attached = {
            name: Attachment(part.wire, partial(_itself, attached[name])) for name, part in self.attached.items()
        }

    def payload(self) -> Payload:
        """Returns this vector as a message payload; if sealed while paused, its bytes stay zeros."""
        if not self._source.paused:
            return super().payload()
        size_bytes = self._size_bytes()
        return Payload(self, size_bytes, lambda: bytes(size_bytes), self._decode_over_zeros)

    def _decode_over_zeros(self, data: bytes) -> Vector:
        """Decodes a payload of zeros: bits that arrive set were flipped in transit, and are flipped in the values."""
        # Decoded when first read, after learning was restored; until then the values are not there.
        read = lru_cache(maxsize=1)(lambda: self._decode(_xor(self._encode(), data)))
        loss = None if self.loss is None else lambda: (read().loss or float)()
        attached = {
            name: Attachment(part.wire, partial(lambda name: read().attached[name].find(), name))
            for name, part in self.attached.items()
        }
        return Vector(self.size, lambda: read().array(), self.wire, loss, attached)


def _itself(array: Matrix) -> Matrix:
    return array


def _xor(data: bytes, bits: bytes) -> bytes:
    return np.bitwise_xor(np.frombuffer(data, np.uint8), np.frombuffer(bits, np.uint8)).tobytes()


def mean_vector(vectors: Sequence[Vector]) -> Vector:
    """Returns the mean of vectors; a single vector is returned unchanged."""
    if len(vectors) == 1:
        return vectors[0]
    rows = np.stack([vector.array() for vector in vectors])
    # float64 sums, rounded once: the result then depends little on the number of rows.
    mean: Matrix = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    return Vector(vectors[0].size, lambda: mean)


def stacked(rows: Sequence[Matrix]) -> Matrix:
    """Returns rows as one read-only matrix, without a copy if they are all the rows of a matrix in its order."""
    # Releases are usually all rows of a cohort's matrix in order; returning that matrix avoids a copy of a whole round.
    whole = rows[0].base
    if whole is None or whole.shape != (len(rows), len(rows[0])) or not _in_order(rows, whole):
        whole = np.stack(rows)
    view: Matrix = whole.view()
    view.flags.writeable = False
    return view


def _in_order(rows: Sequence[Matrix], whole: Matrix) -> bool:
    # Memory addresses tell which row a view is; comparing values would read everything.
    first = whole.__array_interface__["data"][0]
    starts = [row.__array_interface__["data"][0] - first for row in rows]
    return all(row.base is whole for row in rows) and starts == [n * whole.strides[0] for n in range(len(rows))]
