"""Linkability: the success of an observer in linking messages of one client across two consecutive rounds.

For each message of the later round the observer guesses the earlier message of the same client: by equal addresses, by
the most similar vector, and by stronger attacks (`METHODS`). It sees addresses, vectors and arrival times. True
identities are used only to score the guesses, in `Linkage`. A rate is a lower bound on what can be linked: other
attacks may link more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.random_streams import stream
from privacy.attacks.matching import (
    Guess,
    Seen,
    as_sent,
    cosines_by_preparation,
    log_ratios,
    matched,
    nearest,
    timed,
    whitened,
)

EXACT_UP_TO = 2**25
"""Largest number of floats in a round's matrix for exact cosines; larger ones are sketched (see `sketch`)."""
SKETCH_DIMENSIONS = 1024
TARGETS_PER_ROUND = 512
"""Target messages per round, drawn at random if there are more; all earlier messages are candidates."""
MATCHED_UP_TO = 2048
"""Largest number of candidates for one-to-one matching, whose time grows with the square of it."""
METHODS = ("cosine", "whitened", "whitened, matched", "whitened, matched, arrival times")
"""Attacks on contents, in order of strength; the last one uses arrival times as well."""
# A constant: the attack must not depend on the run's seed, which would reveal the addresses.
_OBSERVER_SEED = 0


def guess_by_address(before: Seen, after: Seen) -> Guess:
    """Returns for each message of `after` the row of `before` with an equal address, or -1."""
    rows = {address: row for row, address in enumerate(before.addresses)}
    return np.array([rows.get(address, -1) for address in after.addresses], dtype=np.int64)


def guesses_by_content(before: Seen, after: Seen, threads: int = 1) -> list[Guess]:
    """Returns for each message of `after` a row of `before`, by each of `METHODS`.

    There are fewer guesses if there are too many candidates to match.
    """
    vectors = after.vectors, before.vectors
    plain, content = cosines_by_preparation(*vectors, [as_sent, whitened], threads)
    guesses = [nearest(plain), nearest(content)]
    if max(content.shape) <= MATCHED_UP_TO:
        ratios = log_ratios(content)
        guesses += [matched(ratios), matched(timed(ratios, after.times_s, before.times_s))]
    return guesses


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

    Args:
        threads: threads that compare vectors; results do not depend on it.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._before: tuple[NDArray[np.int64], Seen] | None = None
        self._sketches: bool | None = None
        self._round = 0
        self._returning = 0
        self._hits = np.zeros(2 + len(METHODS))

    def observe(self, true_ids: Sequence[int] | NDArray[np.int64], seen: Seen) -> None:
        """Adds the observations of the next round; `true_ids` score the guesses and are hidden from the attack."""
        ids = np.asarray(true_ids, dtype=np.int64)
        after = seen._replace(vectors=self._keep(seen.vectors))
        if self._before is not None:
            self._score(*self._before, ids, after)
        self._before = (ids, after)
        self._round += 1

    def rates(self) -> dict[str, Any]:
        """Returns the rates of linking returning clients; None without any.

        `address`, `content` (nearest cosine) and `chance`; `content_at_least`, the best of several attacks on contents
        and arrival times, and `content_by`, its name.
        """
        if not self._returning:
            return dict.fromkeys(("address", "content", "chance", "content_at_least", "content_by"))
        address, chance, *contents = (self._hits / self._returning).tolist()
        best = int(np.argmax(contents))
        found = {"address": address, "content": contents[0], "chance": chance}
        return found | {"content_at_least": contents[best], "content_by": METHODS[best]}

    def state(self) -> dict[str, NDArray[Any]]:
        """Returns the complete state as arrays, from which a resumed run continues."""
        sketches = -1 if self._sketches is None else int(self._sketches)
        state: dict[str, NDArray[Any]] = {
            "counts": np.array([self._round, self._returning, sketches], dtype=np.int64),
            "hits": self._hits.copy(),
        }
        if self._before is not None:
            ids, seen = self._before
            addresses = np.frombuffer(b"".join(seen.addresses), dtype=np.uint8)
            state |= {"ids": ids, "addresses": addresses, "vectors": seen.vectors, "times_s": seen.times_s}
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
            self._before = (ids, Seen(addresses, state["vectors"], state["times_s"]))

    def _keep(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns vectors to keep for the next round: sketches of large ones, copies of writable ones."""
        # Decided once, by the first non-empty round: sketches and full vectors cannot be compared.
        if self._sketches is None and len(vectors):
            self._sketches = vectors.size > EXACT_UP_TO
        if self._sketches:
            return sketch(vectors)
        return np.array(vectors, dtype=np.float32) if vectors.flags.writeable else vectors

    def _score(self, ids_before: NDArray[np.int64], before: Seen, ids: NDArray[np.int64], after: Seen) -> None:
        if not len(ids_before) or not len(ids):
            return
        chosen, targets = self._choose_targets(after)
        truth = ids[chosen]
        returning = np.isin(truth, ids_before)
        self._returning += int(returning.sum())
        self._hits[1] += returning.sum() / len(ids_before)  # expected hits of a uniform guess
        guesses = guesses_by_content(before, targets, self._threads)
        for place, rows in zip((0, 2, 3, 4, 5), [guess_by_address(before, targets), *guesses], strict=False):
            # Row -1 (no guess) indexes the last id; `rows >= 0` excludes it.
            self._hits[place] += np.sum(returning & (rows >= 0) & (ids_before[rows] == truth))

    def _choose_targets(self, after: Seen) -> tuple[NDArray[np.int64], Seen]:
        """Returns the rows and observations of the target messages."""
        # Drawn regardless of who returns: a choice by identity would reveal that to the attack.
        rows = np.arange(len(after.addresses))
        if len(rows) <= TARGETS_PER_ROUND:
            return rows, after
        rng = stream(_OBSERVER_SEED, "linkage-targets", self._round)
        rows = rng.choice(rows, TARGETS_PER_ROUND, replace=False)
        addresses = [after.addresses[row] for row in rows.tolist()]
        return rows, Seen(addresses, after.vectors[rows], after.times_s[rows])


def linkability(rounds: Iterable[tuple[Sequence[int], Seen]]) -> dict[str, Any]:
    """Returns linkage rates over consecutive rounds, each the true ids and what one observer saw."""
    linkage = Linkage()
    for true_ids, seen in rounds:
        linkage.observe(true_ids, seen)
    return linkage.rates()
