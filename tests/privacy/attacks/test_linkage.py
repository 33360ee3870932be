"""Linkability: finds what is there, finds nothing where nothing is, and never looks at the truth."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from p2p.random_streams import stream
from privacy.anonymity.pseudonyms import Pseudonyms
from privacy.attacks import linkage
from privacy.attacks.linkage import (
    METHODS,
    Linkage,
    guess_by_address,
    guesses_by_content,
    linkability,
    sketch,
)
from privacy.attacks.matching import Seen, as_sent, cosines_by_preparation
from privacy.attacks.tracks import link_tracks

Round = tuple[list[int], Seen]
NONE = np.zeros(0)


def play(rounds: int, own: float, rehash: str = "every_round", clients: int = 40, size: int = 64) -> list[Round]:
    """Rounds of 30 random clients; `own` is the share of a vector that is the client's own in every round."""
    pseudonyms = Pseudonyms(1, rehash)  # type: ignore[arg-type]
    tastes = stream(2, "tastes").standard_normal((clients, size))
    seen: list[Round] = []
    for node in range(clients):
        pseudonyms.register(node)
    for round in range(rounds):
        rng = stream(3, "round", round)
        members = rng.permutation(clients)[:30].tolist()
        vectors = own * tastes[members] + (1 - own) * rng.standard_normal((30, size))
        addresses = list(pseudonyms.open_round(round, members).values())
        seen.append((members, Seen(addresses, vectors.astype(np.float32), np.ones(30))))
    return seen


def test_alike_vectors_are_linked() -> None:
    """A client that sends nearly the same twice is found every time; new addresses do not help it."""
    rates = linkability(play(4, own=0.9))
    found = {"address": 0.0, "content": 1.0, "chance": pytest.approx(1 / 30)}
    assert rates == {**found, "content_at_least": 1.0, "content_by": "cosine"}


def test_independent_vectors_are_not() -> None:
    """Pure noise is linked about as often as by chance."""
    rates = linkability(play(40, own=0.0))
    assert rates["content"] == pytest.approx(1 / 30, abs=0.025)
    assert rates["content_at_least"] == pytest.approx(1 / 30, abs=0.035)


def test_kept_addresses_link_all() -> None:
    """`rehash: never` links every returning client, whatever it sends."""
    assert linkability(play(4, own=0.0, rehash="never"))["address"] == 1.0


def test_the_attack_does_not_see_identities() -> None:
    """The guessing functions take what was seen: addresses, vectors and arrival times only."""
    for guess in (guess_by_address, guesses_by_content):
        given = inspect.signature(guess).parameters.values()
        assert [p.annotation for p in given if p.name != "threads"] == ["Seen", "Seen"]
    assert Seen._fields == ("addresses", "vectors", "times_s")


def test_hand_made_case() -> None:
    """Two of three return; one is recognised by direction, the other is confused with the one who left."""
    before = ([1, 2, 3], Seen([b"a", b"b", b"c"], np.eye(3, dtype=np.float32), np.ones(3)))
    vectors = np.array([[0, 5, 0], [0, 0, 1], [0, 0.1, 1]], np.float32)
    rates = linkability([before, ([2, 9, 1], Seen([b"b", b"x", b"y"], vectors, np.ones(3)))])
    assert {name: rates[name] for name in ("address", "content")} == {"address": 0.5, "content": 0.5}
    assert rates["chance"] == pytest.approx(1 / 3)
    assert rates["content_at_least"] >= 0.5


def test_no_client_returns() -> None:
    """Without returning clients there is no rate, and an unseen round breaks the chain."""
    one, two = play(2, own=0.9)
    nothing: Round = ([], Seen([], np.zeros((0, 64), np.float32), NONE))
    assert linkability([one]) == linkability([one, nothing, two])
    assert set(linkability([one]).values()) == {None}


def test_broken_vectors_are_survived() -> None:
    """Zero, infinite and undefined rows of a diverged run raise nothing and match nothing."""
    ids, seen = play(1, own=0.9)[0]
    broken = seen.vectors.copy()
    broken[0], broken[1, 0], broken[2, 0], broken[3] = 0.0, np.inf, np.nan, 3e38
    rates = linkability([(ids, seen), (ids, seen._replace(vectors=broken))])
    assert 26 / 30 <= rates["content"] <= 29 / 30
    # One-to-one, the four broken ones are left with four candidates.
    assert 26 / 30 <= rates["content_at_least"] <= 1.0


def test_cosines_are_cosines() -> None:
    """Length does not matter, direction does, and a broken row gives 0."""
    targets = np.array([[3, 0], [-1, 1], [0, 0], [np.nan, 1]], np.float32)
    candidates = np.array([[2, 0], [5, 5], [np.inf, 0]], np.float32)
    half = np.sqrt(0.5)
    expected = [[1, half, 0], [-half, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert cosines_by_preparation(targets, candidates, [as_sent])[0] == pytest.approx(np.array(expected), abs=1e-6)


def test_observed_rows_may_be_overwritten() -> None:
    """The observer remembers what it saw, not where it saw it."""
    (ids, seen), observer = play(1, own=0.9)[0], Linkage()
    observer.observe(ids, seen)
    again = seen.vectors.copy()
    seen.vectors[:] = 0.0
    observer.observe(ids, seen._replace(vectors=again))
    assert observer.rates()["content"] == 1.0


def test_sketches_keep_inner_products() -> None:
    """A sketch is far smaller, and its cosines are off by about 1/sqrt(dimensions)."""
    vectors = stream(4, "vectors").standard_normal((20, 5_000)).astype(np.float32)
    small = sketch(vectors, 512)
    assert small.shape == (20, 512)
    sketched, whole = (cosines_by_preparation(rows, rows, [as_sent])[0] for rows in (small, vectors))
    errors = sketched - whole
    assert np.abs(errors).max() < 5 / np.sqrt(512)


def test_large_rounds_are_sketched_and_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limits the answer stays: like is still linked to like, over fewer targets."""
    monkeypatch.setattr(linkage, "EXACT_UP_TO", 100)
    monkeypatch.setattr(linkage, "TARGETS_PER_ROUND", 7)
    observer = Linkage()
    for seen in play(3, own=0.9, size=3000):
        observer.observe(*seen)
    assert 0 < observer._returning <= 14
    assert observer.rates()["content"] == 1.0


def common_direction(
    noise: float, common: float, clients: int = 70, rounds: int = 6, jitter: float = 0.05
) -> list[Round]:
    """Rounds of 70 clients with own parts of length 0.15, a common part that changes, noise, and stable speeds."""
    rng = np.random.default_rng(1)
    own = 0.15 * rng.standard_normal((clients, 5000)) / np.sqrt(5000)
    speed = np.exp(0.4 * rng.standard_normal(clients))
    seen: list[Round] = []
    for _ in range(rounds):
        members = rng.permutation(clients)[:70]
        shared = common * rng.standard_normal(5000) / np.sqrt(5000)
        vectors = own[members] + shared + noise * rng.standard_normal((70, 5000))
        times_s = 10.0 * speed[members] * np.exp(jitter * rng.standard_normal(70))
        seen.append((members.tolist(), Seen([bytes([n]) for n in range(70)], vectors.astype(np.float32), times_s)))
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "common", "plain"), [(0.006, 1, 0.74), (0.008, 1, 0.49), (0.004, 3, 0.24)])
def test_a_common_direction_hides_clients_from_cosines_only(noise: float, common: float, plain: float) -> None:
    """Shares linked by nearest cosine as measured independently for this set-up; without the common part all are."""
    rates = linkability(common_direction(noise, common))
    assert rates["content"] == pytest.approx(plain, abs=0.1)
    assert rates["content_at_least"] >= 0.99


@pytest.mark.slow
def test_arrival_times_link_more_than_contents_alone() -> None:
    """Where contents drown in noise, stable speeds add to them."""
    stable = linkability(common_direction(0.015, 1))
    assert stable["content_by"] == METHODS[-1]
    assert stable["content_at_least"] > 1.3 * stable["content"]
    random = linkability(common_direction(0.015, 1, jitter=3.0))
    assert random["content_at_least"] < stable["content_at_least"]


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "low", "high"), [(0.0, 1.0, 1.0), (0.008, 0.98, 1.0), (1.0, 0.0, 0.1)])
def test_chains_bridge_gaps_without_noise_and_fail_with_much(noise: float, low: float, high: float) -> None:
    """100 clients, 70 of them in a round: every message is put on its client's track, or about none is."""
    seen = common_direction(noise, 1, clients=100, rounds=8, jitter=3.0)
    tracks = link_tracks([one for _, one in seen], 100)
    last: dict[int, int] = {}
    right, asked = 0, 0
    for (members, _), found in zip(seen, tracks, strict=True):
        assert len(set(found.tolist())) == len(found)
        assert found.max() < 100
        known = set(last.values())
        asked += sum(client in known for client in members)
        right += sum(last.get(track) == client for client, track in zip(members, found.tolist(), strict=True))
        last |= dict(zip(found.tolist(), members, strict=True))
    assert low <= right / asked <= high
