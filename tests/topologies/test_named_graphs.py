"""Named graphs: every entry of the table, and the messages for what cannot be built."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from topologies.named_graphs import GRAPHS, ErdosRenyi, FromFile, Regular, Ring, SmallWorld, Torus

BUILT = sorted(set(GRAPHS) - {"from_file"})


def build(kind: str, n: int = 12, seed: int = 0, **keys: Any) -> Any:
    return GRAPHS[kind](**keys).build(n, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", BUILT)
def test_every_graph_is_connected_on_its_nodes(kind: str) -> None:
    """Nodes 0..n-1, connected, no loops, no doubles, the same for the same seed."""
    graph = build(kind)
    assert sorted(graph) == list(range(12))
    assert nx.is_connected(graph)
    assert nx.number_of_selfloops(graph) == 0
    assert sorted(graph.edges) == sorted(build(kind).edges)


@pytest.mark.parametrize("kind", sorted(GRAPHS))
def test_every_entry_is_a_frozen_strategy(kind: str) -> None:
    """A strategy's fields are the scenario's keys."""
    assert dataclasses.is_dataclass(GRAPHS[kind])
    strategy = GRAPHS[kind](path="x") if kind == "from_file" else GRAPHS[kind]()
    with pytest.raises((AttributeError, TypeError)):
        strategy.degree = 3


def test_degrees_are_what_the_names_say() -> None:
    """Ring 2, torus 4, regular as asked, complete n - 1."""
    for kind, degree in [("ring", 2), ("torus", 4), ("complete", 11), ("regular", 4)]:
        assert {d for _, d in build(kind).degree} == {degree}
    assert sorted(d for _, d in build("star").degree) == [1] * 11 + [11]


@pytest.mark.parametrize(
    ("strategy", "n", "message"),
    [
        (Regular(degree=5), 25, "size 25 \\* degree 5 is odd"),
        (Regular(degree=6), 6, "lower the degree"),
        (Torus(), 11, "no torus"),
        (Ring(), 2, "at least 3 nodes"),
        (SmallWorld(neighbours=4), 4, "at least 5 nodes"),
        (ErdosRenyi(probability=0.001), 50, "higher probability"),
    ],
)
def test_what_cannot_be_built_says_why(strategy: Any, n: int, message: str) -> None:
    """Rule and cure, never a networkx error."""
    with pytest.raises(ValueError, match=message):
        strategy.build(n, np.random.default_rng(0))


def test_an_edge_list_is_read_in_numeric_order(tmp_path: Path) -> None:
    """Nodes 2 and 10 become 0 and 1: numeric, not alphabetic, order; comments are skipped."""
    (tmp_path / "edges.txt").write_text("# a comment\n10 2\n10 30\n")
    graph = FromFile(path=str(tmp_path / "edges.txt")).build(3, np.random.default_rng(0))
    assert sorted(sorted(edge) for edge in graph.edges) == [[0, 1], [1, 2]]


def test_gml_is_read_with_its_direction(tmp_path: Path) -> None:
    """A directed GML file, as Shadow writes them, with a loop that is dropped."""
    (tmp_path / "net.gml").write_text(
        'graph [ directed 1 node [ id 0 label "a" ] node [ id 1 label "b" ]'
        ' edge [ source 0 target 1 latency "10 ms" ] edge [ source 0 target 0 ] ]'
    )
    graph = FromFile(path=str(tmp_path / "net.gml")).build(2, np.random.default_rng(0))
    assert graph.is_directed()
    assert list(graph.edges) == [(0, 1)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.gml", None, "cannot be read"),
        ("bad.gml", "graph [ node", "no GML file"),
        ("bad.txt", "1\x00", "nodes, not 3"),
        ("two.txt", "0 1\n", "has 2 nodes, not 3"),
        ("bytes.txt", b"\xff\xfe 1\n", "no GML file or edge list"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, text: str | bytes | None, message: str) -> None:
    """Missing, malformed or of another size: one message with the path."""
    path = tmp_path / name
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message) as caught:
        FromFile(path=str(path)).build(3, np.random.default_rng(0))
    assert str(path) in str(caught.value)


@pytest.mark.slow
def test_importing_the_table_imports_no_heavy_library() -> None:
    """`peerveil check` must stay quick."""
    code = "import sys, topologies.named_graphs, topologies.mixing; print({'networkx', 'scipy'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
