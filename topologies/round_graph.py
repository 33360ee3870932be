"""The graph of one round: directed, every member with exactly `degree` successors and `degree` predecessors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TRADES = 8
SMALL_EDGES, SMALL_TRADES = 100_000, 20
"""A trade moves half of the receivers two senders do not share, so the memory of the start decays as 2^-trades.

Small graphs can afford more trades.
"""
CACHE_WORDS = 20_000
"""Edges traded per block, sized to the CPU cache; changing it changes the drawn graphs."""


def round_graph(members: NDArray[np.int64], degree: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws sorted edges [m * degree, 2] of (sender, receiver), near-uniformly among all such graphs.

    Guarantees:
        Every member has in-degree and out-degree `degree`; no self-loop, no parallel edge; at any size.
        The distribution is exactly invariant under relabelling of the members, and uniform over the graphs up to
        the mixing of the Markov chain (tested against enumeration for six members).

    A randomly relabelled circulant graph is mixed by global curveball trades (Carstens, Hamann, Meyer,
    Penschuck, Tran, Wagner 2018): senders are paired at random, and each pair redistributes the receivers that
    only one of the two has. Degrees never change, so no draw is ever rejected.
    """
    # Sorted first, so that the result does not depend on the order in which members are given.
    nodes = np.sort(members)
    count = len(nodes)
    if (nodes[1:] == nodes[:-1]).any():
        raise ValueError("members must be distinct")
    if not 0 <= degree < max(count, 1):
        raise ValueError(f"degree must lie in 0..{count - 1}, not {degree}")
    rows = _successors(count, degree, rng)
    edges = np.empty((count * degree, 2), dtype=np.int64)
    edges[:, 0] = np.repeat(nodes, degree)
    edges[:, 1] = nodes[rows.ravel()]
    return edges


def _successors(count: int, degree: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns the sorted successors of node i in row i."""
    # The complement of a regular graph is regular too, so the sparser of the two is drawn: it mixes faster.
    sparse = min(degree, count - 1 - degree)
    rows = _shuffled_circulant(count, sparse, rng)
    # The number of trades is part of what a seed means: another one would redraw every graph of every run.
    for _ in range(SMALL_TRADES if rows.size <= SMALL_EDGES else TRADES):
        _trade(rows, rng)
    if sparse < degree:
        return _complement(rows)
    rows.sort(axis=1)
    return rows


def _shuffled_circulant(count: int, degree: int, rng: np.random.Generator) -> NDArray[np.int64]:
    names = rng.permutation(count)
    # Offsets from 1 to count - 1 exclude self-loops; distinct ones exclude parallel edges.
    # `max`: a single member has degree 0 and draws nothing, but the range must not be empty.
    offsets = 1 + rng.choice(max(count - 1, 1), size=degree, replace=False)
    rows = np.empty((count, degree), dtype=np.int64)
    rows[names] = names[(np.arange(count)[:, None] + offsets) % count]
    return rows


def _trade(rows: NDArray[np.int64], rng: np.random.Generator) -> None:
    """Pairs the senders at random and redistributes each pair's exclusive receivers, in place.

    With an odd number of senders the last one in the drawn order sits out.
    """
    half = len(rows) // 2
    order = rng.permutation(len(rows))
    step = max(1, CACHE_WORDS // max(rows.shape[1], 1))
    for start in range(0, half, step):
        stop = min(start + step, half)
        # No sender is in two pairs, so the blocks do not depend on each other.
        _deal(rows, order[start:stop], order[half + start : half + stop], rng)


def _deal(
    rows: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64], rng: np.random.Generator
) -> None:
    """Redistributes the receivers only one sender of a pair has, except the other sender (would become a self-loop).

    One sort per pair suffices: words are (class, 30 random bits, receiver), where class 0 must stay with the
    first sender, class 2 with the second, and class 1 may go to either.
    """
    degree = rows.shape[1]
    # The lowest bit marks the owner; after the sort a receiver both senders have stands in two adjacent words.
    words = np.concatenate([rows[first] << 1, (rows[second] << 1) | 1], axis=1)
    words.sort(axis=1)
    receivers = words >> 1
    # An edge between the two senders stays: given to the other one it would become a self-loop.
    stays = (receivers == first[:, None]) | (receivers == second[:, None])
    shared = receivers[:, 1:] == receivers[:, :-1]
    stays[:, 1:] |= shared
    stays[:, :-1] |= shared
    classes = np.where(stays, (words & 1) << 1, 1)
    # 2 + 30 + 31 bits fill the non-negative half of int64. Equal random bits (probability 2^-30) fall back to the
    # smaller receiver first.
    random_bits = rng.integers(0, 1 << 30, size=words.shape, dtype=np.uint32)
    words = (((classes << 30) | random_bits) << 31) | receivers
    words.sort(axis=1)
    # Only the receiver is left; the first `degree` words now belong to the first sender.
    words &= (1 << 31) - 1
    rows[first] = words[:, :degree]
    rows[second] = words[:, degree:]


def _complement(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    count, degree = rows.shape
    # Quadratic memory, but only for dense graphs, whose edges need as much anyway.
    absent = np.ones((count, count), dtype=np.bool_)
    np.put_along_axis(absent, rows, False, axis=1)
    np.fill_diagonal(absent, False)
    return np.nonzero(absent)[1].reshape(count, count - 1 - degree)
