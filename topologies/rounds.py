"""The graph of one round: directed, every member with exactly `degree` successors and `degree` predecessors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TRADES = 8
SMALL_EDGES, SMALL_TRADES = 100_000, 20
"""A trade moves half of what two senders do not share, so what is left of the start falls as 2^-trades."""
CACHE_WORDS = 20_000
"""Edges dealt at a time: what fits the cache; part of the law's definition, since draws follow its order."""


def round_graph(members: NDArray[np.int64], degree: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws edges [m * degree, 2] of (sender, receiver), sorted, near-uniformly among all such graphs.

    Guarantees:
        Every member has in-degree and out-degree `degree`; no loop, no double edge; at any size.
        The law is the same for every naming of the members (exactly), and uniform over the graphs up to
        the mixing of the Markov chain (tested against enumeration for six members).

    A circulant graph under random names is mixed by global curveball trades (Carstens, Hamann, Meyer,
    Penschuck, Tran, Wagner 2018): senders are paired at random, and each pair deals the receivers that only
    one of them has anew. Degrees never change, so nothing is ever rejected.
    """
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
    """Row i: the sorted successors of i. The complement of a regular graph is one, and the sparser mixes faster."""
    sparse = min(degree, count - 1 - degree)
    rows = _shuffled_circulant(count, sparse, rng)
    for _ in range(SMALL_TRADES if rows.size <= SMALL_EDGES else TRADES):
        _trade(rows, rng)
    if sparse < degree:
        return _complement(rows)
    rows.sort(axis=1)
    return rows


def _shuffled_circulant(count: int, degree: int, rng: np.random.Generator) -> NDArray[np.int64]:
    names = rng.permutation(count)
    offsets = 1 + rng.choice(max(count - 1, 1), size=degree, replace=False)
    rows = np.empty((count, degree), dtype=np.int64)
    rows[names] = names[(np.arange(count)[:, None] + offsets) % count]
    return rows


def _trade(rows: NDArray[np.int64], rng: np.random.Generator) -> None:
    """Pairs the senders and deals each pair's exclusive receivers anew, in place."""
    half = len(rows) // 2
    order = rng.permutation(len(rows))
    step = max(1, CACHE_WORDS // max(rows.shape[1], 1))
    for start in range(0, half, step):
        stop = min(start + step, half)
        _deal(rows, order[start:stop], order[half + start : half + stop], rng)


def _deal(
    rows: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64], rng: np.random.Generator
) -> None:
    """Deals anew what only one sender of a pair has, except edges to the other one (they would become loops).

    One sort per pair does it: words are (class, 30 random bits, receiver), where class 0 must stay with the
    first sender, 2 with the second, and 1 may go to either.
    """
    degree = rows.shape[1]
    words = np.concatenate([rows[first] << 1, (rows[second] << 1) | 1], axis=1)
    words.sort(axis=1)
    receivers = words >> 1
    stays = (receivers == first[:, None]) | (receivers == second[:, None])
    shared = receivers[:, 1:] == receivers[:, :-1]
    stays[:, 1:] |= shared
    stays[:, :-1] |= shared
    classes = np.where(stays, (words & 1) << 1, 1)
    luck = rng.integers(0, 1 << 30, size=words.shape, dtype=np.uint32)
    words = (((classes << 30) | luck) << 31) | receivers
    words.sort(axis=1)
    words &= (1 << 31) - 1
    rows[first] = words[:, :degree]
    rows[second] = words[:, degree:]


def _complement(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    count, degree = rows.shape
    absent = np.ones((count, count), dtype=np.bool_)
    np.put_along_axis(absent, rows, False, axis=1)
    np.fill_diagonal(absent, False)
    return np.nonzero(absent)[1].reshape(count, count - 1 - degree)
