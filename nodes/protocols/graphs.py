"""The kinds of graphs that `protocol.graph` names, and the one that comes from a file beside the scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from p2p.config.choices import Choice
from p2p.config.file_paths import FilePath
from topologies.given_graphs import FromNetworkx, edges_among, read_graph
from topologies.named_graphs import Complete, ExponentialGraph, Hierarchical, Hypercube, Path, Ring, Star, Torus
from topologies.random_graphs import Clustered, ErdosRenyi, Expander, RandomRegular, ScaleFree, SmallWorld

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFile:
    """The graph of a file, whose nodes in their natural order are the clients 0, 1, 2, ...

    Attributes:
        path: the file, relative to the scenario: `.gml`, `.graphml`, or lines of `node node`
        directed: an edge list's lines are one way; GML and GraphML say so themselves
    """

    free_degree: ClassVar[bool] = False
    path: FilePath
    directed: bool = False

    def problem(self, n: int, degree: int | None) -> str:
        """Reads the file."""
        try:
            self.draw(np.arange(n), degree, np.random.default_rng(0))
        except ValueError as error:
            return str(error)
        return ""

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Ids:
        """Returns the edges of the file; raises a ValueError if it cannot be read or has another number of nodes."""
        return edges_among(members, read_graph(self.path, self.directed), "the file")


GRAPHS: dict[str, type] = {
    "random_regular": RandomRegular,
    "ring": Ring,
    "path": Path,
    "star": Star,
    "complete": Complete,
    "torus": Torus,
    "hypercube": Hypercube,
    "exponential": ExponentialGraph,
    "expander": Expander,
    "erdos_renyi": ErdosRenyi,
    "small_world": SmallWorld,
    "scale_free": ScaleFree,
    "clustered": Clustered,
    "hierarchical": Hierarchical,
    "file": GraphFile,
    "networkx": FromNetworkx,
}

GraphKind = Annotated[
    RandomRegular
    | Ring
    | Path
    | Star
    | Complete
    | Torus
    | Hypercube
    | ExponentialGraph
    | Expander
    | ErdosRenyi
    | SmallWorld
    | ScaleFree
    | Clustered
    | Hierarchical
    | GraphFile
    | FromNetworkx,
    Choice(GRAPHS),
]


def kind_name(graph: object) -> str:
    """Returns the name a scenario gives to the kind, or the class of a plug-in."""
    return next((name for name, kind in GRAPHS.items() if type(graph) is kind), type(graph).__name__)
