"""`peerveil topology`: the figures it prints, before and after a run, and its pictures of every kind of graph."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from scenarios.cli.main import main
from scenarios.metrics.communication.round_graphs import figures_of_round, members_of_round
from scenarios.plots.topology import draw_topology
from scenarios.report.data.run_data import read_run_data
from topologies.figures import graph_figures
from topologies.mixing import edges_of

SCENARIO = """
name: drawn
seed: 3
rounds: 2
clients: {clients}
data: {{name: synthetic, samples: 1000}}
model: linear
learning: none
protocol: {{kind: gossip, train_per_round: {cohort}, {graph}}}
"""


def written(folder: Path, graph: str, clients: int = 16, cohort: int = 16) -> str:
    path = folder / "drawn.yaml"
    path.write_text(SCENARIO.format(graph=graph, clients=clients, cohort=cohort))
    return str(path)


def test_figures_are_printed_before_and_after_a_run(tmp_path: Path, capsys: Any) -> None:
    """The same lines from the scenario and from the folder of its run."""
    scenario = written(tmp_path, "graph: torus, redraw: never, mixing: metropolis")
    assert main(["topology", scenario, "-o", str(tmp_path / "before.svg")]) == 0
    before = capsys.readouterr().out
    assert main(["run", scenario, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["topology", str(tmp_path / "run"), "-o", str(tmp_path / "after.svg")]) == 0
    after = capsys.readouterr().out
    assert before.splitlines()[:-1] == after.splitlines()[:-1]
    lines = [re.split(r"\s{2,}", line.strip()) for line in before.splitlines()[1:-1]]
    assert before.startswith("drawn, round 1: torus redrawn never\n")
    assert lines[:3] == [["nodes", "16"], ["edges", "32 undirected"], ["neighbours", "4 min, 4 mean, 4 max"]]
    assert [" ".join(line) for line in lines[3:]] == ["parts 1", "diameter 4", "spectral gap 0.4"]


def test_figures_can_be_had_as_json(tmp_path: Path, capsys: Any) -> None:
    """Infinity is a text, as in every summary."""
    scenario = written(tmp_path, "graph: {kind: ring, directed: true}, redraw: never", cohort=7)
    assert main(["topology", scenario, "--json", "-o", str(tmp_path / "x.svg")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["round"], told["nodes"], told["directed"], told["diameter"]) == (1, 7, True, "inf")


def test_keys_of_a_scenario_can_be_set(tmp_path: Path, capsys: Any) -> None:
    """As in `run`; a run that is done cannot change."""
    scenario = written(tmp_path, "graph: ring, redraw: never")
    picture = ["-o", str(tmp_path / "x.svg")]
    changes = ["--set", "clients=9", "--set", "protocol.train_per_round=9"]
    assert main(["topology", scenario, *changes, "--json", *picture]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == 9
    assert main(["run", scenario, "--quiet", "--out", str(tmp_path / "run")]) == 0
    assert main(["topology", str(tmp_path / "run"), *changes, *picture]) == 2
    assert "--set = clients=9: a run is done and cannot change; give its scenario" in capsys.readouterr().err


def test_parts_that_fall_off_are_told(tmp_path: Path, capsys: Any) -> None:
    """A ring of which seven of sixteen train: members, also those without an edge, and the largest part's gap."""
    scenario = written(tmp_path, "graph: ring, redraw: never", cohort=7)
    assert main(["run", scenario, "--out", str(tmp_path / "run")]) == 0
    data = read_run_data(tmp_path / "run")
    figures = figures_of_round(data.log, 1, data.protocol)
    assert figures.nodes == len(members_of_round(data.log, 1)) == 7
    assert figures.parts > 1
    assert figures.gap is not None
    assert figures.gap > 0
    assert main(["topology", str(tmp_path / "run"), "-o", str(tmp_path / "x.png")]) == 0
    assert "in the largest part" in capsys.readouterr().out


@pytest.mark.parametrize(
    "graph",
    [
        "graph: hypercube, redraw: never",
        "graph: star, redraw: never",
        "graph: exponential, redraw: one_peer_exponential",
        "graph: {kind: hierarchical, clusters: 3}, redraw: never",
        "graph: {kind: clustered, clusters: 3}, exchange_with: 3, redraw: {kind: swaps, edges: 1}",
        "graph: scale_free, exchange_with: 2, redraw: never",
        "graph: erdos_renyi, exchange_with: 1, redraw: never",
        "exchange_with: 3",
    ],
)
def test_every_layout_is_drawn_the_same_twice(tmp_path: Path, graph: str) -> None:
    """Byte by byte, with every client at a place of its own."""
    scenario = written(tmp_path, graph)
    pictures = [tmp_path / f"{number}.svg" for number in (1, 2)]
    for picture in pictures:
        assert main(["topology", scenario, "--round", "2", "-o", str(picture)]) == 0
    assert pictures[0].read_bytes() == pictures[1].read_bytes()


def test_the_legend_stays_inside_the_picture(tmp_path: Path) -> None:
    """A cluster without its head is cut off, which gives the longest labels and many of them."""
    changes = ["--set", "learning=none", "--set", "rounds=1"]
    assert main(["run", "clusters-with-heads", *changes, "--quiet", "--out", str(tmp_path / "run")]) == 0
    data = read_run_data(tmp_path / "run")
    drawn = draw_topology(data, 1, figures_of_round(data.log, 1, data.protocol))
    drawn.canvas.draw()
    (legend,) = drawn.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert len(names) >= 4
    assert "reached no node" in names
    # Services without data would stand on other nodes' edges.
    assert not {"proxy", "server"} & set(names)
    extent = legend.get_window_extent()
    assert drawn.bbox.x0 <= extent.x0 < extent.x1 <= drawn.bbox.x1
    assert drawn.bbox.y0 <= extent.y0


@pytest.mark.parametrize("seed", range(6))
def test_figures_are_those_of_networkx(seed: int) -> None:
    """Parts, diameter and degrees of sparse random graphs, directed and not."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    made: Any = nx.gnp_random_graph(n, 1.5 / n, seed=seed, directed=bool(seed % 2))
    figures = graph_figures(np.arange(n), edges_of(made))
    plain: Any = made.to_undirected()
    largest: Any = max(nx.connected_components(plain), key=len)
    assert figures.nodes == n
    assert figures.edges == made.number_of_edges()
    assert figures.parts == nx.number_connected_components(plain)
    assert figures.largest == len(largest)
    assert figures.alone == len(list(nx.isolates(made)))
    assert (figures.degree_min, figures.degree_max) == (
        min(d for _, d in (made.out_degree if seed % 2 else made.degree)),
        max(d for _, d in (made.out_degree if seed % 2 else made.degree)),
    )
    part: Any = made.subgraph(largest)
    if not seed % 2:
        assert figures.diameter == nx.diameter(part)
    elif not nx.is_strongly_connected(part):
        assert figures.diameter == np.inf


def test_an_isolated_member_does_not_hide_the_gap() -> None:
    """A triangle and a node alone: the gap is the triangle's, which is one."""
    edges = np.array([(a, b) for a in range(3) for b in range(3) if a != b])
    figures = graph_figures(np.arange(4), edges)
    assert (figures.parts, figures.alone, figures.gap) == (2, 1, 1.0)


def test_a_large_graph_has_figures_in_time() -> None:
    """50,000 nodes: the diameter from a few searches as a lower bound, no spectral gap."""
    nodes = np.arange(50_000)
    edges = np.column_stack([nodes, np.roll(nodes, 1)])
    figures = graph_figures(nodes, np.concatenate([edges, edges[:, ::-1]]))
    assert (figures.diameter, figures.diameter_exact, figures.gap) == (25_000, False, None)
