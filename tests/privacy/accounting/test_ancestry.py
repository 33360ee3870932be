"""Which releases stand behind what a node holds: within a round, only if a node may send after it has averaged."""

from __future__ import annotations

import numpy as np
import pytest

from privacy.accounting.accountant import Accountant
from privacy.accounting.ancestry import Ancestry
from privacy.accounting.content_log import RoundContents, ShareNoise
from privacy.accounting.paths import Paths
from privacy.accounting.setting import Setting


def chain(sends_first: bool, shares: ShareNoise | None = None) -> RoundContents:
    """Client 0 sends to 1, 1 sends to 2, in one round; each receiver averages what it got."""
    return RoundContents(
        round_number=1,
        clients=np.arange(3),
        sensitivity=np.full(3, 2.0),
        variance=np.full(3, 4.0),
        sums=np.zeros((0, 3)),
        receipts=np.array([[1, 0], [2, 1]]),
        used=np.array([[0, 1], [1, 2]]),
        sends_first=sends_first,
        shares=shares,
    )


@pytest.mark.parametrize(("sends_first", "behind"), [(True, [False, True, False]), (False, [True, True, False])])
def test_a_node_that_averages_before_it_sends_passes_on_what_it_got(sends_first: bool, behind: list[bool]) -> None:
    """Client 2 sees the release of 1, which may depend on that of 0."""
    ancestry = Ancestry(3)
    ancestry.add(chain(sends_first))
    assert ancestry.held(0).seen[2].tolist() == behind


@pytest.mark.parametrize(("sends_first", "mu2"), [(True, 0.0), (False, 1.0)])
def test_the_figure_about_the_first_of_a_chain(sends_first: bool, mu2: float) -> None:
    """mu^2 of client 2 about client 0: nothing, or one release in full."""
    paths = Paths(Setting(clients=3, spread="by_path", delta=1e-5, rounds=1))
    paths.add(chain(sends_first))
    assert paths.learned(None).peers[2, 0] == mu2


def test_common_noise_is_not_followed_through_a_round_that_depends_on_itself() -> None:
    """The joint Gaussian argument needs contributions that are fixed before the round's noise is seen."""
    from scipy import sparse

    nothing = np.zeros(0)
    empty = ShareNoise(
        variance=nothing,
        factor=sparse.csr_matrix((3, 0)),
        repairs=np.zeros((0, 0)),
        spread=nothing,
        known=np.zeros((0, 2), dtype=np.int64),
    )
    accountant = Accountant(Setting(clients=3, spread="by_path", delta=1e-5, rounds=1))
    accountant.add(chain(False, empty))
    assert "within a round" in accountant.views().peer_worst.because


def exchange(rng: np.random.Generator, number: int, nodes: int, degree: int) -> RoundContents:
    """Some clients release; each release reaches some clients, which use most of what they get."""
    clients = np.sort(rng.choice(nodes, rng.integers(2, nodes + 1), replace=False))
    reached = [(node, place) for place in range(len(clients)) for node in rng.choice(nodes, degree, replace=False)]
    receipts = np.array([pair for pair in reached if pair[0] != clients[pair[1]]]).reshape(-1, 2)
    used = [(place, node) for node, place in receipts if rng.random() < 0.8] + list(enumerate(clients.tolist()))
    ones = np.ones(len(clients))
    nothing = np.zeros((0, len(clients)))
    return RoundContents(
        round_number=number,
        clients=clients,
        sensitivity=ones,
        variance=ones,
        sums=nothing,
        receipts=receipts,
        used=np.array(used),
    )


@pytest.mark.parametrize(("degree", "stays_small"), [(3, True), (1, False)])
def test_long_runs_know_what_sets_of_releases_say(degree: int, stays_small: bool) -> None:
    """Against plain sets, round by round, also of rounds that are final by then, whose columns are gone."""
    nodes, rng = 6, np.random.default_rng(5)
    ancestry = Ancestry(nodes)
    models: list[set[tuple[int, int]]] = [set() for _ in range(nodes)]
    seen: list[set[tuple[int, int]]] = [set() for _ in range(nodes)]
    counts: list[int] = []
    for place in range(25):
        contents = exchange(rng, place + 1, nodes, degree if place < 20 else 3)
        carried = [models[client] | {(place, release)} for release, client in enumerate(contents.clients.tolist())]
        before = [set(one) for one in models], [set(one) for one in seen]
        for release, node in contents.used.tolist():
            models[node] |= carried[release]
            if node != contents.clients[release]:
                seen[node] |= carried[release]
        for node, release in contents.receipts.tolist():
            seen[node] |= carried[release]
        counts.append(len(contents.clients))
        changed = ancestry.add(contents)
        new = {
            one
            for now, old in zip((models, seen), before, strict=True)
            for a, b in zip(now, old, strict=True)
            for one in a - b
        }
        assert changed == sorted({round_ for round_, _ in new})
        for round_, count in enumerate(counts):
            held, was = ancestry.held(round_), ancestry.held_before(round_)
            for node in range(nodes):
                told = [[(round_, release) in known[node] for release in range(count)] for known in (models, seen)]
                assert [held.model[node].tolist(), held.seen[node].tolist()] == told
                told = [[(round_, release) in known[node] for release in range(count)] for known in before]
                assert [was.model[node].tolist(), was.seen[node].tolist()] == told
    assert (ancestry._model.shape[1] < 8 * 12) or not stays_small
