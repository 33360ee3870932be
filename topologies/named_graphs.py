"""Named graphs for analysis, for drawing, and for user-supplied topologies.

Builders raise ValueError with the rule and the cure when a graph cannot be built. This layer knows no
scenario, so the caller adds the path of the key.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from annotated_types import Ge, Gt, Le

if TYPE_CHECKING:
    import networkx as nx
    import numpy as np

ATTEMPTS = 100
"""Draws of a random graph before giving up on a connected one."""

# networkx takes a noticeable time to import, so each builder imports it on use: most commands draw no graph.


class GraphBuilder(Protocol):
    """Builds a graph on the nodes 0..n-1, drawing from `rng` alone."""

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A cycle: each node has two neighbours."""

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]:
        import networkx as nx

        graph: nx.Graph[int] = nx.cycle_graph(_at_least(n, 3, "a ring"))
        return graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """A complete graph: every pair of nodes is connected."""

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]:
        import networkx as nx

        graph: nx.Graph[int] = nx.complete_graph(_at_least(n, 1, "a complete graph"))
        return graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Regular:
    """A random connected graph in which every node has `degree` neighbours.

    Attributes:
        degree: neighbours of each node; n * degree must be even
    """

    degree: Annotated[int, Ge(2)] = 4

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]:
        import networkx as nx

        # Both conditions are necessary and sufficient; networkx would raise with a less helpful text.
        if n * self.degree % 2:
            raise ValueError(f"size {n} * degree {self.degree} is odd; a regular graph needs an even product")
        if self.degree >= n:
            raise ValueError(f"degree {self.degree} needs more than {n} nodes; lower the degree")
        return _connected(lambda: nx.random_regular_graph(self.degree, n, seed=rng), "a higher degree")


@dataclass(frozen=True, slots=True, kw_only=True)
class Star:
    """A star: node 0 is the centre, all other nodes are leaves."""

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]:
        import networkx as nx

        graph: nx.Graph[int] = nx.star_graph(_at_least(n, 2, "a star") - 1)
        return graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A path: the connected graph over which averaging mixes slowest."""

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]:
        import networkx as nx

        graph: nx.Graph[int] = nx.path_graph(_at_least(n, 1, "a path"))
        return graph


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallWorld:
    """A ring of near neighbours with some edges rewired at random (Watts and Strogatz 1998), connected.

    Attributes:
        neighbours: near neighbours of each node on the ring
        rewire: probability that an edge is rewired
    """

    neighbours: Annotated[int, Ge(2)] = 4
    rewire: Annotated[float, Ge(0.0), Le(1.0)] = 0.1

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]:
        import networkx as nx

        _at_least(n, self.neighbours + 1, f"a small world of {self.neighbours} neighbours")
        return _connected(lambda: nx.watts_strogatz_graph(n, self.neighbours, self.rewire, seed=rng), "more neighbours")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErdosRenyi:
    """Each pair is connected with the same probability; drawn again until the graph is connected.

    Attributes:
        probability: of an edge; null means 2 ln(n) / n, twice the threshold of connectedness
    """

    probability: Annotated[float, Gt(0.0), Le(1.0)] | None = None

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]:
        import networkx as nx

        _at_least(n, 1, "a random graph")
        # Above ln(n)/n a random graph is connected with high probability; twice that leaves few redraws.
        p = min(1.0, 2 * math.log(max(n, 2)) / n) if self.probability is None else self.probability
        return _connected(lambda: nx.fast_gnp_random_graph(n, p, seed=rng), "a higher probability")


@dataclass(frozen=True, slots=True, kw_only=True)
class Torus:
    """A grid, as square as n allows, closed in both directions: four neighbours each."""

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]:
        import networkx as nx

        # The largest divisor of n up to sqrt(n) gives the squarest grid.
        rows = max(side for side in range(1, math.isqrt(_at_least(n, 9, "a torus")) + 1) if n % side == 0)
        if rows < 3:
            raise ValueError(f"{n} nodes make no torus of at least 3 x 3; use a product of two numbers >= 3")
        grid = nx.grid_2d_graph(rows, n // rows, periodic=True)
        return nx.convert_node_labels_to_integers(grid, ordering="sorted")


@dataclass(frozen=True, slots=True, kw_only=True)
class FromFile:
    """A graph read from a file: GML (Shadow's too) or lines of `node node`. Nodes are numbered in sorted order.

    Attributes:
        path: the file; `.gml` is GML, everything else an edge list
    """

    path: str

    def build(self, n: int, rng: np.random.Generator) -> nx.Graph[int]:
        import networkx as nx

        read = self._read()
        # GML may hold a multigraph; parallel edges and self-loops mean nothing to message exchange.
        simple: nx.Graph[Any] = nx.DiGraph(read) if read.is_directed() else nx.Graph(read)
        simple.remove_edges_from(list(nx.selfloop_edges(simple)))
        if len(simple) != n:
            raise ValueError(f"{self.path} has {len(simple)} nodes, not {n}; set the number of clients to match")
        order = {node: index for index, node in enumerate(sorted(simple, key=_natural))}
        return nx.relabel_nodes(simple, order)

    def _read(self) -> nx.Graph[Any]:
        import networkx as nx

        try:
            if Path(self.path).suffix.lower() == ".gml":
                # Shadow's files have no `label`, which networkx expects by default.
                return nx.read_gml(self.path, label="id")
            return nx.read_edgelist(self.path, data=False)
        except OSError as error:
            raise ValueError(f"{self.path} cannot be read ({error.strerror}); give the path of a graph file") from error
        except (nx.NetworkXException, ValueError, TypeError) as error:
            raise ValueError(f"{self.path} is no GML file or edge list ({error})") from error


GRAPHS: dict[str, type] = {
    "ring": Ring,
    "complete": Complete,
    "regular": Regular,
    "star": Star,
    "path": Line,
    "small_world": SmallWorld,
    "erdos_renyi": ErdosRenyi,
    "torus": Torus,
    "from_file": FromFile,
}


def _at_least(n: int, least: int, what: str) -> int:
    if n < least:
        raise ValueError(f"{what} needs at least {least} nodes, not {n}")
    return n


def _connected(draw: Callable[[], Any], cure: str) -> nx.Graph[int]:
    import networkx as nx

    for _ in range(ATTEMPTS):
        graph: nx.Graph[int] = draw()
        if nx.is_connected(graph):
            return graph
    raise ValueError(f"no connected graph in {ATTEMPTS} draws; take {cure}")


def _natural(node: object) -> tuple[int, int, str]:
    """Sort key: numbers in numeric order, then names in alphabetic order."""
    text = str(node)
    return (0, int(text), "") if text.isdecimal() else (1, 0, text)
