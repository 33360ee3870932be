"""What `check` says about graphs: the key, the value, the rule and what would fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.protocols.gossip import Gossip
from nodes.protocols.redraws import EveryRound, Never, Swaps
from p2p.config.errors import UserError
from scenarios.loading.load import dump_scenario, parse_scenario
from topologies.given_graphs import FromNetworkx
from topologies.named_graphs import Torus
from topologies.random_graphs import Clustered, RandomRegular

TEXT = """
name: g
rounds: 2
clients: 20
data: {name: synthetic, samples: 400}
model: linear
protocol: {kind: gossip, train_per_round: 16, %s}
"""


def problems(keys: str, *overrides: str, folder: Path | None = None) -> list[str]:
    with pytest.raises(UserError) as caught:
        parse_scenario(TEXT % keys, overrides=overrides, folder=folder)
    return caught.value.problems


def test_the_default_is_todays_graph() -> None:
    """A random regular graph of every round, equal weights, updates."""
    protocol = parse_scenario(TEXT % "exchange_with: 3").protocol
    assert protocol == Gossip(train_per_round=16, exchange_with=3)
    assert isinstance(protocol, Gossip)
    assert (protocol.graph, protocol.redraw) == (RandomRegular(), EveryRound())
    assert (protocol.mixing, protocol.exchange) == ("uniform", "update")


@pytest.mark.parametrize(
    ("keys", "graph", "redraw"),
    [
        ("graph: torus", Torus(), EveryRound()),
        ("graph: {kind: clustered, clusters: 3}, mer: 0.2, redraw: never", Clustered(clusters=3), Never()),
        (
            "graph: {kind: networkx, generator: waxman_graph, arguments: {beta: 0.5}}, redraw: {kind: swaps, edges: 3}",
            FromNetworkx(generator="waxman_graph", arguments={"beta": 0.5}),
            Swaps(edges=3),
        ),
    ],
)
def test_graphs_survive_being_written(keys: str, graph: object, redraw: object) -> None:
    """Read, dumped and read again."""
    scenario = parse_scenario(TEXT % keys)
    assert isinstance(scenario.protocol, Gossip)
    assert (scenario.protocol.graph, scenario.protocol.redraw) == (graph, redraw)
    assert parse_scenario(dump_scenario(scenario)) == scenario


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            "graph: hypercube, redraw: never",
            "protocol.graph = hypercube: 20 is no power of two, as a hypercube needs; 16 or 32 would fit "
            "(its members are the 20 of clients)",
        ),
        ("graph: ring, exchange_with: 3", "protocol.exchange_with = 3: is fixed by the graph ring; drop it"),
        ("graph: ring, mer: 0.1", "protocol.exchange_with = 2: is fixed by the graph ring; drop it"),
        ("graph: small_world", "protocol.exchange_with = none: is needed; add it, or `mer`"),
        (
            "graph: small_world, exchange_with: 3",
            "is odd; 2 or 4 would fit (its members are the 16 of train",
        ),
        ("graph: expander, exchange_with: 20, redraw: never", "20 members have at most 19 neighbours each, not 20"),
        ("graph: expander, exchange_with: 16", "protocol.exchange_with = 16: must be < train_per_round, which is 16"),
        ("graph: cube", "protocol.graph = cube: unknown kind"),
        ("graph: {kind: file, path: none.gml}", "protocol.graph.path = none.gml: no such file"),
        ("graph: {kind: networkx, generator: eval}", "protocol.graph = networkx: eval is not among the generators"),
        (
            "graph: {kind: networkx, generator: barabasi_albert_graph, arguments: {m: x}}",
            "protocol.graph.arguments.m = x: must be a whole number or a number or true or false or a list",
        ),
        (
            "graph: {kind: networkx, generator: barabasi_albert_graph, arguments: {m: [1, x]}}",
            "protocol.graph.arguments.m.1 = x: must be a whole number",
        ),
        ("graph: torus, redraw: one_peer_exponential", "set `graph: exponential`"),
        ("exchange_with: 3, redraw: sometimes", "protocol.redraw = sometimes: unknown kind"),
        ("exchange_with: 3, mixing: metropolis", "needs an undirected graph, and random_regular is directed"),
        ("graph: {kind: ring, directed: true}, mixing: metropolis", "and ring is directed"),
        (
            "graph: {kind: networkx, generator: gn_graph}, mixing: metropolis",
            "needs an undirected graph, and networkx is directed",
        ),
        ("graph: ring, mixing: metropolis, include_own: false", "set `include_own: true`"),
    ],
)
def test_what_does_not_fit_is_said_once(keys: str, expected: str) -> None:
    """One problem each, with the path of its key."""
    found = problems(keys)
    assert len(found) == 1, found
    assert expected in found[0]


def test_a_file_has_one_graph_of_all_clients(tmp_path: Path) -> None:
    """It does not change, and must have as many nodes as there are clients."""
    (tmp_path / "edges.txt").write_text("".join(f"{node} {(node + 1) % 19}\n" for node in range(19)))
    keys = "graph: {kind: file, path: edges.txt}"
    assert "set `redraw: never`" in problems(keys, folder=tmp_path)[0]
    expected = "protocol.graph = file: the file has 19 nodes, not 20; 19 members would fit"
    assert expected in problems(f"{keys}, redraw: never", folder=tmp_path)[0]
    scenario = parse_scenario(TEXT % f"{keys}, redraw: never", overrides=["clients=19"], folder=tmp_path)
    assert parse_scenario(dump_scenario(scenario)) == scenario, "the dumped path is absolute"


@pytest.mark.parametrize(("kind", "where"), [("rotating_leader", "the leader"), ("central", "the server")])
@pytest.mark.parametrize("key", ["graph: ring", "redraw: never", "mixing: metropolis", "exchange: model"])
def test_a_leader_or_server_has_no_graph_to_choose(kind: str, where: str, key: str) -> None:
    """Refused with the reason; left over from gossip after a switch of the kind, it is dropped like other keys."""
    text = TEXT.replace("kind: gossip", f"kind: {kind}")
    with pytest.raises(UserError) as caught:
        parse_scenario(text % key)
    assert len(caught.value.problems) == 1
    assert f"is for gossip; here all updates go to {where}, so there is no graph to choose" in caught.value.problems[0]
    assert parse_scenario(TEXT % key, overrides=[f"protocol.kind={kind}"])


def test_a_papers_formula_keeps_to_its_premises() -> None:
    """Theorem 8 is about updates averaged equally over a random regular graph of every round."""
    adpdfl = "privacy={clip: flat, noise: {kind: gaussian, calibrate: adpdfl}}"
    for keys in ("graph: ring", "exchange_with: 3, redraw: never", "exchange_with: 3, exchange: model"):
        found = problems(keys, adpdfl)
        assert len(found) == 1
        assert found[0].startswith("privacy.noise.calibrate = adpdfl: presumes updates averaged with equal weights")
    published = "privacy={clip: flat, noise: {kind: gaussian, sigma: 1.0}, budget: {by: published, epsilon: 8}}"
    assert problems("graph: ring", published)[0].startswith("privacy.budget.by = published: presumes")
    assert parse_scenario(TEXT % "graph: ring", overrides=["privacy={clip: flat, noise: {kind: gaussian, sigma: 1}}"])


def test_noise_shares_keep_to_the_default_graph() -> None:
    """Shares cancel in sums of equally many updates."""
    found = problems("graph: ring", "noise_shares={sigma_k: 1.0, unit_variance: 0.1}")
    assert "need as many updates in every sum" in found[0]


def test_a_graph_of_a_plug_in_must_have_the_verbs_of_a_graph(tmp_path: Path) -> None:
    """Found before anything runs."""
    (tmp_path / "odd_graphs.py").write_text(
        "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Empty:\n    pass\n"
    )
    with pytest.raises(UserError) as caught:
        parse_scenario(TEXT % "graph: 'odd_graphs:Empty'", folder=tmp_path, allow_plugins=True)
    assert "has no `free_degree`; a graph is a class with free_degree, problem, draw" in str(caught.value)
    (tmp_path / "odd_graphs_2.py").write_text(
        "from dataclasses import dataclass\n\nfrom topologies.named_graphs import Ring\n\n\n"
        "@dataclass\nclass Loose:\n    free_degree = False\n    problem = Ring.problem\n    draw = Ring.draw\n"
    )
    with pytest.raises(UserError, match="must not change during a run"):
        parse_scenario(TEXT % "graph: 'odd_graphs_2:Loose'", folder=tmp_path, allow_plugins=True)
