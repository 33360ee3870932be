"""The accountant against brute force over random rounds, and the invariants of every run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from privacy.accounting import setting as module
from privacy.accounting.accountant import RECEIVERS, Accountant
from privacy.accounting.content_log import RoundContents, ShareNoise
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.accounting.public_sums import PublicSums
from privacy.accounting.setting import Learned, Setting
from privacy.accounting.spread import Spread
from tests.privacy.accounting import oracle

CLIENTS, SERVER, DELTA = 5, 8, 1e-5
MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
STDS = st.sampled_from([0.5, 1.0, 3.0])


@st.composite
def rounds(draw: st.DrawFn, shares: bool) -> oracle.Round:
    """A round in which anything may reach anyone; some clients release twice, some shares stay with one end."""
    found = oracle.Round()
    cohort = draw(st.lists(st.integers(0, CLIENTS - 1), min_size=2, max_size=CLIENTS + 1))
    bare = shares and draw(st.booleans())
    for row, client in enumerate(cohort):
        own = ("own", row)
        found.variances[own] = 0.0 if bare and draw(st.booleans()) else draw(STDS) ** 2
        found.known.add((client, own))
        found.releases.append(oracle.Release(client, draw(st.sampled_from([1.0, 2.0])), {own: 1.0}))
    if shares:
        draw_shares(draw, found)
    rows = st.integers(0, len(cohort) - 1)
    # An aggregate with a client that released twice is no known sum: the product then counts all its inputs.
    clear = [row for row, client in enumerate(cohort) if cohort.count(client) == 1]
    for _ in range(draw(st.integers(0, 2)) if clear else 0):
        members = draw(st.lists(st.sampled_from(clear), min_size=1, unique=True))
        extra: oracle.Form = {}
        for name in draw(st.lists(st.sampled_from(sorted(found.variances, key=str)), max_size=2, unique=True)):
            if isinstance(name, tuple) and name[0] == "share":
                extra[name] = draw(st.sampled_from([-1.0, 1.0]))
        # Weights and noise of aggregators are refused beside shares.
        weights = {row: 1.0 if shares else draw(st.sampled_from([1.0, 1.0, 0.3])) for row in sorted(members)}
        if not shares and draw(st.booleans()):
            added = ("aggregate", len(found.sums))
            found.variances[added] = draw(STDS) ** 2
            found.known.add((draw(st.integers(0, CLIENTS - 1)), added))
            extra[added] = 1.0
        found.sums.append((weights, extra))
    nodes = st.sampled_from([*range(CLIENTS), SERVER])
    pairs = draw(st.lists(st.tuples(nodes, rows), max_size=8))
    found.received = {(node, row) for node, row in pairs if found.releases[row].client != node}
    found.used = set(draw(st.lists(st.tuples(rows, st.integers(0, CLIENTS - 1)), max_size=6)))
    return found


def draw_shares(draw: st.DrawFn, found: oracle.Round) -> None:
    """Adds shares: from one release, taken by another or by none, known to their ends and now and then to others."""
    rows = st.integers(0, len(found.releases) - 1)
    for number in range(draw(st.integers(1, 6))):
        name, sender, taker = ("share", number), draw(rows), draw(rows)
        found.variances[name] = draw(STDS) ** 2
        found.releases[sender].noise[name] = 1.0
        found.known.add((found.releases[sender].client, name))
        if found.releases[taker].client != found.releases[sender].client and draw(st.booleans()):
            found.releases[taker].noise[name] = -1.0
            found.known.add((found.releases[taker].client, name))
        if draw(st.integers(0, 3)) == 0:
            found.known |= {(node, name) for node in (draw(st.integers(0, CLIENTS - 1)), RECEIVERS)}


def contents(one: oracle.Round, number: int) -> RoundContents:
    """The same round as the product takes it."""
    shares = [name for name in one.variances if isinstance(name, tuple) and name[0] == "share"]
    factor = np.array([[release.noise.get(name, 0.0) for name in shares] for release in one.releases])
    sums = np.zeros((len(one.sums), len(one.releases)))
    for place, (members, _) in enumerate(one.sums):
        for row, weight in oracle.weights_of(members).items():
            sums[place, row] = weight
    noise = ShareNoise(
        variance=np.array([one.variances[name] for name in shares]),
        factor=sparse.csr_matrix(factor.reshape(len(one.releases), len(shares))),
        repairs=np.array([[extra.get(name, 0.0) for name in shares] for _, extra in one.sums]).reshape(
            len(sums), len(shares)
        ),
        spread=np.zeros(len(shares)),
        known=np.array([(node, shares.index(name)) for node, name in one.known if name in shares]).reshape(-1, 2),
    )
    return RoundContents(
        round_number=number,
        clients=np.array([release.client for release in one.releases]),
        sensitivity=np.array([release.sensitivity for release in one.releases]),
        variance=np.array([one.variances["own", row] for row in range(len(one.releases))]),
        sums=sums,
        sum_variance=np.array([one.variances.get(("aggregate", place), 0.0) for place in range(len(sums))]),
        aggregators=np.array(
            [next((node for node, name in one.known if name == ("aggregate", place)), -9) for place in range(len(sums))]
        ),
        receipts=np.array(sorted(one.received), dtype=np.int64).reshape(-1, 2),
        used=np.array(sorted(one.used), dtype=np.int64).reshape(-1, 2),
        shares=noise if shares else None,
    )


def account(world: list[oracle.Round], spread: Spread, **changes: Any) -> Accountant:
    """An accountant that has been told this world."""
    setting = Setting(clients=CLIENTS, spread=spread, delta=DELTA, rounds=len(world), server=SERVER)
    told = Accountant(replace(setting, **changes))
    for number, one in enumerate(world):
        told.add(contents(one, number + 1))
    return told


def epsilon(mu2: float) -> float:
    """Epsilon of a total mu^2."""
    return epsilon_of(math.sqrt(mu2), DELTA)


def close(found: float, expected: float) -> bool:
    """Whether two epsilons agree to 1e-9; both may be infinite."""
    return found == expected or math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("shares", [False, True])
def test_public_aggregates_equal_brute_force(shares: bool) -> None:
    """Peers, coalition, server, outsider and receivers, with second means, repeated releases, openings, weights."""

    @MANY
    @given(st.lists(rounds(shares), min_size=1, max_size=3))
    def check(world: list[oracle.Round]) -> None:
        views = account(world, "to_all", colluders=(0, 3)).views()
        peers = [epsilon(max(oracle.public_mu2(world, {v}, u) for u in range(CLIENTS))) for v in range(CLIENTS)]
        assert close(views.peer_worst.epsilon, max(peers))
        assert close(views.peer_median.epsilon, float(np.median(peers)))
        assert views.coalition is not None
        assert close(views.coalition.epsilon, epsilon(max(oracle.public_mu2(world, {0, 3}, u) for u in range(CLIENTS))))
        server = epsilon(max(oracle.public_mu2(world, {SERVER}, u) for u in range(CLIENTS)))
        assert close(views.receiver.epsilon, max(server, *peers))
        assert close(views.model.epsilon, epsilon(max(oracle.public_mu2(world, set(), u) for u in range(CLIENTS))))
        every = [
            sum(oracle.mu2(one, range(len(one.releases)), {RECEIVERS}, u, sums=False) for one in world)
            for u in range(CLIENTS)
        ]
        assert close(views.local.epsilon, epsilon(max(every)))

    check()


@pytest.mark.slow
@pytest.mark.parametrize("shares", [False, True])
def test_paths_equal_brute_force(shares: bool) -> None:
    """Gossip: closures by sets of Python, each round's rows jointly."""

    @MANY
    @given(st.lists(rounds(shares), min_size=1, max_size=4), st.integers(0, CLIENTS - 1))
    def check(world: list[oracle.Round], collected: int) -> None:
        views = account(world, "by_path", colluders=(0, 3)).views([collected])
        seen, model = oracle.closures(world, CLIENTS)
        peers = [epsilon(max(oracle.path_mu2(world, seen[v], {v}, u) for u in range(CLIENTS))) for v in range(CLIENTS)]
        assert close(views.peer_worst.epsilon, max(peers))
        assert close(views.peer_median.epsilon, float(np.median(peers)))
        team = max(oracle.path_mu2(world, seen[0] | seen[3], {0, 3}, u) for u in range(CLIENTS))
        assert views.coalition is not None
        assert close(views.coalition.epsilon, epsilon(team))
        behind = max(oracle.path_mu2(world, model[collected], set(), u) for u in range(CLIENTS))
        assert close(views.model.epsilon, epsilon(behind))

    check()


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["to_all", "by_path"])
def test_more_receipts_never_lower_and_more_noise_never_raises(spread: Spread) -> None:
    """On the same log; infinities included."""

    @MANY
    @given(rounds(True), st.integers(0, CLIENTS - 1), st.floats(1.0, 3.0))
    def check(one: oracle.Round, observer: int, louder: float) -> None:
        def figures(changed: oracle.Round) -> list[float]:
            views = account([changed], spread, colluders=(0, 3)).views()
            assert views.coalition is not None
            return [f.epsilon for f in (views.local, views.peer_worst, views.peer_median, views.coalition, views.model)]

        before = figures(one)
        more = {(observer, row) for row, release in enumerate(one.releases) if release.client != observer}
        after = figures(replace(one, received=one.received | more))
        assert all(new >= old * (1 - 1e-9) for old, new in zip(before, after, strict=True))
        own = {name: value * louder if name[0] == "own" else value for name, value in one.variances.items()}  # type: ignore[index]
        quiet = figures(replace(one, variances=own))
        assert all(new <= old * (1 + 1e-9) or old == math.inf for old, new in zip(before, quiet, strict=True))

    check()


def test_a_run_too_large_to_follow_gets_the_local_view_as_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent noise: bounded and labelled. Shared noise: nothing is claimed, since a peer knows its own shares."""
    one = oracle.Round(
        releases=[oracle.Release(client, 2.0, {("own", client): 1.0}) for client in range(3)],
        variances={("own", client): 4.0 for client in range(3)},
        sums=[([0, 1, 2], {})],
        received={(0, 1), (0, 2)},
    )
    exact = account([one], "to_all").views()
    monkeypatch.setattr(module, "_MOST_PAIRS", 4)
    for spread in ("to_all", "by_path"):
        views = account([one], spread).views()
        assert views.peer_worst.how == "bound"
        assert views.peer_worst.epsilon == views.local.epsilon >= exact.peer_worst.epsilon
    shared = replace(one, variances=one.variances | {("share", 0): 1.0})
    shared.releases[0].noise["share", 0] = 1.0
    views = account([shared], "to_all").views()
    assert views.peer_worst.how == views.local.how == "inf"
    assert "noise shares" in views.peer_worst.because


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"sensitivity": np.array([np.inf, 1.0])}, "not clipped"),
        ({"uncharged": True}, "no ledger was charged"),
        ({"variance": np.zeros(2)}, "was left without noise"),
    ],
)
@pytest.mark.parametrize("spread", ["to_all", "by_path"])
def test_every_view_is_infinite_where_nothing_is_proved(spread: Spread, change: dict[str, Any], because: str) -> None:
    """And says why."""
    two = RoundContents(
        round_number=1,
        clients=np.array([0, 1]),
        sensitivity=np.ones(2),
        variance=np.ones(2),
        sums=np.ones((1, 2)),
        receipts=np.array([[1, 0]]),
        used=np.array([[0, 1], [1, 1]]),
    )
    told = Accountant(Setting(clients=2, spread=spread, delta=DELTA, rounds=1))
    told.add(replace(two, **change))
    views = told.views()
    assert {views.local.how, views.peer_worst.how, views.model.how} == {"inf"}
    assert because in views.local.because


@pytest.mark.parametrize("spread", ["to_all", "by_path"])
def test_no_release_no_loss(spread: Spread) -> None:
    """A run without rounds costs nothing."""
    views = account([], spread).views()
    assert (views.local.epsilon, views.peer_worst.epsilon, views.model.epsilon) == (0.0, 0.0, 0.0)


def test_a_contradiction_withdraws_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a peer were to know less than an outsider who sees less, no figure of the run could be trusted."""
    one = oracle.Round(
        releases=[oracle.Release(client, 2.0, {("own", client): 1.0}) for client in range(3)],
        variances={("own", client): 4.0 for client in range(3)},
        known={(client, ("own", client)) for client in range(3)},
        sums=[([0, 1, 2], {})],
    )
    told, learned = account([one], "to_all"), PublicSums.learned
    assert told.views().peer_worst.how == "exact"

    def wrong(sums: PublicSums, collected: Sequence[int] | None) -> Learned:
        found = learned(sums, collected)
        return replace(found, model=10.0 * found.model)

    monkeypatch.setattr(PublicSums, "learned", wrong)
    assert "contradicts itself" in told.views().local.because


@pytest.mark.parametrize("received", [False, True])
def test_an_aggregator_knows_its_own_noise(received: bool) -> None:
    """Noise of the aggregate hides nothing from the node that drew it, whether or not it had a part in the round."""
    one = oracle.Round(
        releases=[oracle.Release(client, 3.0 - 2 * client, {("own", client): 1.0}) for client in (0, 1)],
        variances={("own", 0): 1.0, ("own", 1): 1.0, ("aggregate", 0): 9.0},
        known={(0, ("own", 0)), (1, ("own", 1)), (2, ("aggregate", 0))},
        sums=[({0: 1.0, 1: 1.0}, {("aggregate", 0): 1.0})],
        received={(2, 1)} if received else set(),
    )
    views = account([one], "to_all").views()
    # Of a sum of two, the aggregator lacks both clients' noise; with one release in hand, the other's alone.
    assert views.peer_worst.epsilon == pytest.approx(epsilon(9.0 / 1.0 if received else 9.0 / 2.0), rel=1e-9)
    assert views.model.epsilon == pytest.approx(epsilon(9.0 / 11.0), rel=1e-9)
