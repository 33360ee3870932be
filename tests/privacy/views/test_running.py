"""Round by round the running views add up to what the whole run's views say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privacy.views.rigorous import Aggregations, Releases, Topology, Trace, rigorous_views
from privacy.views.running import RoundFacts, RunningViews

CLIENTS = 6
SENSITIVITY, DELTA = 2.0, 1e-5


def random_round(random: np.random.Generator, topology: Topology) -> RoundFacts:
    """Some clients release; some of it is averaged, some only received, some lost."""
    clients = np.sort(random.choice(CLIENTS, 4, replace=False))
    centre = 9 if topology == "central" else int(clients[0])
    receivers = clients if topology == "gossip" else np.array([centre])
    edges = np.array([(a, b) for a in clients for b in receivers if a != b])
    fate = random.integers(0, 5, len(edges))
    own = np.column_stack([receivers, receivers]) if topology != "central" else edges[:0]
    used = np.concatenate([edges[fate > 1], own[random.random(len(own)) < 0.8]])
    stds = random.choice([1.0, 3.0, 8.0], len(clients))
    return RoundFacts(clients=clients, stds=stds, used=used, unused=edges[fate == 1], rate=4 / CLIENTS)


def whole_trace(rounds: list[RoundFacts], topology: Topology, rate: float | None) -> Trace:
    """The same rounds as one trace."""

    def join(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        return np.concatenate(parts).astype(np.int64)

    numbered = list(enumerate(rounds, 1))
    averaged = [np.repeat([True, False], [len(facts.used), len(facts.unused)]) for facts in rounds]
    arrived = [np.concatenate([facts.used, facts.unused]) for facts in rounds]
    return Trace(
        clients=CLIENTS,
        topology=topology,
        releases=Releases(
            round=join([np.full(len(facts.clients), number) for number, facts in numbered]),
            client=join([facts.clients for facts in rounds]),
            noise_std=np.concatenate([facts.stds for facts in rounds]),
        ),
        aggregations=Aggregations(
            round=join([np.full(len(rows), number) for number, rows in enumerate(arrived, 1)]),
            aggregator=join([rows[:, 1] for rows in arrived]),
            contributor=join([rows[:, 0] for rows in arrived]),
            used=np.concatenate(averaged),
        ),
        sampling_rate=rate,
    )


def running(topology: Topology, rounds: int = 5) -> RunningViews:
    """Nothing has happened yet."""
    return RunningViews(
        clients=CLIENTS, topology=topology, sensitivity=SENSITIVITY, delta=DELTA, most_releases=4 * rounds
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["gossip", "pseudo_central", "central"]), st.integers(1, 5))
def test_the_sum_of_the_rounds_is_the_run(seed: int, topology: Topology, count: int) -> None:
    """Local and worst peer exactly; model exactly where there are means, and in gossip the worst of all models."""
    random = np.random.default_rng(seed)
    rounds = [random_round(random, topology) for _ in range(count)]
    views = running(topology)
    for facts in rounds:
        views.add(facts)
    found = views.now()
    whole = rigorous_views(whole_trace(rounds, topology, 4 / CLIENTS), SENSITIVITY, DELTA)
    assert found.local == pytest.approx(whole.local, rel=1e-9)
    assert found.peer_worst == pytest.approx(whole.peer_worst, rel=1e-9)
    if topology == "gossip":
        assert found.model <= whole.model * (1 + 1e-9)
    else:
        assert found.model == pytest.approx(whole.model, rel=1e-9)


def test_epsilon_never_falls_from_round_to_round() -> None:
    """More releases tell more."""
    random = np.random.default_rng(3)
    for topology in ("gossip", "pseudo_central", "central"):
        views, before = running(topology), (0.0, 0.0, 0.0)
        for _ in range(5):
            views.add(random_round(random, topology))
            assert all(new >= old for new, old in zip(views.now(), before, strict=True))
            before = views.now()


def test_what_nobody_charged_is_infinite() -> None:
    """An update that arrives without a charge tells everything."""
    views, edges = running("gossip"), np.array([[1, 2], [0, 2]])
    views.add(RoundFacts(clients=np.array([1]), stds=np.ones(1), used=edges, unused=edges[:0]))
    assert views.now() == (math.inf, math.inf, math.inf)


def test_large_runs_fall_back_to_the_local_view() -> None:
    """Peers are not told apart when there are too many of them."""
    views = RunningViews(clients=5000, topology="gossip", sensitivity=2.0, delta=DELTA, most_releases=10**6)
    edges = np.array([[1, 2]])
    views.add(RoundFacts(clients=np.array([1]), stds=np.ones(1), used=edges, unused=edges[:0]))
    found = views.now()
    assert found.local == found.peer_worst == found.model > 0
