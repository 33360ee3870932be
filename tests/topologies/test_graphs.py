"""Graphs: every kind against networkx over random sizes, and what is said where there is no such graph."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.protocols.graphs import GRAPHS as TABLE
from nodes.protocols.graphs import GraphFile
from topologies.edge_arrays import group_starts, is_symmetric, ordered, pairs_of, regular_pairs, swapped
from topologies.given_graphs import GENERATORS, FromNetworkx
from topologies.mixing import edges_of, spectral_gap, uniform_weights
from topologies.named_graphs import Complete, ExponentialGraph, Hierarchical, Hypercube, Ring, Torus
from topologies.random_graphs import Clustered, ErdosRenyi, Expander, ScaleFree, SmallWorld

GRAPHS: dict[str, Any] = dict(TABLE)
NAMED = sorted(set(GRAPHS) - {"file", "networkx"})
DIRECTED = {"random_regular", "exponential"}
MAY_FALL_APART = {"erdos_renyi", "clustered", "small_world", "random_regular"}


def drawn(graph: Any, n: int, degree: int | None = None, seed: int = 0, first: int = 0) -> Any:
    """The graph as networkx sees it, over the members first, first + 1, ..."""
    assert not graph.problem(n, degree)
    edges = graph.draw(np.arange(first, first + n), degree, np.random.default_rng(seed))
    made: Any = nx.DiGraph() if not is_symmetric(edges) else nx.Graph()
    made.add_nodes_from(range(first, first + n))
    made.add_edges_from(edges.tolist())
    assert made.is_directed() or 2 * made.number_of_edges() == len(edges)
    return made


@st.composite
def sizes(draw: st.DrawFn) -> tuple[str, int, int | None, int]:
    """A kind, a size and a degree, which may not go together, and a seed."""
    kind = draw(st.sampled_from(NAMED))
    degree = draw(st.integers(1, 12)) if GRAPHS[kind].free_degree else None
    return kind, draw(st.integers(2, 70)), degree, draw(st.integers(0, 1000))


@given(sizes())
@settings(max_examples=300, deadline=None)
def test_every_kind_is_a_simple_graph_of_its_members(case: tuple[str, int, int | None, int]) -> None:
    """Loops and doubles never; directed only if the kind is; connected where promised; the same for the same seed."""
    kind, n, degree, seed = case
    graph = GRAPHS[kind]()
    if graph.problem(n, degree):
        return
    members = np.sort(np.random.default_rng(seed).choice(1000, n, replace=False))
    edges = graph.draw(members, degree, np.random.default_rng(seed))
    assert np.array_equal(edges, ordered(edges))
    assert np.isin(edges, members).all()
    assert np.array_equal(edges, graph.draw(members, degree, np.random.default_rng(seed)))
    if kind not in DIRECTED:
        assert is_symmetric(edges)
    if kind not in MAY_FALL_APART:
        made: Any = nx.Graph(edges.tolist())
        made.add_nodes_from(members.tolist())
        assert nx.is_connected(made)


@given(st.integers(2, 130), st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_fixed_kinds_are_those_of_networkx(n: int, seed: int) -> None:
    """Equal up to the names of nodes for ring, path, star, complete, torus and hypercube."""
    rows = next((side for side in range(int(n**0.5), 2, -1) if n % side == 0), 0)
    theirs = {
        "ring": nx.cycle_graph(n),
        "path": nx.path_graph(n),
        "star": nx.star_graph(n - 1),
        "complete": nx.complete_graph(n),
        "torus": nx.grid_2d_graph(rows, n // rows, periodic=True) if rows else None,
        "hypercube": nx.hypercube_graph(n.bit_length() - 1) if n & (n - 1) == 0 else None,
    }
    for kind, expected in theirs.items():
        graph = GRAPHS[kind]()
        if expected is None:
            assert graph.problem(n, None)
        elif not graph.problem(n, None):
            mine = drawn(graph, n, seed=seed)
            assert sorted(d for _, d in mine.degree) == sorted(d for _, d in expected.degree)
            assert mine.number_of_edges() == expected.number_of_edges()
            if n <= 16:
                assert nx.is_isomorphic(mine, nx.convert_node_labels_to_integers(expected))


@given(st.integers(4, 60), st.data())
@settings(max_examples=60, deadline=None)
def test_regular_graphs_have_their_degree(n: int, data: st.DataObject) -> None:
    """Both ways where directed; also near-complete graphs, whose complement is drawn."""
    degree = data.draw(st.integers(3, n - 1))
    directed = drawn(GRAPHS["random_regular"](), n, degree, seed=n)
    both = [directed.degree] if not directed.is_directed() else [directed.in_degree, directed.out_degree]
    assert all({d for _, d in one} == {degree} for one in both)
    if n * degree % 2 == 0:
        assert {d for _, d in drawn(Expander(), n, degree, seed=n).degree} == {degree}


@pytest.mark.parametrize("kind", ["erdos_renyi", "small_world", "scale_free", "clustered"])
def test_the_mean_degree_is_what_was_asked_for(kind: str) -> None:
    """Within five percent over 4,000 nodes; a small world exactly."""
    made = drawn(GRAPHS[kind](), 4000, 8)
    assert 2 * made.number_of_edges() / 4000 == pytest.approx(8, rel=0.0 if kind == "small_world" else 0.05)


@pytest.mark.parametrize(
    ("values", "starts"), [([], []), ([4], [0]), ([1, 1, 3, 3, 3, 2], [0, 2, 5]), ([0, 1, 2], [0, 1, 2])]
)
def test_groups_start_where_the_value_changes(values: list[int], starts: list[int]) -> None:
    """Also in no values at all; groups need not be in order."""
    assert group_starts(np.array(values, dtype=np.int64)).tolist() == starts


def test_random_kinds_have_the_shape_of_their_names() -> None:
    """Hubs in a scale-free graph as in networkx's; triangles in a small world; few edges leave a cluster."""
    hubs = [max(d for _, d in drawn(ScaleFree(), 3000, 6, seed).degree) for seed in range(5)]
    theirs = [max(d for _, d in nx.barabasi_albert_graph(3000, 3, seed=seed).degree) for seed in range(5)]
    assert np.mean(hubs) == pytest.approx(np.mean(theirs), rel=0.4)
    assert min(hubs) > 80 > max(d for _, d in drawn(ErdosRenyi(), 3000, 6).degree)
    assert nx.average_clustering(drawn(SmallWorld(rewire=0.1), 1000, 6)) > 0.3
    made = drawn(Clustered(clusters=5, outside=0.2), 1000, 10)
    assert np.mean([a // 200 != b // 200 for a, b in made.edges]) == pytest.approx(0.2, abs=0.03)


def test_directed_kinds_go_one_way() -> None:
    """A directed ring and a directed random graph; the exponential graph reaches 1, 2, 4, 8 places ahead."""
    assert list(drawn(Ring(directed=True), 5).edges) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
    assert drawn(ErdosRenyi(directed=True), 300, 6).number_of_edges() == pytest.approx(1800, rel=0.1)
    assert sorted(drawn(ExponentialGraph(), 10, first=20).successors(28)) == [20, 22, 26, 29]


def test_clusters_have_heads() -> None:
    """Nine members in three clusters: heads 0, 3, 6 know each other, everyone else knows its head alone."""
    made = drawn(Hierarchical(clusters=3), 9)
    assert sorted(made[0]) == [1, 2, 3, 6]
    assert all(list(made[node]) == [node - node % 3] for node in (1, 2, 4, 5, 7, 8))


@pytest.mark.parametrize("n", [100, 1000])
def test_an_expander_mixes_at_any_size(n: int) -> None:
    """Its gap does not fall with the size: near that of the best graphs, 1 - (1 + 2 sqrt(d - 1)) / (d + 1)."""
    best = 1 - (1 + 2 * 5**0.5) / 7
    for seed in range(3):
        weights = uniform_weights(edges_of(drawn(Expander(), n, 6, seed)), n)
        assert spectral_gap(weights) > 0.8 * best
    assert spectral_gap(uniform_weights(edges_of(drawn(Ring(), n)), n)) < 0.01


@pytest.mark.parametrize(
    ("graph", "n", "degree", "message"),
    [
        (Complete(), 100_000, None, "has 9999900000 edges; up to 20000 members would fit"),
        (Ring(), 2, None, "a ring needs at least 3 members, not 2"),
        (Torus(), 9_999_991, None, "9999989, 9999990 or 9999992 would fit"),
        (Torus(), 11, None, "11 members make no torus of at least 3 x 3; 9, 12 or 15 would fit"),
        (Torus(), 97, None, "no torus of at least 3 x 3; 95, 96 or 98 would fit"),
        (Hypercube(), 100, None, "100 is no power of two, as a hypercube needs; 64 or 128 would fit"),
        (Expander(), 25, 5, "25 members of degree 5 make an odd sum of degrees; 4 or 6 would fit"),
        (Expander(), 10, 2, "a random graph of degree 2 is no expander; 3 is the least that would fit"),
        (Expander(), 6, 6, "6 members have at most 5 neighbours each, not 6"),
        (SmallWorld(), 20, 5, "5 near neighbours of a small world is odd; 4 or 6 would fit"),
        (ScaleFree(), 20, 3, "is odd; 2 or 4 would fit"),
        (Clustered(clusters=4, outside=0.0), 20, 6, "inside a cluster of 5 are too many; exchange_with 4 would fit"),
        (Clustered(clusters=6), 10, 2, "6 clusters of two need at least 12 members, not 10"),
        (Hierarchical(clusters=6), 10, None, "need at least 12 members, not 10"),
    ],
)
def test_what_there_is_not_says_what_would_fit(graph: Any, n: int, degree: int | None, message: str) -> None:
    """The rule, and sizes near the one asked for."""
    assert message in graph.problem(n, degree)


def test_what_would_fit_does_fit() -> None:
    """The sizes that the messages name, for every size up to 300."""
    for n in range(3, 300):
        for graph in (Torus(), Hypercube()):
            problem = graph.problem(n, None)
            named = problem.partition(";")[2].replace(",", " ").replace("or", " ").split() if problem else []
            assert all(not graph.problem(int(word), None) for word in named if word.isdigit())
            assert bool(problem) == (len([word for word in named if word.isdigit()]) >= 2)


@pytest.mark.parametrize("kind", [kind for kind in NAMED if kind != "complete"])
def test_large_sparse_graphs_are_drawn(kind: str) -> None:
    """100,000 nodes (the next power of two for a hypercube): looking at all pairs of them would not end here."""
    n = 1 << 17 if kind == "hypercube" else 100_000
    degree = 6 if GRAPHS[kind].free_degree else None
    edges = GRAPHS[kind]().draw(np.arange(n), degree, np.random.default_rng(0))
    assert np.array_equal(edges, ordered(edges))
    assert n <= len(edges) < 40 * n
    assert edges.min() >= 0
    assert edges.max() < n


def test_pairs_are_counted_without_a_gap() -> None:
    """Also where a float's square root is no longer exact."""
    assert pairs_of(np.arange(6)).tolist() == [[1, 0], [2, 0], [2, 1], [3, 0], [3, 1], [3, 2]]
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1 << 44, 10_000)
    a, b = pairs_of(numbers).T
    assert ((b >= 0) & (b < a)).all()
    assert (a * (a - 1) // 2 + b == numbers).all()


def as_graph(key: bytes) -> Any:
    made: Any = nx.Graph()
    made.add_edges_from(np.frombuffer(key, np.int64).reshape(-1, 2).tolist())
    return made


def test_small_regular_graphs_are_drawn_evenly() -> None:
    """All 70 cubic graphs of six named nodes; those that differ only by names equally often.

    The ten that fall into two sides come half as often as the 60 prisms: mending is uniform in large graphs only.
    """
    rng = np.random.default_rng(1)
    found: dict[bytes, int] = {}
    for _ in range(7000):
        pairs = np.sort(regular_pairs(6, 3, rng), axis=1)
        key = ordered(pairs).tobytes()
        found[key] = found.get(key, 0) + 1
    assert len(found) == 70
    sides: dict[bytes, bool] = {key: nx.is_bipartite(as_graph(key)) for key in found}
    for kind in (True, False):
        counts = np.array([count for key, count in found.items() if sides[key] == kind])
        # Chi squared has its number of degrees of freedom as mean, and twice that as variance.
        freedom = len(counts) - 1
        assert ((counts - counts.mean()) ** 2).sum() / counts.mean() < freedom + 4 * (2 * freedom) ** 0.5


@given(sizes(), st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_swaps_change_edges_and_no_degree(case: tuple[str, int, int | None, int], count: int) -> None:
    """In- and out-degree of every node stay, as does being undirected; a complete graph has no swap and ends."""
    kind, n, degree, seed = case
    graph = GRAPHS[kind]()
    if graph.problem(n, degree):
        return
    before = graph.draw(np.arange(n), degree, np.random.default_rng(seed))
    after = swapped(before, count, np.random.default_rng(seed))
    assert np.array_equal(after, ordered(after))
    for column in (0, 1):
        assert np.array_equal(np.bincount(before[:, column], minlength=n), np.bincount(after[:, column], minlength=n))
    assert is_symmetric(after) == is_symmetric(before)
    if not count or kind == "complete":
        assert np.array_equal(before, after)


def test_one_swap_changes_two_pairs() -> None:
    """And they are others with every generator."""
    before = GRAPHS["ring"]().draw(np.arange(20), None, np.random.default_rng(0))
    seen = set()
    for seed in range(5):
        after = swapped(before, 1, np.random.default_rng(seed))
        fresh = set(map(tuple, after.tolist())) - set(map(tuple, before.tolist()))
        assert len(fresh) == 4
        seen.add(frozenset(fresh))
    assert len(seen) > 1


def test_undirected_pairs_swap_either_way() -> None:
    """0-1, 2-3 become 0-3, 2-1 or 0-2, 1-3: an undirected pair has no first end."""
    pairs = np.array([[0, 1], [1, 0], [2, 3], [3, 2]])
    found = {str(swapped(pairs, 1, np.random.default_rng(seed)).tolist()) for seed in range(20)}
    assert found == {"[[0, 2], [1, 3], [2, 0], [3, 1]]", "[[0, 3], [1, 2], [2, 1], [3, 0]]"}


def test_networkx_generators_are_called_by_name() -> None:
    """The size and the seed are filled in; parallel edges and loops are dropped."""
    waxman = FromNetworkx(generator="waxman_graph", arguments={"beta": 0.9, "alpha": 0.5})
    assert len(drawn(waxman, 30)) == 30
    assert drawn(waxman, 30, seed=1).edges == drawn(waxman, 30, seed=1).edges != drawn(waxman, 30, seed=2).edges
    cliques = FromNetworkx(generator="ring_of_cliques", arguments={"num_cliques": 4, "clique_size": 5})
    assert nx.is_isomorphic(drawn(cliques, 20), nx.ring_of_cliques(4, 5))
    assert drawn(FromNetworkx(generator="gn_graph"), 12).is_directed()


@pytest.mark.parametrize(
    ("generator", "arguments", "message"),
    [
        ("read_gml", {"path": 1}, "read_gml is not among the generators"),
        ("__import__", {}, "is not among the generators"),
        ("waxman_graph", {"metric": 1}, "waxman_graph takes beta and alpha and L and domain here, not metric"),
        ("gn_graph", {"create_using": 1}, "gn_graph takes no argument here, not create_using"),
        ("gnm_random_graph", {"m": 3, "backend": 1}, "takes m and directed here, not backend"),
        ("gnm_random_graph", {"m": 3, "n": 5}, "takes m and directed here, not n"),
        ("caveman_graph", {"l": 3, "k": 5}, "l * k is 15, not 12; change `arguments`"),
        ("caveman_graph", {"l": 3}, "caveman_graph needs whole numbers l and k; l * k must be 12"),
        ("random_regular_graph", {"d": 40}, "random_regular_graph cannot be made ("),
        ("watts_strogatz_graph", {}, "watts_strogatz_graph cannot be made ("),
    ],
)
def test_other_functions_and_arguments_are_refused(generator: str, arguments: Any, message: str) -> None:
    """Nothing that reads files, takes functions or loads other code; what networkx refuses is passed on."""
    assert message in FromNetworkx(generator=generator, arguments=arguments).problem(12, None)


@pytest.mark.parametrize("generator", sorted(GENERATORS))
def test_every_generator_of_the_list_works(generator: str) -> None:
    """Each one with some arguments that fit."""
    given_: dict[str, Any] = {
        "d": 4, "k": 4, "p": 0.1, "m": 2, "q": 0.1, "r": 3, "radius": 0.3, "alpha": 0.5, "offsets": [1, 2],
        "l": 250, "p_in": 0.5, "p_out": 0.01, "num_cliques": 250, "clique_size": 4,
    }  # fmt: skip
    known = inspect.signature(getattr(nx, generator)).parameters
    wanted = {name: value for name, value in given_.items() if name in known}
    if generator == "scale_free_graph":
        wanted = {}
    graph = FromNetworkx(generator=generator, arguments=wanted)
    assert graph.problem(1000, None) == ""


def test_importing_the_graphs_loads_no_networkx() -> None:
    """Most commands draw no graph of networkx."""
    code = "import sys, nodes.protocols.graphs; sys.exit('networkx' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_files_say_how_many_members_fit(tmp_path: Any) -> None:
    """An edge list of three nodes for five members."""
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    message = GraphFile(path=str(tmp_path / "edges.txt")).problem(5, None)
    assert message == "the file has 3 nodes, not 5; 3 members would fit"
