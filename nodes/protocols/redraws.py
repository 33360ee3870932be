"""When a graph is drawn anew: every round, never, or by a schedule.

A redraw is a frozen dataclass whose verb `edges_of` returns the edges of one round. It is a pure function of its
arguments, so a round that is planned again after a failover or a resume has the same graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Protocol

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from p2p.config.choices import Choice
from p2p.random_streams import stream
from topologies.edge_arrays import induced, swapped
from topologies.named_graphs import ExponentialGraph, Graph, steps_ahead

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GraphOrder:
    """What a redraw needs to know: the kind of graph, its degree where that is free, the run's seed and clients."""

    graph: Graph
    degree: int | None
    seed: int
    clients: int


class Redraw(Protocol):
    """A rule for the graphs of successive rounds.

    Attributes:
        over_clients: whether the graph is one of all clients, of which a round has the part among its members
    """

    over_clients: ClassVar[bool]

    def edges_of(self, order: GraphOrder, members: Ids, round_number: int) -> Ids:
        """Returns the edges of a round among its members, who are sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryRound:
    """Each round has a fresh graph of its members, in which they take random places."""

    over_clients: ClassVar[bool] = False

    def edges_of(self, order: GraphOrder, members: Ids, round_number: int) -> Ids:
        """Shuffles the members and draws."""
        # Two streams: a kind that draws more or less does not move the places.
        places = stream(order.seed, "graph places", round_number).permutation(members)
        return order.graph.draw(places, order.degree, stream(order.seed, "graph", round_number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Never:
    """One graph of all clients, placed by their numbers; a round has the edges among its members."""

    over_clients: ClassVar[bool] = True

    def edges_of(self, order: GraphOrder, members: Ids, round_number: int) -> Ids:
        """Returns the members' part of the one graph."""
        return induced(_fixed_graph(order), members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swaps:
    """One graph of all clients, in which some pairs of edges swap their ends before every round; all degrees stay.

    Attributes:
        edges: how many swaps before every round but the first; at most 10,000, since each round repeats all before it
    """

    over_clients: ClassVar[bool] = True
    edges: Annotated[int, Ge(1), Le(10_000)] = 1

    def edges_of(self, order: GraphOrder, members: Ids, round_number: int) -> Ids:
        """Repeats the swaps of all rounds so far, so that no state is kept between rounds."""
        rng = stream(order.seed, "graph swaps")
        return induced(swapped(_fixed_graph(order), self.edges * (round_number - 1), rng), members)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePeerExponential:
    """Each member sends to one other, 1, 2, 4, 8, ... places ahead in turn (Assran et al. 2019, Ying et al. 2021).

    Members take places by their numbers. If their number is a power of two, averaging in full participation reaches
    the exact mean after log2(n) rounds.
    """

    over_clients: ClassVar[bool] = False

    def edges_of(self, order: GraphOrder, members: Ids, round_number: int) -> Ids:
        """Returns the edges one power of two ahead."""
        return ExponentialGraph().ahead(members, (round_number - 1) % steps_ahead(len(members)))


REDRAWS: dict[str, type[Redraw]] = {
    "every_round": EveryRound,
    "never": Never,
    "swaps": Swaps,
    "one_peer_exponential": OnePeerExponential,
}

RedrawKind = Annotated[EveryRound | Never | Swaps | OnePeerExponential, Choice(REDRAWS)]


@lru_cache(maxsize=1)  # the same graph in every round of a run, and large ones take a second
def _fixed_graph(order: GraphOrder) -> Ids:
    rng = stream(order.seed, "graph", 0)
    edges = order.graph.draw(np.arange(order.clients), order.degree, rng)
    edges.flags.writeable = False
    return edges
