"""Graphs that a user gives: a file (edge list, GML, GraphML), or a networkx generator by name with its arguments.

Nothing in a file is executed, and only generators of `GENERATORS` are called: none that reads files or takes functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from topologies.edge_arrays import Edges, Ids, both_ways, ordered

if TYPE_CHECKING:
    import networkx as nx

MOST_BYTES = 64 * 1024 * 1024
"""Larger files are refused: networkx needs about a hundred times as much memory as a file has bytes."""

GENERATORS: dict[str, tuple[str, ...]] = {
    "barabasi_albert_graph": ("n",),
    "circulant_graph": ("n",),
    "connected_watts_strogatz_graph": ("n",),
    "extended_barabasi_albert_graph": ("n",),
    "fast_gnp_random_graph": ("n",),
    "full_rary_tree": ("n",),
    "gn_graph": ("n",),
    "gnc_graph": ("n",),
    "gnm_random_graph": ("n",),
    "gnr_graph": ("n",),
    "newman_watts_strogatz_graph": ("n",),
    "powerlaw_cluster_graph": ("n",),
    "random_geometric_graph": ("n",),
    "random_k_out_graph": ("n",),
    "random_labeled_tree": ("n",),
    "random_regular_graph": ("n",),
    "scale_free_graph": ("n",),
    "soft_random_geometric_graph": ("n",),
    "turan_graph": ("n",),
    "watts_strogatz_graph": ("n",),
    "waxman_graph": ("n",),
    "wheel_graph": ("n",),
    "caveman_graph": ("l", "k"),
    "connected_caveman_graph": ("l", "k"),
    "planted_partition_graph": ("l", "k"),
    "relaxed_caveman_graph": ("l", "k"),
    "ring_of_cliques": ("num_cliques", "clique_size"),
}
"""Each generator with the arguments whose product is the number of nodes. `n` is filled in, others are given."""

_NOT_GIVEN = ("p_dist", "metric", "kernel", "create_using", "initial_graph", "pos", "pos_name", "weight_name", "seed")
"""Arguments that are functions, graphs, sources of randomness, or names of attributes that mean nothing here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromNetworkx:
    """A graph made by a networkx generator; parallel edges and loops are dropped.

    Attributes:
        generator: its name, such as waxman_graph; `peerveil check` lists the names
        arguments: its arguments by name, without the number of nodes and the seed
    """

    free_degree: ClassVar[bool] = False
    generator: str
    # Numbers and lists of numbers; not hashed, since a mapping cannot be, but compared.
    arguments: Mapping[str, int | float | bool | list[int]] = field(default_factory=dict, hash=False)

    def problem(self, n: int, degree: int | None) -> str:
        """Checks the name, the arguments and the number of nodes, then draws once."""
        if self.generator not in GENERATORS:
            return f"{self.generator} is not among the generators {', '.join(sorted(GENERATORS))}"
        if wrong := self._wrong_argument() or self._wrong_size(n):
            return wrong
        try:
            # networkx knows its own rules; a draw with any randomness finds out.
            self.draw(np.arange(n), degree, np.random.default_rng(0))
        except ValueError as error:
            return str(error)
        return ""

    def draw(self, members: Ids, degree: int | None, rng: np.random.Generator) -> Edges:
        """Calls the generator; raises a ValueError if it refuses its arguments or makes another number of nodes."""
        import networkx as nx

        make = getattr(nx, self.generator)
        filled: dict[str, Any] = {"n": len(members)} if GENERATORS[self.generator] == ("n",) else {}
        if "seed" in inspect.signature(make).parameters:
            # Passed in, since networkx would otherwise draw from the global state of `random`.
            filled["seed"] = rng
        try:
            # Arguments were checked before the run; a `seed` or `n` of the user cannot be among them.
            graph = make(**self.arguments, **filled)
        # Generators raise what they like for arguments that do not fit.
        except Exception as error:
            raise ValueError(f"{self.generator} cannot be made ({error}); change `arguments`") from error
        return edges_among(members, graph, self.generator)

    def _wrong_argument(self) -> str:
        import networkx as nx

        known = inspect.signature(getattr(nx, self.generator)).parameters
        # `backend` and its options are added by networkx to every function, and could load other code.
        taken = [name for name in known if name not in _NOT_GIVEN and not name.startswith("backend") and name != "n"]
        for name in self.arguments:
            if name not in taken:
                return f"{self.generator} takes {' and '.join(taken) or 'no argument'} here, not {name}"
        return ""

    def _wrong_size(self, n: int) -> str:
        sizes = GENERATORS[self.generator]
        if sizes == ("n",):
            return ""
        numbers = [self.arguments.get(name) for name in sizes]
        product = " * ".join(sizes)
        if not all(isinstance(number, int) and number > 0 for number in numbers):
            return f"{self.generator} needs whole numbers {' and '.join(sizes)}; {product} must be {n}"
        # As floats: a product of large integers would wrap around, and could then equal n.
        made = int(np.prod([float(number) for number in numbers if isinstance(number, int)]))
        return "" if made == n else f"{product} is {made}, not {n}; change `arguments`"


def read_graph(path: str, directed: bool) -> nx.Graph[Any]:
    """Returns the graph of a file: `.gml`, `.graphml`, or lines of `node node`, one way each if `directed`.

    Raises:
        ValueError: with the rule and the cure.
    """
    import networkx as nx

    place = Path(path)
    try:
        if place.stat().st_size > MOST_BYTES:
            raise ValueError(f"is larger than {MOST_BYTES >> 20} MiB; give a smaller graph")
        if place.suffix.lower() == ".gml":
            # Files of Shadow have no `label`, which networkx expects by default.
            return nx.read_gml(place, label="id")
        if place.suffix.lower() == ".graphml":
            # Entities could expand to anything; a graph needs none.
            if b"<!" in place.read_bytes().replace(b"<!--", b""):
                raise ValueError("declares a document type; leave it out")
            return nx.read_graphml(place)
        # `data=False`: attributes in an edge list would be parsed as Python literals.
        return nx.read_edgelist(place, data=False, create_using=nx.DiGraph if directed else nx.Graph)
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror}); give the path of a graph file") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply for a graph") from error
    except (nx.NetworkXException, ValueError, TypeError, KeyError, AttributeError, SyntaxError) as error:
        # An XML error is a SyntaxError.
        raise ValueError(f"is no GML or GraphML file nor an edge list ({error})") from error


def edges_among(members: Ids, graph: nx.Graph[Any], what: str) -> Edges:
    """Returns the edges of a networkx graph, its nodes in their natural order laid over the members.

    Raises:
        ValueError: if the graph has another number of nodes.
    """
    if len(graph) != len(members):
        raise ValueError(f"{what} has {len(graph)} nodes, not {len(members)}; {len(graph)} members would fit")
    # Sorted, so that places do not depend on the order of lines in the file.
    place = {node: index for index, node in enumerate(sorted(graph, key=_natural))}
    pairs = np.array([(place[edge[0]], place[edge[1]]) for edge in graph.edges()], dtype=np.int64).reshape(-1, 2)
    return ordered(members[pairs]) if graph.is_directed() else both_ways(members[pairs])


def _natural(node: object) -> tuple[int, int, str]:
    """Sort key: numbers in numeric order, then names in alphabetic order."""
    text = str(node)
    return (0, int(text), "") if text.isascii() and text.isdecimal() else (1, 0, text)
