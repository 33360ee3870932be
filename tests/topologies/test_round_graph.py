"""The graph of a round: exact degrees at any size, and a distribution close to uniform."""

from __future__ import annotations

from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topologies.round_graph import round_graph


def draw(count: int, degree: int, seed: int = 0) -> NDArray[np.int64]:
    return round_graph(np.arange(count), degree, np.random.default_rng(seed))


def assert_regular(edges: NDArray[np.int64], members: NDArray[np.int64], degree: int) -> None:
    assert edges.shape == (len(members) * degree, 2)
    assert (edges[:, 0] != edges[:, 1]).all()
    assert len(np.unique(edges, axis=0)) == len(edges)
    for column in (0, 1):
        nodes, counts = np.unique(edges[:, column], return_counts=True)
        assert degree == 0 or set(nodes) == set(members)
        assert (counts == degree).all()
    assert (edges == edges[np.lexsort((edges[:, 1], edges[:, 0]))]).all()


@settings(deadline=None)
@given(st.data())
def test_every_member_sends_and_receives_exactly_degree(data: st.DataObject) -> None:
    """In-degree = out-degree = degree, no loops, no doubles, sorted, for any members in any order."""
    members = np.array(data.draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=40, unique=True)))
    degree = data.draw(st.integers(0, len(members) - 1))
    seed = data.draw(st.integers(0, 2**32))
    edges = round_graph(members, degree, np.random.default_rng(seed))
    assert_regular(edges, members, degree)
    shuffled = round_graph(members[::-1], degree, np.random.default_rng(seed))
    assert (edges == shuffled).all()


@pytest.mark.parametrize(("count", "degree"), [(70, 50), (1000, 10), (5, 4), (3, 1), (2, 1)])
def test_sizes_of_the_papers(count: int, degree: int) -> None:
    """Weng's 70 x 50 and the edges of the range are regular too."""
    assert_regular(draw(count, degree), np.arange(count), degree)


def test_full_degree_is_the_complete_graph() -> None:
    """With degree m - 1 everyone sends to everyone."""
    edges = draw(6, 5)
    assert {tuple(edge) for edge in edges.tolist()} == set(permutations(range(6), 2))


def test_equal_seeds_draw_equal_graphs() -> None:
    """The generator alone decides."""
    assert (draw(50, 7, seed=1) == draw(50, 7, seed=1)).all()
    assert (draw(50, 7, seed=1) != draw(50, 7, seed=2)).any()


@pytest.mark.parametrize("degree", [-1, 5, 9])
def test_impossible_degrees_are_refused(degree: int) -> None:
    """A member cannot send to more than all others."""
    with pytest.raises(ValueError, match="degree must lie in"):
        draw(5, degree)


def test_members_twice_are_refused() -> None:
    """A cohort has each member once."""
    with pytest.raises(ValueError, match="distinct"):
        round_graph(np.array([1, 2, 2]), 1, np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize(("count", "degree"), [(7, 2), (8, 5)])
def test_every_ordered_pair_is_equally_likely(count: int, degree: int) -> None:
    """Chi-square over the pairs: far below what a dependence on names would give."""
    rng = np.random.default_rng(5)
    repeats = 1000
    hits = np.zeros((count, count))
    for _ in range(repeats):
        edges = round_graph(np.arange(count), degree, rng)
        hits[edges[:, 0], edges[:, 1]] += 1
    pairs = hits[~np.eye(count, dtype=bool)]
    expected = repeats * degree / (count - 1)
    chi_square = float(((pairs - expected) ** 2 / expected).sum())
    assert chi_square < len(pairs) + 4 * np.sqrt(2 * len(pairs))


@pytest.mark.slow
def test_the_distribution_is_uniform_over_all_graphs() -> None:
    """Six members, degree 2: classes of isomorphic graphs as frequent as enumeration says, within 4 sigma.

    A plain shuffled circulant would draw few of the classes only; this also sees too few trades.
    """
    classes = _classes_of_all_graphs()
    total = sum(classes.values())
    rng = np.random.default_rng(11)
    repeats = 2500
    seen: dict[tuple[int, ...], int] = dict.fromkeys(classes, 0)
    for _ in range(repeats):
        seen[_signature(round_graph(np.arange(6), 2, rng)[:, 1].reshape(6, 2))] += 1
    assert len(classes) >= 5
    for name, size in classes.items():
        share = size / total
        sigma = np.sqrt(repeats * share * (1 - share))
        assert abs(seen[name] - repeats * share) <= 4 * sigma + 1, (name, size, seen[name])


@pytest.mark.slow
def test_large_graphs_do_not_remember_the_circulant() -> None:
    """Two nodes joined by two different walks of two steps are as rare as in a random regular graph.

    There they number C(d^2, 2) - d C(d, 2) pairs of walks from each node, each pair ending together with
    probability (d - 1) / (d n); in the circulant start steps commute, and there are n C(d, 2) of them.
    """
    count, degree = 30_000, 5
    edges = draw(count, degree)
    adjacency = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count))
    twice = int(((adjacency @ adjacency).data >= 2).sum())
    expected = (comb(degree**2, 2) - degree * comb(degree, 2)) * (degree - 1) / degree
    assert abs(twice - expected) < 4 * np.sqrt(expected)


def _classes_of_all_graphs() -> dict[tuple[int, ...], int]:
    """Signature to number of labelled graphs, over all 2-regular digraphs on six nodes."""
    choices = [[pair for pair in combinations(range(6), 2) if node not in pair] for node in range(6)]
    classes: dict[tuple[int, ...], int] = {}

    def extend(rows: list[tuple[int, int]], room: list[int]) -> None:
        if len(rows) == 6:
            name = _signature(np.array(rows))
            classes[name] = classes.get(name, 0) + 1
            return
        for a, b in choices[len(rows)]:
            if room[a] and room[b]:
                room[a] -= 1
                room[b] -= 1
                extend([*rows, (a, b)], room)
                room[a] += 1
                room[b] += 1

    extend([], [2] * 6)
    return classes


def _signature(rows: NDArray[np.int64]) -> tuple[int, ...]:
    """Numbers that isomorphic graphs share: closed walks of length 2 to 6, and shared successors."""
    adjacency = np.zeros((6, 6), dtype=np.int64)
    np.put_along_axis(adjacency, rows, 1, axis=1)
    power, walks = adjacency, []
    for _ in range(5):
        power = power @ adjacency
        walks.append(int(np.trace(power)))
    common = adjacency @ adjacency.T
    return (*walks, int((common == 2).sum()))
