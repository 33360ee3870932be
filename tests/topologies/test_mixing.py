"""Mixing weights and how fast they mix."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest

from topologies.mixing import (
    edges_of,
    metropolis_weights,
    second_eigenvalue,
    spectral_gap,
    uniform_weights,
)
from topologies.round_graph import round_graph


@pytest.mark.parametrize("n", [3, 5, 12, 199, 200, 201, 1000])
def test_ring_mixes_as_the_cosine_says(n: int) -> None:
    """On a ring with weights 1/3 the second eigenvalue is (1 + 2 cos(2 pi / n)) / 3."""
    weights = metropolis_weights(edges_of(nx.cycle_graph(n)), n)
    assert second_eigenvalue(weights) == pytest.approx((1 + 2 * math.cos(2 * math.pi / n)) / 3, abs=1e-11)


@pytest.mark.parametrize("n", [3, 50, 100, 200, 300])
def test_directed_ring_mixes_as_the_cosine_says(n: int) -> None:
    """Its weights are 1/2 for itself and the one before: the moduli are |1 + exp(2 pi i k / n)| / 2, many alike."""
    ring = np.array([(node, (node + 1) % n) for node in range(n)], dtype=np.int64)
    assert second_eigenvalue(uniform_weights(ring, n)) == pytest.approx(math.cos(math.pi / n), abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_cycles_beside_each_other_never_agree(seed: int) -> None:
    """A round graph of degree one may be several cycles, whose means differ for ever."""
    edges = round_graph(np.arange(100), 1, np.random.default_rng(seed))
    cycles = nx.number_strongly_connected_components(nx.DiGraph(edges.tolist()))
    found = second_eigenvalue(uniform_weights(edges, 100))
    assert (found == pytest.approx(1.0, abs=1e-9)) == (cycles > 1)


def test_complete_graph_agrees_at_once() -> None:
    """One round of averaging over everyone: gap one."""
    assert spectral_gap(uniform_weights(edges_of(nx.complete_graph(7)), 7)) == pytest.approx(1.0)


def test_metropolis_is_doubly_stochastic_on_any_graph() -> None:
    """Also where degrees differ: rows and columns sum to one, and it is symmetric."""
    weights = metropolis_weights(edges_of(nx.star_graph(6)), 7).toarray()
    assert weights.sum(axis=0) == pytest.approx(np.ones(7))
    assert weights == pytest.approx(weights.T)
    assert (weights >= 0).all()


@pytest.mark.parametrize("own", [True, False])
def test_a_round_graph_averages_without_bias(own: bool) -> None:
    """Regular both ways, so uniform weights are doubly stochastic; a receiver averages degree (+ 1) models."""
    edges = round_graph(np.arange(10), 3, np.random.default_rng(0))
    weights = uniform_weights(edges, 10, include_own=own)
    assert weights.sum(axis=0) == pytest.approx(np.ones(10))
    assert weights.sum(axis=1) == pytest.approx(np.ones(10))
    assert weights[edges[0, 1], edges[0, 0]] == pytest.approx(1 / (3 + own))


def test_who_receives_nothing_keeps_its_own() -> None:
    """Rows sum to one even then."""
    weights = uniform_weights(np.array([[0, 1]]), 2, include_own=False).toarray()
    assert weights.tolist() == [[1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("n", [1, 2, 3, 50, 300])
def test_the_complete_graph_has_no_second_eigenvalue(n: int) -> None:
    """Its matrix without the mean is zero."""
    weights = uniform_weights(edges_of(nx.complete_graph(n)), n)
    assert second_eigenvalue(weights) == pytest.approx(0.0, abs=1e-11)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 6, 9])
def test_hypercube_mixes_by_its_dimension(dimensions: int) -> None:
    """Weights 1 / (d + 1): the eigenvalues are (d + 1 - 2k) / (d + 1)."""
    graph = nx.convert_node_labels_to_integers(nx.hypercube_graph(dimensions))
    weights = metropolis_weights(edges_of(graph), 2**dimensions)
    assert second_eigenvalue(weights) == pytest.approx((dimensions - 1) / (dimensions + 1), abs=1e-11)


@pytest.mark.parametrize("sides", [(3, 4), (5, 5), (12, 20), (30, 30)])
def test_torus_mixes_as_its_longer_side(sides: tuple[int, int]) -> None:
    """Weights 1/5: the eigenvalues are (1 + 2 cos a + 2 cos b) / 5, the largest below 1 with one turn of the longer."""
    n = sides[0] * sides[1]
    weights = metropolis_weights(edges_of(_torus(*sides)), n)
    assert second_eigenvalue(weights) == pytest.approx((3 + 2 * math.cos(2 * math.pi / max(sides))) / 5, abs=1e-11)


def test_parts_that_exchange_nothing_never_agree() -> None:
    """The eigenvalue 1 stands twice, and one remains."""
    weights = metropolis_weights(edges_of(nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(5))), 9)
    assert second_eigenvalue(weights) == pytest.approx(1.0, abs=1e-11)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 20, 60])
def test_any_directed_graph_agrees_with_the_dense_solver(n: int) -> None:
    """Both find the same modulus, also with complex pairs and nodes that receive nothing.

    Where eigenvectors are nearly missing, the dense solver itself is off by the root of its rounding.
    """
    rng = np.random.default_rng(n)
    for density in (0.1, 0.3, 0.9):
        edges = np.argwhere((rng.random((n, n)) < density) & ~np.eye(n, dtype=np.bool_)).reshape(-1, 2)
        for own in (True, False):
            weights = uniform_weights(edges, n, include_own=own)
            assert second_eigenvalue(weights) == pytest.approx(_dense(weights), abs=2e-6)


@pytest.mark.slow
def test_large_graphs_agree_with_the_dense_solver() -> None:
    """Arnoldi on 600 nodes finds what the full spectrum says."""
    edges = round_graph(np.arange(600), 4, np.random.default_rng(1))
    weights = uniform_weights(edges, 600)
    assert second_eigenvalue(weights) == pytest.approx(_dense(weights), abs=1e-11)


def _torus(rows: int, columns: int) -> Any:
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns, periodic=True))


def _dense(weights: Any) -> float:
    """The oracle: all eigenvalues, without the 1 that every averaging has."""
    return float(np.abs(np.linalg.eigvals(weights.toarray() - 1.0 / weights.shape[0])).max())


def test_edges_of_a_directed_graph_keep_their_direction() -> None:
    """Source first."""
    assert edges_of(nx.DiGraph([(1, 0)])).tolist() == [[1, 0]]
