"""Rigorous views against what linear algebra and plain sets say about the same run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privacy.accounting.gaussian import epsilon_of
from privacy.views import rigorous, shared_mean
from privacy.views.gossip import linear_view, taint_count
from privacy.views.rigorous import Aggregations, Releases, Topology, Trace, rigorous_views

DELTA, SENSITIVITY = 1e-5, 2.0
Run = tuple[int, list[tuple[int, int, float]], list[tuple[int, int, int, bool]]]


def trace(run: Run, topology: Topology, **changes: object) -> Trace:
    """A run given as (clients, releases, arrivals) in the accountant's form."""
    clients, releases, arrivals = run
    left = np.array([row[:2] for row in releases], dtype=np.int64).reshape(-1, 2)
    came = np.array([row[:3] for row in arrivals], dtype=np.int64).reshape(-1, 3)
    return Trace(
        clients=clients,
        topology=topology,
        releases=Releases(
            round=left[:, 0], client=left[:, 1], noise_std=np.array([row[2] for row in releases], dtype=np.float64)
        ),
        aggregations=Aggregations(
            round=came[:, 0],
            aggregator=came[:, 1],
            contributor=came[:, 2],
            used=np.array([row[3] for row in arrivals], dtype=np.bool_),
        ),
        **changes,  # type: ignore[arg-type]
    )


@st.composite
def leader_runs(draw: st.DrawFn) -> Run:
    """A few rounds with a leader each; some updates lost, some late, noise of every size."""
    clients = draw(st.integers(3, 7))
    releases, arrivals = [], []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        cohort = draw(st.lists(st.integers(0, clients - 1), min_size=2, unique=True))
        releases += [(number, client, draw(st.floats(0.5, 20.0))) for client in cohort]
        for client in cohort:
            fate = draw(st.sampled_from(["used", "used", "late", "lost"]))
            if client == cohort[0] or fate == "used":
                arrivals.append((number, cohort[0], client, True))
            elif fate == "late":
                arrivals.append((number, cohort[0], client, False))
    return clients, releases, arrivals


def exact_mu2(run: Run, observers: set[int], target: int) -> float:
    """mu^2 about the target by projecting on the row space of everything the observers see, round by round."""
    clients, releases, arrivals = run
    total = 0.0
    for number in {row[0] for row in releases}:
        stds = np.zeros(clients)
        for when, client, std in releases:
            stds[client] = std if when == number else stds[client]
        seen = [
            np.array([float(any(a == (number, lead, c, True) for a in arrivals)) for c in range(clients)])
            for lead in {a[1] for a in arrivals if a[0] == number}
        ]
        for when, receiver, sender, _ in arrivals:
            if when == number and receiver in observers and sender != receiver:
                seen.append(np.eye(clients)[sender])
        rows = np.array(seen)
        rows[:, list(observers)] = 0.0
        total += SENSITIVITY**2 * projected(rows, stds, target)
    return total


def projected(rows: NDArray[np.float64], stds: NDArray[np.float64], target: int) -> float:
    """a' (A D A')^+ a for the target's column a."""
    gram = rows @ np.diag(np.square(stds)) @ rows.T
    return float(rows[:, target] @ np.linalg.pinv(gram, rcond=1e-10) @ rows[:, target])


@pytest.mark.slow
@settings(max_examples=60)
@given(leader_runs())
def test_leader_views_equal_linear_algebra(run: Run) -> None:
    """Peer, coalition and model of a leader run are the exact projections, worst and median as defined."""
    clients = run[0]
    found = rigorous_views(trace(run, "pseudo_central"), SENSITIVITY, DELTA, colluders=[0, 1])
    peers = [
        epsilon_of(math.sqrt(max(exact_mu2(run, {v}, u) for u in range(clients) if u != v)), DELTA)
        for v in range(clients)
    ]
    team = max((exact_mu2(run, {0, 1}, u) for u in range(2, clients)), default=0.0)
    outside = max(exact_mu2(run, set(), u) for u in range(clients))
    assert found.peer_worst == pytest.approx(max(peers), rel=1e-6)
    assert found.peer_median == pytest.approx(float(np.median(peers)), rel=1e-6)
    assert found.coalition == pytest.approx(epsilon_of(math.sqrt(team), DELTA), rel=1e-6)
    assert found.model == pytest.approx(epsilon_of(math.sqrt(outside), DELTA), rel=1e-6)


@pytest.mark.slow
@settings(max_examples=30)
@given(leader_runs())
def test_every_view_is_within_the_local_one(run: Run) -> None:
    """With independent noise nobody learns more than whoever holds all messages."""
    for topology in ("pseudo_central", "gossip"):
        found = rigorous_views(trace(run, topology, sampling_rate=0.5), SENSITIVITY, DELTA, [0, 1])
        limit = found.local * (1 + 1e-9)
        assert found.peer_median <= found.peer_worst <= limit
        assert found.coalition is not None
        assert found.coalition <= limit
        assert found.model <= limit


@pytest.mark.slow
@settings(max_examples=20)
@given(leader_runs())
def test_large_runs_get_an_upper_bound(run: Run) -> None:
    """Where observers share one row, nobody is reported as learning less than exactly computed."""
    exact = rigorous_views(trace(run, "pseudo_central"), SENSITIVITY, DELTA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_mean, "_EXACT_PAIRS", 0)
        patch.setattr(rigorous, "_TAINT_WORK", -1)
        bound = rigorous_views(trace(run, "pseudo_central"), SENSITIVITY, DELTA)
        followed = rigorous_views(trace(run, "gossip"), SENSITIVITY, DELTA)
    assert bound.peer_worst >= exact.peer_worst * (1 - 1e-9)
    assert bound.peer_median >= exact.peer_median * (1 - 1e-9)
    assert followed.peer_is_bound
    assert followed.peer_worst == followed.local


@st.composite
def gossip_runs(draw: st.DrawFn) -> Run:
    """A few rounds of arbitrary directed messages, some unused, own vectors included now and then."""
    clients = draw(st.integers(3, 6))
    nodes = st.integers(0, clients - 1)
    releases, arrivals = [], []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        edges = draw(st.lists(st.tuples(nodes, nodes), max_size=8, unique=True))
        releases += [(number, client, draw(st.sampled_from([1.0, 4.0]))) for client in {a for a, _ in edges}]
        arrivals += [(number, b, a, a == b or draw(st.booleans())) for a, b in edges]
    return clients, releases, arrivals


@pytest.mark.slow
@settings(max_examples=80)
@given(gossip_runs())
def test_gossip_views_equal_sets(run: Run) -> None:
    """Taint by bit matrices is taint by Python sets, weights and all."""
    clients, releases, arrivals = run
    cost = {(when, client): (SENSITIVITY / std) ** 2 for when, client, std in releases}
    model: list[set[tuple[int, int]]] = [set() for _ in range(clients)]
    seen: list[set[tuple[int, int]]] = [set() for _ in range(clients)]
    for number in sorted({when for when, _ in cost}):
        before = [set(one) for one in model]
        for when, receiver, sender, used in arrivals:
            if when == number:
                carried = before[sender] | {(number, sender)}
                model[receiver] |= carried if used else set()
                seen[receiver] |= carried if sender != receiver else set()

    def worst(held: set[tuple[int, int]], spared: set[int]) -> float:
        about = [sum(cost[r] for r in held if r[1] == u) for u in range(clients) if u not in spared]
        return epsilon_of(math.sqrt(max(about)), DELTA)

    peers = [worst(seen[v], {v}) for v in range(clients)]
    found = rigorous_views(trace(run, "gossip", collected=0), SENSITIVITY, DELTA, colluders=[0, 1])
    assert found.peer_worst == pytest.approx(max(peers))
    assert found.peer_median == pytest.approx(float(np.median(peers)))
    assert found.coalition == pytest.approx(worst(seen[0] | seen[1], {0, 1}))
    assert found.model == pytest.approx(worst(model[0], set()))


def test_reference_peer_of_a_leader_run() -> None:
    """Realised counts give the formula of the specification: mu^2 = mu1^2 (N_lead + N_other/(m-1))."""
    clients, rounds = 5, 10
    releases = [(t, c, 8.0) for t in range(1, rounds + 1) for c in range(clients)]
    arrivals = [(t, 0 if t == 1 else 1, c, True) for t in range(1, rounds + 1) for c in range(clients)]
    found = rigorous_views(trace((clients, releases, arrivals), "pseudo_central"), SENSITIVITY, DELTA)
    mu2 = (SENSITIVITY / 8.0) ** 2
    assert found.local == pytest.approx(epsilon_of(math.sqrt(rounds * mu2), DELTA))
    assert found.peer_worst == pytest.approx(epsilon_of(math.sqrt(mu2 * (9 + 1 / 4)), DELTA))
    assert found.peer_median == pytest.approx(epsilon_of(math.sqrt(mu2 * 10 / 4), DELTA))
    assert found.model == pytest.approx(epsilon_of(math.sqrt(mu2 * 10 / 5), DELTA))


def test_secret_sampling_helps_the_model_view_only() -> None:
    """Ten of a thousand clients each round: amplification for one who sees means, none for the others."""
    releases = [(t, 10 * (t - 1) + c, 2.0) for t in range(1, 21) for c in range(10)]
    arrivals = [(t, 1000, c, True) for t, c, _ in releases]
    plain = rigorous_views(trace((1000, releases, arrivals), "central"), SENSITIVITY, DELTA)
    secret = rigorous_views(trace((1000, releases, arrivals), "central", sampling_rate=0.01), SENSITIVITY, DELTA)
    assert secret.model < plain.model
    assert (secret.local, secret.peer_worst) == (plain.local, plain.peer_worst)
    colluding = rigorous_views(trace((1000, releases, arrivals), "central"), SENSITIVITY, DELTA, colluders=[1000])
    assert colluding.coalition == pytest.approx(plain.local)


def test_two_overlapping_means_are_charged_in_full() -> None:
    """A leader re-elected in the same round makes a second mean: their difference may show one update."""
    releases = [(1, c, 5.0) for c in range(4)]
    arrivals = [(1, lead, c, True) for lead, members in ((0, (0, 1, 2, 3)), (1, (0, 1, 2))) for c in members]
    found = rigorous_views(trace((4, releases, arrivals), "pseudo_central", sampling_rate=0.1), SENSITIVITY, DELTA)
    assert found.model == found.local == found.peer_worst


@pytest.mark.parametrize("topology", ["gossip", "pseudo_central", "central"])
def test_infinite_where_nothing_is_proved(topology: Topology) -> None:
    """Unaccounted releases, no bound, no noise, or an update nobody charged: every view is infinite."""
    releases, arrivals = [(1, 0, 1.0), (1, 1, 1.0)], [(1, 1, 0, True), (1, 1, 1, True)]
    silent = [(1, 0, 0.0), (1, 1, 0.0)]
    cases = [
        (trace((2, releases, arrivals), topology, accounted=False), SENSITIVITY),
        (trace((2, releases, arrivals), topology), math.inf),
        (trace((2, silent, arrivals), topology), SENSITIVITY),
        (trace((2, releases[1:], arrivals), topology), SENSITIVITY),
    ]
    for run, sensitivity in cases:
        found = rigorous_views(run, sensitivity, DELTA)
        assert found.local == found.model == math.inf


@pytest.mark.parametrize("topology", ["gossip", "pseudo_central"])
def test_a_run_without_rounds_costs_nothing(topology: Topology) -> None:
    """No release, no loss."""
    found = rigorous_views(trace((3, [], []), topology, sampling_rate=0.5), SENSITIVITY, DELTA)
    assert (found.local, found.peer_worst, found.model) == (0.0, 0.0, 0.0)


def test_second_message_reveals_the_far_node() -> None:
    """On a path of four, two steps show the middle node's neighbour fully, though ratios sum to a third."""
    path = np.array([[2, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 2]]) / 3.0
    view = linear_view(path, 2, 2, 0)
    assert view.loss_fraction == pytest.approx(1.0)
    assert view.squared_ratio_sum == pytest.approx(1 / 3)
    assert linear_view(path, 1, 2, 0).loss_fraction == pytest.approx(0.0)
    assert linear_view(path, 0, 2, 0).loss_fraction == 0.0


def test_taint_travels_forward_in_time_only() -> None:
    """What reaches a node after it sent does not travel with what it sent."""
    assert taint_count(0, 2, [[(0, 1), (1, 2)]]) == (0, 0)
    assert taint_count(0, 2, [[(0, 1)], [(1, 2)]]) == (0, 1)
    assert taint_count(0, 1, [[(0, 1)], [(0, 1)]]) == (2, 2)
