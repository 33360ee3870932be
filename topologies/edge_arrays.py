"""Edge arrays: rows of (sender, receiver), sorted, without loops and doubles; the form of every graph of a round."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Edges = NDArray[np.int64]
Ids = NDArray[np.int64]

_TRIES_PER_SWAP = 100
_ID_BITS = 31


def no_edges() -> Edges:
    """Returns an edge array without rows."""
    return np.empty((0, 2), dtype=np.int64)


def ordered(edges: Edges) -> Edges:
    """Returns the distinct rows without loops, by sender, then receiver."""
    edges = edges[edges[:, 0] != edges[:, 1]]
    # `lexsort` takes its last key first: by sender, then receiver.
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    # The first of equal rows stays.
    changes = np.ones(len(edges), dtype=np.bool_)
    changes[1:] = (edges[1:] != edges[:-1]).any(axis=1)
    found: Edges = edges[changes]
    return found


def group_starts(values: Ids) -> Ids:
    """Returns the places at which another value begins, in values that are grouped: sorted, for example."""
    changes = np.ones(len(values), dtype=np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return np.flatnonzero(changes)


def distinct(values: Ids) -> Ids:
    """Returns the different values, sorted."""
    # `np.unique` takes many times as long: it puts them into a hash table first.
    values = np.sort(values)
    return values[group_starts(values)]


def stable_order(values: Ids) -> Ids:
    """Returns the places of values from the smallest to the largest, of equal ones as they stand.

    Values and places fit in 31 bits, like the numbers of nodes and edges.
    """
    # Numbers that carry their place: sorting them is many times as fast as a stable `argsort`.
    placed = values.astype(np.int64) << _ID_BITS | np.arange(len(values))
    placed.sort()
    places: Ids = placed & ((1 << _ID_BITS) - 1)
    return places


def both_ways(pairs: Edges) -> Edges:
    """Returns the edges of undirected pairs: each pair in both directions."""
    return ordered(np.concatenate([pairs, pairs[:, ::-1]]))


def is_symmetric(edges: Edges) -> bool:
    """Returns whether every edge has its reverse; `edges` as `ordered` returns them."""
    # Reversed edges in the same order are the same array exactly if the graph is undirected.
    return np.array_equal(edges, ordered(edges[:, ::-1]))


def induced(edges: Edges, members: Ids) -> Edges:
    """Returns the edges between members; the graph of a round in which only they take part."""
    return edges[np.isin(edges[:, 0], members) & np.isin(edges[:, 1], members)]


def pairs_of(numbers: Ids) -> Edges:
    """Returns the pairs (a, b), a > b, that the numbers 0, 1, 2, ... count: (1, 0), (2, 0), (2, 1), (3, 0), ..."""
    # The square root is off by at most one for the sizes in question, and the two corrections mend that.
    larger = ((1.0 + np.sqrt(1.0 + 8.0 * numbers)) / 2.0).astype(np.int64)
    larger -= larger * (larger - 1) // 2 > numbers
    larger += larger * (larger + 1) // 2 <= numbers
    return np.column_stack([larger, numbers - larger * (larger - 1) // 2])


def blocks(n: int, count: int) -> list[slice]:
    """Returns 0..n-1 as blocks of neighbouring numbers whose sizes differ by at most one."""
    # Whole numbers throughout: rounding of n / count would add up over many blocks.
    bounds = (np.arange(count + 1) * n // count).tolist()
    return [slice(low, high) for low, high in pairwise(bounds)]


def concatenated(parts: Iterable[Edges]) -> Edges:
    """Returns all rows of several edge arrays."""
    return np.concatenate([no_edges(), *parts])


def random_pairs(n: int, probability: float, rng: np.random.Generator) -> Edges:
    """Returns each of the n (n - 1) / 2 pairs of 0..n-1 with the same probability, independently."""
    every = n * (n - 1) // 2
    # Given their number, the pairs are a simple random sample; this costs as much as there are edges.
    return pairs_of(rng.choice(every, rng.binomial(every, probability), replace=False, shuffle=False))


def regular_pairs(n: int, degree: int, rng: np.random.Generator) -> Edges:
    """Returns the pairs of a random graph in which each of 0..n-1 has `degree` neighbours; n * degree is even.

    The configuration model: half-edges are paired at random, then loops and doubles are removed by swaps with
    random other pairs. In a sparse graph about degree^2 / 4 pairs need a swap, whatever n is, so the distribution is
    near-uniform for n much larger than the degree.
    """
    # The complement of a regular graph is regular; the sparser of the two needs few swaps.
    if 2 * degree > n - 1:
        return _complement(n, regular_pairs(n, n - 1 - degree, rng))
    while (pairs := _matched(np.repeat(np.arange(n), degree), rng)) is None:
        pass  # all other pairs are loops or doubles too, which happens in tiny graphs only
    return pairs


def _matched(half_edges: Ids, rng: np.random.Generator) -> Edges | None:
    """Pairs half-edges at random and mends loops and doubles; returns None if no swap mends one."""
    # Smaller end first, so that doubles are equal tuples.
    pairs = [(min(a, b), max(a, b)) for a, b in rng.permutation(half_edges).reshape(-1, 2).tolist()]
    present: set[tuple[int, int]] = set()
    wrong: set[int] = set()
    for place, pair in enumerate(pairs):
        if pair[0] == pair[1] or pair in present:
            wrong.add(place)
        present.add(pair)
    # In a fixed order, since the swaps draw from one stream; a set has none.
    for place in sorted(wrong):
        if not any(_mend(pairs, place, wrong, present, rng) for _ in range(_TRIES_PER_SWAP)):
            return None
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def swapped(edges: Edges, count: int, rng: np.random.Generator) -> Edges:
    """Returns the graph after `count` swaps of two random edges a-b, c-d into a-d, c-b; all degrees stay.

    A swap that would make a loop or a double is drawn again, up to a limit: a complete graph has no swap.
    An undirected graph (every edge in both directions) stays undirected.
    """
    mutual = is_symmetric(edges)
    # One direction of each pair; the other is made again at the end.
    rows = (edges[edges[:, 0] < edges[:, 1]] if mutual else edges).tolist()
    # A set of whole numbers is built several times as fast as one of pairs.
    present = set((edges[:, 0] << _ID_BITS | edges[:, 1]).tolist())
    done = 0
    for _ in range(_TRIES_PER_SWAP * count if len(rows) > 1 else 0):
        if done == count:
            break
        done += _swap(rows, present, mutual, rng)
    found = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return both_ways(found) if mutual else ordered(found)


def _swap(rows: list[list[int]], present: set[int], mutual: bool, rng: np.random.Generator) -> bool:
    # Pairs of edges are drawn uniformly, and draws that do not fit are not counted: graphs that allow more swaps are
    # somewhat likelier.
    first, second = rng.choice(len(rows), 2, replace=False).tolist()
    (a, b), (c, d) = rows[first], rows[second]
    # An undirected pair has no order: without the coin the swap into a-c, b-d would never be drawn.
    if mutual and rng.random() < 0.5:
        c, d = d, c
    if a == d or c == b or not present.isdisjoint(_keys(a, d, c, b, mutual)):
        return False
    present.difference_update(_keys(a, b, c, d, mutual))
    present.update(_keys(a, d, c, b, mutual))
    rows[first], rows[second] = [a, d], [c, b]
    return True


def _keys(a: int, b: int, c: int, d: int, mutual: bool) -> list[int]:
    """Returns the edges a-b and c-d as numbers, with their reverses if the graph is undirected."""
    keys = [a << _ID_BITS | b, c << _ID_BITS | d]
    return [*keys, b << _ID_BITS | a, d << _ID_BITS | c] if mutual else keys


def _mend(
    pairs: list[tuple[int, int]],
    place: int,
    wrong: set[int],
    present: set[tuple[int, int]],
    rng: np.random.Generator,
) -> bool:
    """Exchanges ends of a loop or double with those of a random good pair; returns whether two good pairs result."""
    other = int(rng.integers(len(pairs)))
    (a, b), (c, d) = pairs[place], pairs[other]
    # A coin, so that no end is preferred for its number.
    if rng.random() < 0.5:
        a, b = b, a
    fresh = (min(a, c), max(a, c)), (min(b, d), max(b, d))
    # `wrong` contains `place` itself. The good twin of a double stays in `present`, so only (c, d) leaves it.
    if other in wrong or a == c or b == d or fresh[0] == fresh[1] or not present.isdisjoint(fresh):
        return False
    present.remove(pairs[other])
    present.update(fresh)
    wrong.remove(place)
    pairs[place], pairs[other] = fresh
    return True


def _complement(n: int, pairs: Edges) -> Edges:
    # The upper triangle: every pair once, the smaller end first.
    absent = np.tri(n, k=-1, dtype=np.bool_).T
    absent[pairs.min(axis=1, initial=n), pairs.max(axis=1, initial=-1)] = False
    return np.argwhere(absent).astype(np.int64)
