"""Graph files: edge list, GML, GraphML; bad and hostile ones end in one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodes.protocols.graphs import GraphFile
from topologies import given_graphs

GML = """graph [ directed 1 node [ id 0 label "a" ] node [ id 1 label "b" ]
 edge [ source 0 target 1 latency "10 ms" ] edge [ source 0 target 0 ] ]"""
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- three nodes -->
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph id="G" edgedefault="undirected">
<node id="n0"/><node id="n1"/><node id="n2"/><edge source="n0" target="n1"/><edge source="n1" target="n2"/>
</graph></graphml>"""


def edges(path: Path, n: int, directed: bool = False) -> list[list[int]]:
    graph = GraphFile(path=str(path), directed=directed)
    return [list(edge) for edge in graph.draw(np.arange(n), None, np.random.default_rng(0)).tolist()]


def test_an_edge_list_is_read_in_numeric_order(tmp_path: Path) -> None:
    """Nodes 2, 10 and 30 become 0, 1 and 2: numeric, not alphabetic, order; comments are skipped."""
    path = tmp_path / "edges.txt"
    path.write_text("# a comment\n10 2\n10 30\n")
    assert edges(path, 3) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert edges(path, 3, directed=True) == [[1, 0], [1, 2]]


def test_gml_is_read_with_its_direction(tmp_path: Path) -> None:
    """A directed GML file, as Shadow writes them, with a loop that is dropped."""
    path = tmp_path / "net.gml"
    path.write_text(GML)
    assert edges(path, 2) == [[0, 1]]


def test_graphml_is_read(tmp_path: Path) -> None:
    """An undirected GraphML file with a comment."""
    path = tmp_path / "net.graphml"
    path.write_text(GRAPHML)
    assert edges(path, 3) == [[0, 1], [1, 0], [1, 2], [2, 1]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.gml", "graph [ node [ id 0", "is no GML or GraphML file nor an edge list ("),
        ("a.gml", "\x00\xff", "is no GML"),
        ("a.gml", "graph [ " * 5000, "is no GML|nested too deeply"),
        ("a.graphml", "<graphml><graph", "is no GML or GraphML file"),
        ("a.graphml", "<graphml/>", "is no GML or GraphML file"),
        ("a.graphml", '<!DOCTYPE x [<!ENTITY a "b">]>' + GRAPHML, "declares a document type; leave it out"),
        ("a.txt", "0\n1 2 3 4\n", "has|is no"),
        ("a.txt", "", "the file has 0 nodes, not 3; 0 members would fit"),
    ],
)
def test_bad_files_end_in_one_sentence(tmp_path: Path, name: str, text: str, message: str) -> None:
    """Never a traceback of networkx or of an XML parser."""
    path = tmp_path / name
    path.write_text(text, encoding="latin-1")
    problem = GraphFile(path=str(path)).problem(3, None)
    assert any(part in problem for part in message.split("|")), problem


def test_large_files_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their size alone."""
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n1 2\n")
    monkeypatch.setattr(given_graphs, "MOST_BYTES", 5)
    assert "is larger than 0 MiB; give a smaller graph" in GraphFile(path=str(path)).problem(3, None)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    """Also one that disappears between check and run."""
    assert "cannot be read (No such file" in GraphFile(path=str(tmp_path / "none.gml")).problem(3, None)
