"""Who is exposed to an observer of gossip by linear algebra."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from privacy.attacks.exposure import Mixing, averaging_knowledge, exposure, training_knowledge
from topologies.mixing import edges_of, metropolis_weights

ROUNDS = (1, 2, 3, 5, 10, 20)
FIGURE_1 = "0-2 1-2 2-3 2-4 1-5 1-7 1-8 5-9 9-10 9-11 11-6 7-8 7-9 7-11"


def world(graph: Any, own: list[int], rounds: int) -> tuple[list[Mixing], list[NDArray[Any]]]:
    """Every round the same, with Metropolis weights; the observers hear their neighbours."""
    edges, n = edges_of(graph), graph.number_of_nodes()
    near = np.unique(edges[np.isin(edges[:, 1], own)][:, 0])
    mixing = Mixing(metropolis_weights(edges, n).toarray(), np.ones(n, dtype=np.bool_))
    return [mixing] * rounds, [near] * rounds


def numbered(graph: Any) -> Any:
    return nx.convert_node_labels_to_integers(graph)


def exposed_after(graph: Any, own: list[int], rounds: int) -> set[int]:
    knowledge = np.concatenate(list(averaging_knowledge(*world(graph, own, rounds), own)))
    return set(np.flatnonzero(exposure(knowledge).exposed).tolist())


def test_the_published_example() -> None:
    """Figure 1 of Mrini et al.: two attackers; 3 and 4 look the same from everywhere and are never told apart."""
    graph: Any = nx.empty_graph(12)
    graph.add_edges_from(tuple(map(int, edge.split("-"))) for edge in FIGURE_1.split())
    assert exposed_after(graph, [0, 1], 1) == {0, 1, 2, 5, 7, 8}
    assert exposed_after(graph, [0, 1], 2) == {0, 1, 2, 5, 7, 8, 9, 11}
    for rounds in (3, 10, 20):
        assert exposed_after(graph, [0, 1], rounds) == set(range(12)) - {3, 4}


@pytest.mark.parametrize(
    ("graph", "counts"),
    [
        (nx.cycle_graph(16), (3, 5, 7, 11, 16, 16)),
        (numbered(nx.florentine_families_graph()), (2, 2, 2, 2, 2, 15)),
        (numbered(nx.hypercube_graph(4)), (5, 5, 9, 10, 10, 10)),
        (nx.random_regular_graph(6, 50, seed=1), (7, 7, 7, 7, 50, 50)),
    ],
    ids=["ring", "florentine", "hypercube", "regular"],
)
def test_reference_counts(graph: Any, counts: tuple[int, ...]) -> None:
    """One attacker, after 1, 2, 3, 5, 10 and 20 rounds."""
    assert tuple(len(exposed_after(graph, [0], rounds)) for rounds in ROUNDS) == counts


def test_exposed_values_are_recovered_and_others_are_not() -> None:
    """Averaging is played in plain numpy; the least-norm solution has the true values where clients are exposed."""
    graph, own, rng = numbered(nx.hypercube_graph(4)), [0], np.random.default_rng(1)
    rounds, heard = world(graph, own, 6)
    values = rng.normal(size=16)
    told, state = [values[own]], values
    for mixing, senders in zip(rounds, heard, strict=True):
        told.append(state[senders])
        state = mixing.weights @ state
    knowledge = np.concatenate(list(averaging_knowledge(rounds, heard, own)))
    solved = np.linalg.pinv(knowledge, rcond=1e-12) @ np.concatenate(told)
    exposed = exposure(knowledge).exposed
    assert 5 < exposed.sum() < 16
    np.testing.assert_allclose(solved[exposed], values[exposed], atol=1e-6)
    assert np.abs(solved - values)[~exposed].min() > 1e-3


def test_steps_are_recovered_from_training() -> None:
    """Equal steps every round, except the observer's own, which change; one client sits out the second round."""
    graph, own, rng = nx.cycle_graph(9), [0], np.random.default_rng(2)
    rounds, heard = world(graph, own, 8)
    rounds[1] = rounds[1]._replace(trained=np.arange(9) != 5)
    steps, state, known = rng.normal(size=9), np.zeros(9), np.zeros(9)
    told: list[NDArray[Any]] = []
    for mixing, senders in zip(rounds, heard, strict=True):
        mine = rng.normal()
        state = state - np.where(np.arange(9) == 0, mine, steps * mixing.trained)
        # What would have been heard if the others had taken no step: the observer's own messages, passed on.
        known[0] = state[0]
        told.append(known[senders] - state[senders])
        state, known = mixing.weights @ state, mixing.weights @ known
    knowledge = np.concatenate(list(training_knowledge(rounds, heard, own)))
    found = exposure(knowledge)
    assert found.exposed.tolist() == [False] + [True] * 8
    solved = np.linalg.pinv(knowledge, rcond=1e-13) @ np.concatenate(told)
    np.testing.assert_allclose(solved[1:], steps[1:], atol=1e-6)
    expected = np.linalg.norm(np.linalg.pinv(knowledge, rcond=1e-13), axis=1)
    np.testing.assert_allclose(found.noise_factor[1:], expected[1:], rtol=1e-4)


def test_who_hears_nothing_learns_nothing() -> None:
    """Also not with a row of zeros."""
    for knowledge in (np.zeros((0, 4)), np.zeros((3, 4))):
        assert not exposure(knowledge).exposed.any()
        assert np.isinf(exposure(knowledge).noise_factor).all()
