"""Random graphs whose degree is free: regular, expander, Erdos-Renyi, small world, scale-free, clustered.

The kinds keep the promise of `topologies.named_graphs.Graph`. `degree` is the number of neighbours of each member where
the kind is regular, and the mean number of neighbours elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le

from topologies.edge_arrays import Edges, Ids, blocks, both_ways, ordered, random_pairs, regular_pairs
from topologies.round_graph import round_graph


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomRegular:
    """Directed: each member sends to `exchange_with` others and hears from as many, uniformly among all such graphs."""

    free_degree: ClassVar[bool] = True
    directed: ClassVar[bool] = True

    def problem(self, n: int, degree: int | None) -> str:
        """Any degree below the number of members fits."""
        return _below(n, degree)

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Draws the graph; the order of the members has no influence."""
        return round_graph(members, degree or 1, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expander:
    """Undirected, regular of degree `exchange_with`, at random: an expander with high probability (Friedman 2008)."""

    free_degree: ClassVar[bool] = True

    def problem(self, n: int, degree: int | None) -> str:
        """The sum of all degrees must be even, and three is the least degree of an expander."""
        if degree is not None and degree < 3:
            return f"a random graph of degree {degree} is no expander; 3 is the least that would fit"
        if degree is not None and n * degree % 2:
            fits = " or ".join(str(near) for near in (degree - 1, degree + 1) if 3 <= near < n)
            return f"{n} members of degree {degree} make an odd sum of degrees; {fits or 'an even number'} would fit"
        return _below(n, degree)

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Draws the graph."""
        return both_ways(members[regular_pairs(len(members), degree or 1, rng)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ErdosRenyi:
    """Each pair exchanges with the same probability, which gives `exchange_with` neighbours on average.

    It may fall into parts: below ln(n) neighbours on average it mostly does.

    Attributes:
        directed: each ordered pair is drawn on its own
    """

    free_degree: ClassVar[bool] = True
    directed: bool = False

    def problem(self, n: int, degree: int | None) -> str:
        """A mean degree below the number of members fits."""
        return _below(n, degree)

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Draws the pairs."""
        n = len(members)
        probability = min(1.0, (degree or 1) / max(n - 1, 1))
        pairs = members[random_pairs(n, probability, rng)]
        if not self.directed:
            return both_ways(pairs)
        # Pairs are drawn with the larger end first, once for each direction.
        return ordered(np.concatenate([pairs, members[random_pairs(n, probability, rng)][:, ::-1]]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallWorld:
    """A ring of `exchange_with` near neighbours, some edges of which are rewired at random (Watts and Strogatz 1998).

    Attributes:
        rewire: probability that an edge is rewired
    """

    free_degree: ClassVar[bool] = True
    rewire: Annotated[float, Ge(0.0), Le(1.0)] = 0.1

    def problem(self, n: int, degree: int | None) -> str:
        """As many near neighbours on the left as on the right."""
        return _even(degree, "near neighbours of a small world") or _below(n, degree)

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Draws the graph with networkx."""
        # Imported here: networkx takes a noticeable time, and most commands draw no such graph.
        import networkx as nx

        # The ring is that of the members in order; only the rewired ends are random.
        graph = nx.watts_strogatz_graph(len(members), degree or 2, self.rewire, seed=rng)
        return both_ways(members[np.array(graph.edges, dtype=np.int64).reshape(-1, 2)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFree:
    """Few members have many neighbours: preferential attachment (Barabasi and Albert 1999), `exchange_with` on average.

    Always connected. Later members attach to `exchange_with / 2` earlier ones; doubles count once, so that the mean
    degree is a little smaller.
    """

    free_degree: ClassVar[bool] = True

    def problem(self, n: int, degree: int | None) -> str:
        """Each new member brings half of the mean degree."""
        return _even(degree, "neighbours on average in a scale-free graph") or _below(n, degree)

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Attaches the members in a random order, so that early ones are not the same in every graph."""
        n, links = len(members), (degree or 2) // 2
        ends = np.empty((links * (n - links), 2), dtype=np.int64)
        ends[:, 0] = np.repeat(np.arange(links, n), links)
        ends[:links, 1] = np.arange(links)  # a star to begin with
        # An end chosen uniformly among all ends so far is a node chosen in proportion to its degree (Sanders and
        # Schulz 2016); it is only noted as a number here, since it may itself not be known yet.
        # Ends made before each member: two for every edge of the earlier ones.
        first = 2 * links * (np.arange(links, n) - links)
        chosen = rng.integers(0, np.repeat(first[1:], links)) if n - links > 1 else np.empty(0, dtype=np.int64)
        known = np.empty(2 * len(ends), dtype=np.int64)
        known[0::2], known[1 : 2 * links : 2] = ends[:, 0], ends[:links, 1]
        # Even ends are known; an odd one points back, so following the pointers ends at an even one or in the star.
        target = chosen.copy()
        while (open_ends := (target % 2 == 1) & (target >= 2 * links)).any():
            target[open_ends] = chosen[target[open_ends] // 2 - links]
        ends[links:, 1] = known[target]
        # Relabelled last: everything above is about places in the order of joining.
        return both_ways(rng.permutation(members)[ends])


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustered:
    """Equal clusters, dense inside and sparse between (planted partition), `exchange_with` neighbours on average.

    Attributes:
        clusters: number of clusters, blocks of neighbouring members
        outside: share of a member's neighbours that are in other clusters
    """

    free_degree: ClassVar[bool] = True
    clusters: Annotated[int, Ge(2)] = 4
    outside: Annotated[float, Ge(0.0), Le(1.0)] = 0.1

    def problem(self, n: int, degree: int | None) -> str:
        """The neighbours inside must fit a cluster."""
        smallest = n // self.clusters
        if smallest < 2:
            return f"{self.clusters} clusters of two need at least {2 * self.clusters} members, not {n}"
        # The smallest cluster has the fewest pairs to reach that mean with.
        inside = (degree or 0) * (1.0 - self.outside)
        if inside > smallest - 1:
            fits = int((smallest - 1) / (1.0 - self.outside))
            return f"{inside:g} neighbours inside a cluster of {smallest} are too many; exchange_with {fits} would fit"
        return _below(n, degree)

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Draws pairs inside each cluster, then pairs between clusters."""
        n, mean = len(members), degree or 1
        cluster = np.empty(n, dtype=np.int64)
        found = []
        for number, block in enumerate(blocks(n, self.clusters)):
            cluster[block] = number
            size = block.stop - block.start
            probability = min(1.0, mean * (1.0 - self.outside) / max(size - 1, 1))
            found.append(block.start + random_pairs(size, probability, rng))
        found.append(_between(cluster, mean * self.outside, rng))
        return both_ways(members[np.concatenate(found)])


def _between(cluster: Ids, mean: float, rng: np.random.Generator) -> Edges:
    """Returns pairs of different clusters, `mean` of them per node on average, each with the same probability."""
    n = len(cluster)
    every = n * (n - 1) // 2
    outside = every - sum(size * (size - 1) // 2 for size in np.bincount(cluster).tolist())
    probability = min(1.0, mean * n / 2 / max(outside, 1))
    # Pairs of one cluster are drawn too and dropped, which leaves the others their probability.
    pairs = random_pairs(n, probability, rng)
    outer: Edges = pairs[cluster[pairs[:, 0]] != cluster[pairs[:, 1]]]
    return outer


def _below(n: int, degree: int | None) -> str:
    if degree is None or degree < n:
        return ""
    return f"{n} members have at most {n - 1} neighbours each, not {degree}; lower exchange_with"


def _even(degree: int | None, what: str) -> str:
    if degree is None or degree % 2 == 0:
        return ""
    return f"{degree} {what} is odd; {max(degree - 1, 2)} or {degree + 1} would fit"
