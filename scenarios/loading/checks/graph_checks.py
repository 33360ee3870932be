"""Rules about `protocol.graph`: sizes and degrees that fit, and what else of a scenario a graph goes with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nodes.protocols.gossip import Gossip
from nodes.protocols.graphs import GraphFile, kind_name
from nodes.protocols.redraws import EveryRound, OnePeerExponential
from privacy.calibration.strategies import AdpdflCalibration, BaseNoise, DpFedAvgCalibration, WeiCdpCalibration
from scenarios.loading.problems import Path, Problems
from topologies.edge_arrays import is_symmetric
from topologies.given_graphs import FromNetworkx
from topologies.named_graphs import ExponentialGraph
from topologies.random_graphs import RandomRegular

Finding = tuple[Path, Any, str]

_GOSSIP_KEYS = ("graph", "redraw", "mixing", "exchange")
_MEETS_AT = {"rotating_leader": "the leader", "central": "the server"}
_THEOREM = (
    "presumes updates averaged with equal weights over a random regular graph of every round; set `privacy.noise` "
    "by sigma or `calibrate: {kind: rigorous, ...}`, or leave graph, redraw, mixing and exchange as they are by default"
)


def refuse_gossip_keys(data: Mapping[str, Any], problems: Problems, touched: Mapping[Path, str]) -> None:
    """Refuses graph keys of a protocol whose updates all meet at one node, and removes them from the section."""
    section: Any = data.get("protocol")
    meets_at = _MEETS_AT.get(str(section.get("kind"))) if isinstance(section, dict) else None
    for key in _GOSSIP_KEYS if meets_at is not None else ():
        path: Path = ("protocol", key)
        # After `--set protocol.kind=...` the reader drops what is left of gossip, unless it was set as well.
        left_over = touched.get(("protocol",)) == "gossip" and path not in touched
        if key in section and not left_over:
            rule = f"is for gossip; here all updates go to {meets_at}, so there is no graph to choose; drop it"
            problems.wrong(path, section.pop(key), rule)


def graph_findings(protocol: Any, clients: int) -> Iterator[Finding]:
    """Yields what does not fit among graph, degree, redraw, mixing and the number of members."""
    if not isinstance(protocol, Gossip) or protocol.train_per_round is None:
        return
    graph, redraw = protocol.graph, protocol.redraw
    name = kind_name(graph)
    if missing := [verb for verb in ("free_degree", "problem", "draw") if not hasattr(graph, verb)]:
        yield ("protocol", "graph"), name, f"has no `{missing[0]}`; a graph is a class with free_degree, problem, draw"
        return
    if type(graph).__hash__ is None:
        yield ("protocol", "graph"), name, "must not change during a run; declare it with `@dataclass(frozen=True)`"
        return
    if graph.free_degree and not _degree_fits(protocol):
        return  # reported already, and nothing more can be said about the size
    if isinstance(redraw, OnePeerExponential) and not isinstance(graph, ExponentialGraph):
        rule = "takes one edge in turn of an exponential graph; set `graph: exponential`"
        yield ("protocol", "redraw"), "one_peer_exponential", rule
    elif isinstance(redraw, EveryRound) and isinstance(graph, GraphFile):
        yield ("protocol", "redraw"), "every_round", "a file has one graph, of all clients; set `redraw: never`"
    else:
        size = clients if redraw.over_clients else protocol.train_per_round
        if problem := graph.problem(size, protocol.exchange_with):
            where = "clients" if redraw.over_clients else "train_per_round"
            yield ("protocol", "graph"), name, f"{problem} (its members are the {size} of {where})"
        elif protocol.mixing == "metropolis":
            yield from _metropolis_findings(protocol, name, size)


def privacy_fits_graph(privacy: Any, protocol: Any) -> Iterator[Finding]:
    """Yields a paper's formula that is used outside its premises."""
    if privacy is None or not isinstance(protocol, Gossip) or is_default_exchange(protocol):
        return
    if isinstance(privacy.calibration, AdpdflCalibration):
        yield ("privacy", "noise", "calibrate"), "adpdfl", _THEOREM
    elif privacy.resolved_budget().by == "published" and not isinstance(
        privacy.calibration, DpFedAvgCalibration | BaseNoise | WeiCdpCalibration
    ):
        yield ("privacy", "budget", "by"), "published", _THEOREM


def is_default_exchange(protocol: Gossip) -> bool:
    """Returns whether members average updates equally over a fresh random regular graph, as published."""
    plain = isinstance(protocol.graph, RandomRegular) and isinstance(protocol.redraw, EveryRound)
    return plain and protocol.mixing == "uniform" and protocol.exchange == "update"


def _degree_fits(protocol: Gossip) -> bool:
    degree, cohort = protocol.exchange_with, protocol.train_per_round or 0
    return degree is not None and (degree < cohort or protocol.redraw.over_clients)


def _metropolis_findings(protocol: Gossip, name: str, size: int) -> Iterator[Finding]:
    path: Path = ("protocol", "mixing")
    if _is_directed(protocol, size):
        rule = f"needs an undirected graph, and {name} is directed; take `graph: expander` or another, or `uniform`"
        yield path, "metropolis", rule
    elif not protocol.include_own:
        yield path, "metropolis", "gives a member's own vector the rest of the weight; set `include_own: true`"


def _is_directed(protocol: Gossip, size: int) -> bool:
    graph = protocol.graph
    if isinstance(graph, GraphFile | FromNetworkx):
        # Only the graph itself tells.
        return not is_symmetric(graph.draw(np.arange(size), None, np.random.default_rng(0)))
    return bool(getattr(graph, "directed", False))
