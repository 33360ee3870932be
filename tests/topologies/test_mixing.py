"""Mixing weights and how fast they mix."""

from __future__ import annotations

import math

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


@pytest.mark.parametrize("n", [5, 12])
def test_ring_mixes_as_the_cosine_says(n: int) -> None:
    """On a ring with weights 1/3 the second eigenvalue is (1 + 2 cos(2 pi / n)) / 3."""
    weights = metropolis_weights(edges_of(nx.cycle_graph(n)), n)
    assert second_eigenvalue(weights) == pytest.approx((1 + 2 * math.cos(2 * math.pi / n)) / 3, abs=1e-12)


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


@pytest.mark.slow
def test_large_graphs_agree_with_the_dense_way() -> None:
    """Arnoldi on 600 nodes finds what the full spectrum says."""
    edges = round_graph(np.arange(600), 4, np.random.default_rng(1))
    weights = uniform_weights(edges, 600)
    dense = np.sort(np.abs(np.linalg.eigvals(weights.toarray())))[-2]
    assert second_eigenvalue(weights) == pytest.approx(dense, rel=1e-6)


def test_edges_of_a_directed_graph_keep_their_direction() -> None:
    """Source first."""
    assert edges_of(nx.DiGraph([(1, 0)])).tolist() == [[1, 0]]
