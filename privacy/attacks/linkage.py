"""Linkability: the success of an observer in linking messages of one client across two consecutive rounds.

The attack makes two guesses for each message of the later round: the earlier message with an equal address, and the
earlier message with the most similar vector (largest cosine). It sees a `Sight`: addresses and vectors. True
identities are used only to score the guesses, in `Linkage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.random_streams import stream

EXACT_UP_TO = 2**25
"""Largest number of floats in a round's matrix for exact cosines; larger ones are sketched (see `sketch`)."""
SKETCH_DIMENSIONS = 1024
TARGETS_PER_ROUND = 512
"""Target messages per round, drawn at random if there are more; all earlier messages are candidates."""
# A constant: the attack must not depend on the run's seed, which would reveal the addresses.
_OBSERVER_SEED = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """One observer's view of one round: row i of `vectors` [k, d] came from `addresses[i]`."""

    addresses: Sequence[bytes]
    vectors: NDArray[np.float32]


def guess_by_address(before: Observation, after: Observation) -> NDArray[np.int64]:
    """Returns for each message of `after` the row of `before` with an equal address, or -1."""
    rows = {address: row for row, address in enumerate(before.addresses)}
    return np.array([rows.get(address, -1) for address in after.addresses], dtype=np.int64)


def guess_by_content(before: Observation, after: Observation) -> NDArray[np.int64]:
    """Returns for each message of `after` the row of `before` with the largest cosine."""
    nearest: NDArray[np.int64] = np.argmax(cosines(after.vectors, before.vectors), axis=1)
    return nearest


def cosines(targets: NDArray[np.float32], candidates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the cosine of each target with each candidate; 0 for rows that are zero or not finite."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scale = np.outer(1 / _lengths(targets), 1 / _lengths(candidates))
        found = (targets @ candidates.T) * scale
    return np.where(np.isfinite(found), found, np.float32(0))


def _lengths(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the L2 norm of each row."""
    # `einsum` needs no temporary matrix, whose allocation would take longer than the sums.
    squares: NDArray[np.float32] = np.einsum("ij,ij->i", vectors, vectors)
    return np.sqrt(squares)


def sketch(vectors: NDArray[np.float32], dimensions: int = SKETCH_DIMENSIONS) -> NDArray[np.float32]:
    """Returns a random projection that preserves inner products in expectation.

    The error is about |x||y|/sqrt(dimensions). Each coordinate is added, with a random sign, to the sum at its position
    modulo `dimensions` (a count sketch with fixed positions), in one pass and without a projection matrix. The error
    blurs close decisions, so linkage rates by sketches are slightly too low.
    """
    total = np.zeros((len(vectors), dimensions), dtype=np.float32)
    for block, start in enumerate(range(0, vectors.shape[1], dimensions)):
        part = vectors[:, start : start + dimensions]
        bits = stream(_OBSERVER_SEED, "linkage", block).integers(0, 2, size=part.shape[1], dtype=np.int8)
        with np.errstate(over="ignore", invalid="ignore"):
            total[:, : part.shape[1]] += part * (2 * bits - 1).astype(np.float32)
    return total


class Linkage:
    """Scores one observer round by round; keeps only the previous round.

    Every round must be given in order. A round without observations is given as empty and interrupts the linking.
    """

    def __init__(self) -> None:
        self._before: tuple[NDArray[np.int64], Observation] | None = None
        self._sketches: bool | None = None
        self._round = 0
        self._returning = 0
        self._hits = np.zeros(3)

    def observe(
        self, true_ids: Sequence[int] | NDArray[np.int64], addresses: Sequence[bytes], vectors: NDArray[np.float32]
    ) -> None:
        """Adds the observations of the next round; `true_ids` score the guesses and are hidden from the attack."""
        ids = np.asarray(true_ids, dtype=np.int64)
        after = Observation(addresses, self._keep(vectors))
        if self._before is not None:
            self._score(*self._before, ids, after)
        self._before = (ids, after)
        self._round += 1

    def rates(self) -> dict[str, float | None]:
        """Returns the rates of linking returning clients by `address`, `content` and `chance`; None without any."""
        if not self._returning:
            return {"address": None, "content": None, "chance": None}
        shares = (self._hits / self._returning).tolist()
        return dict(zip(("address", "content", "chance"), shares, strict=True))

    def state(self) -> dict[str, NDArray[Any]]:
        """Returns the complete state as arrays, from which a resumed run continues."""
        sketches = -1 if self._sketches is None else int(self._sketches)
        state: dict[str, NDArray[Any]] = {
            "counts": np.array([self._round, self._returning, sketches], dtype=np.int64),
            "hits": self._hits.copy(),
        }
        if self._before is not None:
            ids, sight = self._before
            addresses = np.frombuffer(b"".join(sight.addresses), dtype=np.uint8)
            state |= {"ids": ids, "addresses": addresses, "vectors": sight.vectors}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores the result of `state`."""
        self._round, self._returning, sketches = state["counts"].tolist()
        self._sketches = None if sketches < 0 else bool(sketches)
        self._hits = state["hits"].copy()
        if "ids" in state:
            ids, data = state["ids"], state["addresses"].tobytes()
            width = len(data) // max(len(ids), 1)
            addresses = [data[place * width : (place + 1) * width] for place in range(len(ids))]
            self._before = (ids, Observation(addresses, state["vectors"]))

    def _keep(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns vectors to keep for the next round: sketches of large ones, copies of writable ones."""
        # Decided once, by the first non-empty round: sketches and full vectors cannot be compared.
        if self._sketches is None and len(vectors):
            self._sketches = vectors.size > EXACT_UP_TO
        if self._sketches:
            return sketch(vectors)
        return np.array(vectors, dtype=np.float32) if vectors.flags.writeable else vectors

    def _score(
        self, ids_before: NDArray[np.int64], before: Observation, ids: NDArray[np.int64], after: Observation
    ) -> None:
        if not len(ids_before) or not len(ids):
            return
        chosen, targets = self._choose_targets(after)
        truth = ids[chosen]
        returning = np.isin(truth, ids_before)
        self._returning += int(returning.sum())
        for place, guess in enumerate((guess_by_address, guess_by_content)):
            rows = guess(before, targets)
            # Row -1 (no guess) indexes the last id; `rows >= 0` excludes it.
            self._hits[place] += np.sum(returning & (rows >= 0) & (ids_before[rows] == truth))
        self._hits[2] += returning.sum() / len(ids_before)  # expected hits of a uniform guess

    def _choose_targets(self, after: Observation) -> tuple[NDArray[np.int64], Observation]:
        """Returns the rows and observations of the target messages."""
        # Drawn regardless of who returns: a choice by identity would reveal that to the attack.
        rows = np.arange(len(after.addresses))
        if len(rows) <= TARGETS_PER_ROUND:
            return rows, after
        rng = stream(_OBSERVER_SEED, "linkage-targets", self._round)
        rows = rng.choice(rows, TARGETS_PER_ROUND, replace=False)
        return rows, Observation([after.addresses[row] for row in rows.tolist()], after.vectors[rows])


def linkability(
    rounds: Iterable[tuple[Sequence[int], Sequence[bytes], NDArray[np.float32]]],
) -> dict[str, float | None]:
    """Returns linkage rates over consecutive rounds, each `(true ids, addresses, vectors [k, d])` of one observer."""
    linkage = Linkage()
    for true_ids, addresses, vectors in rounds:
        linkage.observe(true_ids, addresses, vectors)
    return linkage.rates()
