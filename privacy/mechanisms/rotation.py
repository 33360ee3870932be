"""Random rotation by signs and Hadamard matrices, on vectors of any length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


def rotate(row: Vector, signs: Vector) -> Vector:
    """Returns the row times signs, transformed block by block; norms stay."""
    turned = row * signs
    for block in _blocks(len(row)):
        _transform(turned[block])
    return turned


def rotate_back(row: Vector, signs: Vector) -> Vector:
    """Returns the inverse of `rotate`."""
    turned = row.copy()
    for block in _blocks(len(row)):
        _transform(turned[block])
    # Signs last: the inverse undoes the two steps in reverse order, and each is its own inverse.
    turned *= signs
    return turned


def _blocks(length: int) -> Iterator[slice]:
    """Yields blocks of falling powers of two that fill the length, so that nothing is padded."""
    start = 0
    while start < length:
        # The largest power of two that still fits, so there are at most as many blocks as the length has bits.
        size = 1 << ((length - start).bit_length() - 1)
        yield slice(start, start + size)
        start += size


def _transform(block: Vector) -> None:
    """Multiplies by the orthonormal Hadamard matrix, in place; its own inverse."""
    half = 1
    while half < len(block):
        pairs = block.reshape(-1, 2, half)
        first, second = pairs[:, 0], pairs[:, 1]
        # One temporary of half a block: the sum, then the difference from what the sum replaced.
        total = first + second
        np.subtract(first, second, out=second)
        first[:] = total
        half *= 2
    # One scaling at the end instead of one by 1/sqrt(2) in each pass: fewer passes, and norms stay.
    block *= np.float32(len(block) ** -0.5)
