"""Linkability: finds what is there, finds nothing where nothing is, and never looks at the truth."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.typing import NDArray

from p2p.random_streams import stream
from privacy.anonymity.pseudonyms import Pseudonyms
from privacy.attacks import linkage
from privacy.attacks.linkage import (
    Linkage,
    Observation,
    cosines,
    guess_by_address,
    guess_by_content,
    linkability,
    sketch,
)

Round = tuple[list[int], list[bytes], NDArray[np.float32]]


def play(rounds: int, own: float, rehash: str = "every_round", clients: int = 40, size: int = 64) -> list[Round]:
    """Rounds of 30 random clients; `own` is the share of a vector that is the client's own in every round."""
    book = Pseudonyms(1, rehash)  # type: ignore[arg-type]
    tastes = stream(2, "tastes").standard_normal((clients, size))
    seen: list[Round] = []
    for node in range(clients):
        book.register(node)
    for round in range(rounds):
        rng = stream(3, "round", round)
        members = rng.permutation(clients)[:30].tolist()
        vectors = own * tastes[members] + (1 - own) * rng.standard_normal((30, size))
        addresses = list(book.open_round(round, members).values())
        seen.append((members, addresses, vectors.astype(np.float32)))
    return seen


def test_alike_vectors_are_linked() -> None:
    """A client that sends nearly the same twice is found every time; new addresses do not help it."""
    rates = linkability(play(4, own=0.9))
    assert rates == {"address": 0.0, "content": 1.0, "chance": pytest.approx(1 / 30)}


def test_independent_vectors_are_not() -> None:
    """Pure noise is linked about as often as by chance."""
    rates = linkability(play(40, own=0.0))
    assert rates["content"] == pytest.approx(1 / 30, abs=0.025)


def test_kept_addresses_link_everybody() -> None:
    """`rehash: never` links every returning client, whatever it sends."""
    assert linkability(play(4, own=0.0, rehash="never"))["address"] == 1.0


def test_the_attack_does_not_see_identities() -> None:
    """The guessing functions take sights, and a sight holds addresses and vectors only."""
    for guess in (guess_by_address, guess_by_content):
        assert [p.annotation for p in inspect.signature(guess).parameters.values()] == ["Observation", "Observation"]
    assert list(Observation.__slots__) == ["addresses", "vectors"]


def test_hand_made_case() -> None:
    """Two of three return; one is recognised by direction, the other is confused with the one who left."""
    before = ([1, 2, 3], [b"a", b"b", b"c"], np.eye(3, dtype=np.float32))
    after = ([2, 9, 1], [b"b", b"x", b"y"], np.array([[0, 5, 0], [0, 0, 1], [0, 0.1, 1]], np.float32))
    assert linkability([before, after]) == {"address": 0.5, "content": 0.5, "chance": pytest.approx(1 / 3)}


def test_nobody_returns() -> None:
    """Without returning clients there is no rate, and an unseen round breaks the chain."""
    one, two = play(2, own=0.9)
    nothing: Round = ([], [], np.zeros((0, 64), np.float32))
    assert linkability([one]) == linkability([one, nothing, two]) == dict.fromkeys(("address", "content", "chance"))


def test_broken_vectors_are_survived() -> None:
    """Zero, infinite and undefined rows of a diverged run raise nothing and match nothing."""
    ids, addresses, vectors = play(1, own=0.9)[0]
    broken = vectors.copy()
    broken[0], broken[1, 0], broken[2, 0], broken[3] = 0.0, np.inf, np.nan, 3e38
    content = linkability([(ids, addresses, vectors), (ids, addresses, broken)])["content"]
    assert content is not None
    assert 26 / 30 <= content <= 29 / 30


def test_cosines_are_cosines() -> None:
    """Length does not matter, direction does, and a broken row gives 0."""
    targets = np.array([[3, 0], [-1, 1], [0, 0], [np.nan, 1]], np.float32)
    candidates = np.array([[2, 0], [5, 5], [np.inf, 0]], np.float32)
    half = np.sqrt(0.5)
    expected = [[1, half, 0], [-half, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert cosines(targets, candidates) == pytest.approx(np.array(expected), abs=1e-6)


def test_observed_rows_may_be_overwritten() -> None:
    """The observer remembers what it saw, not where it saw it."""
    (ids, addresses, vectors), observer = play(1, own=0.9)[0], Linkage()
    observer.observe(ids, addresses, vectors)
    again = vectors.copy()
    vectors[:] = 0.0
    observer.observe(ids, addresses, again)
    assert observer.rates()["content"] == 1.0


def test_sketches_keep_inner_products() -> None:
    """A sketch is far smaller, and its cosines are off by about 1/sqrt(dimensions)."""
    vectors = stream(4, "vectors").standard_normal((20, 5_000)).astype(np.float32)
    small = sketch(vectors, 512)
    assert small.shape == (20, 512)
    errors = cosines(small, small) - cosines(vectors, vectors)
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
