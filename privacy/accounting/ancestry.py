"""Ancestry in gossip: which releases stand behind what each node holds and has seen, by any path."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.content_log import Ids, RoundContents
from topologies.edge_arrays import group_starts

Bits = NDArray[np.uint8]
_WORD = 8
_BYTES_AT_ONCE = 1 << 24


class Held(NamedTuple):
    """For each node, the releases that it has seen by any path, and those behind its model."""

    seen: NDArray[Any]
    model: NDArray[Any]


class Ancestry:
    """Bit matrices with one row per node and one bit per release; every round has words of its own.

    A message carries its sender's model from before the round and the sender's fresh release. Training is not
    linear, so what stands behind a model stands behind it in full. Bits are only ever set: a round whose releases have
    reached all nodes and models is final and leaves the matrices, and long runs cost no more a round than short ones.
    """

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._model = self._seen = np.zeros((nodes, 0), dtype=np.uint8)
        self._before = Held(self._seen, self._model)
        self._columns: dict[int, slice] = {}  # by the place of the round; without those that are final
        self._counts: list[int] = []

    def add(self, contents: RoundContents) -> list[int]:
        """Adds a round: its releases, what entered whose model, and what else reached whom.

        Returns the places of the rounds, counted from 0, of which something new has reached a node.
        """
        before = self._widen(len(contents.clients))
        seen_before = self._seen.copy()
        fresh, inside = np.arange(len(contents.clients)), contents.clients < self._nodes
        place = self._columns[len(self._counts) - 1].start + fresh[inside] // 8
        own = np.zeros_like(self._model)
        # By `at`, since a client may have released twice; `unpackbits` reads the highest bit first.
        np.bitwise_or.at(own, (contents.clients[inside], place), (1 << (7 - fresh[inside] % 8)).astype(np.uint8))
        used = _inside(np.column_stack([contents.clients[contents.used[:, 0]], contents.used[:, 1]]), self._nodes)
        came = _inside(
            np.column_stack([contents.clients[contents.receipts[:, 1]], contents.receipts[:, 0]]), self._nodes
        )
        carried = before | own
        _pour(self._model, carried, used)
        # A model that is passed on may hold what its sender received in this very round, and so may a release of a
        # node that averages before it sends: repeated until nothing changes.
        handed = _inside(contents.passed_on, self._nodes)
        while len(handed) or not contents.sends_first:
            known = self._model.copy()
            carried = self._model | own
            _pour(self._model, self._model.copy(), handed)
            _pour(self._model, carried, used)
            if np.array_equal(known, self._model):
                break
        # A node's own release in its own model is nothing that it has seen of another.
        _pour(self._seen, carried, np.concatenate([came, used[used[:, 0] != used[:, 1]]]))
        _pour(self._seen, self._model, handed)
        self._before = Held(seen_before, before)
        changed = ((self._seen != seen_before) | (self._model != before)).any(axis=0)
        return [place for place, columns in self._columns.items() if changed[columns].any()]

    def held(self, place: int) -> Held:
        """Returns [node, release] for the round at this place: what reached each node, and what is in its model."""
        return Held(self._unpacked(self._seen, place), self._unpacked(self._model, place))

    def held_before(self, place: int) -> Held:
        """Returns the same as it was before the last round was added."""
        return Held(self._unpacked(self._before.seen, place), self._unpacked(self._before.model, place))

    def _unpacked(self, bits: NDArray[Any], place: int) -> NDArray[np.bool_]:
        # Final: it has reached all nodes and models.
        if place not in self._columns:
            return np.ones((self._nodes, self._counts[place]), dtype=np.bool_)
        part = bits[:, self._columns[place]]
        return np.unpackbits(part, axis=1, count=self._counts[place]).astype(np.bool_)

    def _widen(self, releases: int) -> Bits:
        """Makes room for a round's releases, in whole words (see `_pour`); returns the models from before."""
        self._drop_final()
        start = self._model.shape[1]
        more = np.zeros((self._nodes, _WORD * -(-max(releases, 1) // (8 * _WORD))), dtype=np.uint8)
        self._model = np.concatenate([self._model, more], axis=1)
        self._seen = np.concatenate([self._seen, more], axis=1)
        self._columns[len(self._counts)] = slice(start, start + more.shape[1])
        self._counts.append(releases)
        return self._model.copy()

    def _drop_final(self) -> None:
        """Removes the columns of rounds about which nothing can change."""
        final = [place for place, columns in self._columns.items() if self._is_final(place, columns)]
        if not final:
            return
        kept = np.ones(self._model.shape[1], dtype=np.bool_)
        for place in final:
            kept[self._columns.pop(place)] = False
        # `compress` returns rows in one piece each, as `_pour` needs them.
        self._model, self._seen = np.compress(kept, self._model, axis=1), np.compress(kept, self._seen, axis=1)
        end = 0
        for place, columns in self._columns.items():
            self._columns[place] = slice(end, end := end + columns.stop - columns.start)

    def _is_final(self, place: int, columns: slice) -> bool:
        full = np.zeros(columns.stop - columns.start, dtype=np.uint8)
        packed = np.packbits(np.ones(self._counts[place], dtype=np.uint8))
        full[: len(packed)] = packed
        return bool((self._model[:, columns] == full).all() and (self._seen[:, columns] == full).all())


def _inside(edges: Ids, nodes: int) -> Ids:
    """Returns the edges between clients: a server in gossip sends nothing that it received."""
    return edges[(edges < nodes).all(axis=1)]


def _pour(into: Bits, carried: Bits, edges: Ids) -> None:
    """Adds to each receiver's row what its senders carry; as many edges at a time as fit the cache."""
    # Sorted by receiver, one reduction joins all that a receiver gets; words of 64 bits are eight times as fast.
    edges = edges[np.argsort(edges[:, 1], kind="stable")]
    step = max(1, _BYTES_AT_ONCE // max(carried.shape[1], 1))
    for start in range(0, len(edges), step):
        senders, receivers = edges[start : start + step].T
        firsts = group_starts(receivers)
        poured = np.bitwise_or.reduceat(carried.view(np.uint64)[senders], firsts, axis=0)
        into[receivers[firsts]] |= poured.view(np.uint8)
