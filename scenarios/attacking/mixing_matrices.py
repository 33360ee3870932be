"""The mixing matrices of a run of gossip over models, and whether an observer knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.protocols.gossip import Gossip
from nodes.protocols.graphs import GraphFile
from nodes.protocols.redraws import EveryRound, Never, OnePeerExponential
from p2p.log.log import Log
from privacy.attacks.exposure import Mixing
from scenarios.metrics.communication.round_graphs import planned_edges
from topologies.mixing import arrived_weights, uniform_weights
from topologies.named_graphs import Complete, ExponentialGraph, Hierarchical, Hypercube, Path, Ring, Star, Torus

_WITHOUT_CHANCE = (Complete, ExponentialGraph, Hierarchical, Hypercube, Path, Ring, Star, Torus, GraphFile)


def why_unknown(parts: Mapping[str, Any]) -> str:
    """Returns why a peer does not know the mixing matrices of all rounds; empty if it does."""
    protocol, anonymity = parts["protocol"], parts["anonymity"]
    if not isinstance(protocol, Gossip):
        return "the protocol is not gossip"
    all_train = protocol.train_per_round == parts["clients"]
    fixed = isinstance(protocol.redraw, Never) and isinstance(protocol.graph, _WITHOUT_CHANCE)
    if all_train and (fixed or isinstance(protocol.redraw, OnePeerExponential)):
        return ""
    if anonymity.hand_out != "graph":
        return "it is handed out its neighbours only, and the graph is not public"
    if anonymity.rehash == "never" or (all_train and not isinstance(protocol.redraw, EveryRound)):
        return ""
    return "it is handed out every graph, but addresses change, so that graphs of different rounds cannot be joined"


def what_is_assumed(parts: Mapping[str, Any]) -> str:
    """Returns what must hold beside that a peer knows the matrices; empty if addresses last.

    Under addresses that change every round a peer has a graph without names in each. It must find its neighbours of the
    last round among those of this one, and the same node of a handed out graph again, by form or by content.
    """
    if parts["anonymity"].rehash == "never" or why_unknown(parts):
        return ""
    if parts["anonymity"].hand_out == "graph":
        return "it joins the graphs of different rounds by their form or by contents, since addresses change"
    return "it recognises its neighbours from round to round by contents, since addresses change"


def mixing_of(log: Log, protocol: Gossip, clients: int, rounds: int) -> tuple[list[Mixing], bool]:
    """Returns what was mixed in each round, and whether all of it was as planned."""
    planned = [planned_edges(log, number) for number in range(1, rounds + 1)]
    used = [_used(log, number) for number in range(1, rounds + 1)]
    same = all({*map(tuple, one.tolist())} == _between(two) for one, two in zip(planned, used, strict=True))
    return [_mixing(one, two, protocol, clients) for one, two in zip(planned, used, strict=True)], same


def _used(log: Log, round_number: int) -> NDArray[np.int64]:
    """Returns pairs of a release's client and the client whose model it entered."""
    rows = (log.aggregations["round"] == round_number) & ~log.aggregations["void"]
    return np.column_stack([log.aggregations[end][rows] for end in ("contributor", "aggregator")]).astype(np.int64)


def _between(used: NDArray[np.int64]) -> set[tuple[int, ...]]:
    return {pair for pair in map(tuple, used.tolist()) if pair[0] != pair[1]}


def _mixing(planned: NDArray[np.int64], used: NDArray[np.int64], protocol: Gossip, clients: int) -> Mixing:
    trained = np.zeros(clients, dtype=np.bool_)
    trained[used[:, 0]] = True
    # A client's own release in its own model is no edge; weights add it by themselves.
    edges = used[used[:, 0] != used[:, 1]]
    if protocol.mixing == "uniform":
        return Mixing(uniform_weights(edges, clients, protocol.include_own).toarray(), trained)
    weights = arrived_weights(edges, np.bincount(planned[:, 1], minlength=clients)).toarray()
    # A node that received nothing keeps its own model even where own models are left out.
    if not protocol.include_own:
        mixes = np.unique(edges[:, 1])
        weights[mixes, mixes] = 0.0
    return Mixing(weights, trained)
