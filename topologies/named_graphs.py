"""Graphs with a name and no randomness: ring, path, star, complete, torus, hypercube, exponential, clusters with heads.

A graph is a frozen dataclass whose verb `draw` returns directed edges among given members. The order of the members
is their place in the graph: the first one is the centre of a star, neighbours in the list are neighbours on a ring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count, islice
from typing import Annotated, ClassVar, Protocol

import numpy as np
from annotated_types import Ge

from topologies.edge_arrays import Edges, Ids, blocks, both_ways, concatenated, no_edges, ordered, pairs_of

MOST_COMPLETE = 20_000
"""Members of a complete graph: its edges take 6 GB then."""


class Graph(Protocol):
    """A kind of graph.

    Attributes:
        free_degree: whether `degree` chooses how many neighbours a member has; otherwise the kind fixes it
    """

    free_degree: ClassVar[bool]

    def problem(self, n: int, degree: int | None) -> str:
        """Returns why there is no such graph of `n` members and what would fit; empty if there is one."""

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Returns directed edges among the members, by sender, then receiver; undirected ones in both directions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A cycle: each member exchanges with the two beside it.

    Attributes:
        directed: each one sends to the next only
    """

    free_degree: ClassVar[bool] = False
    directed: bool = False

    def problem(self, n: int, degree: int | None) -> str:
        """A ring needs three members."""
        return _at_least(n, 3, "a ring")

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Connects neighbours in the list, and the last with the first."""
        return _undirected_unless(self.directed, np.column_stack([members, np.roll(members, -1)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A line: the connected graph over which averaging mixes slowest."""

    free_degree: ClassVar[bool] = False

    def problem(self, n: int, degree: int | None) -> str:
        """A line needs two members."""
        return _at_least(n, 2, "a path")

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Connects neighbours in the list."""
        return both_ways(np.column_stack([members[:-1], members[1:]]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Star:
    """The first member exchanges with all others, which exchange with it alone."""

    free_degree: ClassVar[bool] = False

    def problem(self, n: int, degree: int | None) -> str:
        """A star needs two members."""
        return _at_least(n, 2, "a star")

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Connects the first with each other member."""
        return both_ways(_to_each(members[0], members[1:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """Every member exchanges with every other."""

    free_degree: ClassVar[bool] = False

    def problem(self, n: int, degree: int | None) -> str:
        """A complete graph needs two members, and memory for all pairs."""
        if n > MOST_COMPLETE:
            return f"a complete graph of {n} members has {n * (n - 1)} edges; up to {MOST_COMPLETE} members would fit"
        return _at_least(n, 2, "a complete graph")

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Connects every pair."""
        return _all_pairs(members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Torus:
    """A grid, as square as the number of members allows, closed in both directions: four neighbours each."""

    free_degree: ClassVar[bool] = False

    def problem(self, n: int, degree: int | None) -> str:
        """The number of members must be a product of two numbers from 3 on."""
        # With two rows a place would have the same neighbour above and below.
        if torus_rows(n) >= 3:
            return ""
        # From n outwards, so that the first three hits are the nearest.
        outwards = (n + step * side for step in count(1) for side in (-1, 1))
        near = list(islice((size for size in outwards if torus_rows(size) >= 3), 3))
        return f"{n} members make no torus of at least 3 x 3; {_or(near)} would fit"

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Fills the grid row by row."""
        grid = members.reshape(torus_rows(len(members)), -1)
        # Only the next place along each axis; `both_ways` adds the one before.
        ends = [np.stack([grid, np.roll(grid, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
        return both_ways(concatenated(ends))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypercube:
    """Places that differ in one binary digit exchange: log2(n) neighbours each."""

    free_degree: ClassVar[bool] = False

    def problem(self, n: int, degree: int | None) -> str:
        """The number of members must be a power of two."""
        # The largest power of two up to n; a hypercube of one member would have no edge.
        lower = 1 << max(n, 2).bit_length() - 1
        return "" if n == lower else f"{n} is no power of two, as a hypercube needs; {lower} or {2 * lower} would fit"

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Connects each place with those that differ in one digit."""
        places = np.arange(len(members))
        digits = range(len(members).bit_length() - 1)
        # Exclusive or is its own inverse, so both directions are there already.
        return ordered(concatenated(np.column_stack([members, members[places ^ (1 << digit)]]) for digit in digits))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialGraph:
    """Each member sends to those 1, 2, 4, 8, ... places ahead, so log2(n) of them (Assran et al. 2019); directed."""

    free_degree: ClassVar[bool] = False
    directed: ClassVar[bool] = True

    def problem(self, n: int, degree: int | None) -> str:
        """An exponential graph needs two members."""
        return _at_least(n, 2, "an exponential graph")

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Connects each member with those a power of two ahead."""
        # Powers below n: a larger one would lead once around the circle.
        return ordered(concatenated(self.ahead(members, step) for step in range(steps_ahead(len(members)))))

    def ahead(self, members: Ids, step: int) -> Edges:
        """Returns the edges to the member 2^step places ahead alone: one of each member's edges."""
        return ordered(np.column_stack([members, np.roll(members, -(1 << step))]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchical:
    """Clusters with heads: members exchange with the head of their cluster, heads with all other heads.

    Attributes:
        clusters: number of clusters; the first member of each is its head
    """

    free_degree: ClassVar[bool] = False
    clusters: Annotated[int, Ge(2)] = 4

    def problem(self, n: int, degree: int | None) -> str:
        """Every cluster needs a head and one other member."""
        if n >= 2 * self.clusters:
            return ""
        return f"{self.clusters} clusters of two need at least {2 * self.clusters} members, not {n}; lower `clusters`"

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Makes a star of each block of members, and a complete graph of the heads."""
        clusters = [members[block] for block in blocks(len(members), self.clusters)]
        heads = np.array([cluster[0] for cluster in clusters], dtype=np.int64)
        stars = concatenated(_to_each(cluster[0], cluster[1:]) for cluster in clusters)
        # No edge occurs twice: stars join heads with others only.
        return ordered(np.concatenate([both_ways(stars), _all_pairs(heads)]))


def torus_rows(n: int) -> int:
    """Returns the rows of the squarest grid: the largest divisor of n up to its square root."""
    return next((side for side in range(math.isqrt(max(n, 0)), 0, -1) if n % side == 0), 0)


def steps_ahead(n: int) -> int:
    """Returns how many powers of two are smaller than n."""
    # The powers of two below n are 1, 2, ..., up to the highest bit of n - 1.
    return (n - 1).bit_length()


def _undirected_unless(directed: bool, pairs: Edges) -> Edges:
    return ordered(pairs) if directed else both_ways(pairs)


def _to_each(centre: int, others: Ids) -> Edges:
    return np.column_stack([np.full(len(others), centre, dtype=np.int64), others])


def _all_pairs(members: Ids) -> Edges:
    if len(members) < 2:
        return no_edges()
    return both_ways(members[pairs_of(np.arange(len(members) * (len(members) - 1) // 2))])


def _at_least(n: int, least: int, what: str) -> str:
    return "" if n >= least else f"{what} needs at least {least} members, not {n}"


def _or(numbers: list[int]) -> str:
    *first, last = map(str, sorted(numbers))
    return f"{', '.join(first)} or {last}"
