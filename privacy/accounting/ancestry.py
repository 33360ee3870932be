"""Ancestry in gossip: which releases stand behind what each node holds and has seen, by any path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.content_log import Ids, RoundContents
from topologies.edge_arrays import distinct, group_starts

Bits = NDArray[np.uint8]
_WORD = 8
_BYTES_AT_ONCE = 1 << 24
# Bits that are unpacked together, a byte each; what is found of them should stay in the cache.
_BITS_AT_ONCE = 1 << 18
# An edge is one number, its receiver above its sender.
_ID_BITS, _ID_MASK = 32, (1 << 32) - 1


class Held(NamedTuple):
    """For each node, the releases that it has seen by any path, and those behind its model."""

    seen: NDArray[Any]
    model: NDArray[Any]


class SetBits(NamedTuple):
    """Bits that are set in a matrix, in order of rows, then bits."""

    rows: Ids
    bits: Ids


class Ancestry:
    """Bit matrices with one row per node and one bit per release; every round has words of its own.

    A message carries its sender's model from before the round and the sender's fresh release. Training is not
    linear, so what stands behind a model stands behind it in full. Bits are only ever set: a round whose releases have
    reached all nodes and models is final and leaves the matrices, and long runs cost no more a round than short ones.
    """

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._full = np.zeros(0, dtype=np.uint8)  # a row with the bits of all releases
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
        used = self._edges(contents.clients[contents.used[:, 0]], contents.used[:, 1])
        came = self._edges(contents.clients[contents.receipts[:, 1]], contents.receipts[:, 0])
        carried = before | own
        _pour(self._model, carried, used)
        # A model that is passed on may hold what its sender received in this very round, and so may a release of a
        # node that averages before it sends: repeated until nothing changes.
        handed = self._edges(*contents.passed_on.T)
        while len(handed) or not contents.sends_first:
            known = self._model.copy()
            carried = self._model | own
            _pour(self._model, self._model.copy(), handed)
            _pour(self._model, carried, used)
            if np.array_equal(known, self._model):
                break
        # A node's own release in its own model is nothing that it has seen of another.
        others = used[used >> _ID_BITS != used & _ID_MASK]
        _pour(self._seen, carried, np.concatenate([came, others]))
        _pour(self._seen, self._model, handed)
        self._before = Held(seen_before, before)
        changed = ((self._seen != seen_before) | (self._model != before)).any(axis=0)
        return [place for place, columns in self._columns.items() if changed[columns].any()]

    def fresh_seen(self, places: Sequence[int]) -> Iterator[SetBits]:
        """Yields what each node, a row each, has seen of these rounds since the last round was added."""
        return _set_bits(self._seen & ~self._before.seen & self._words_of(places))

    def fresh_in_models(self, places: Sequence[int]) -> Iterator[SetBits]:
        """Yields what has come into each node's model of these rounds since the last round was added."""
        return _set_bits(self._model & ~self._before.model & self._words_of(places))

    def fresh_to(self, team: Sequence[int], places: Sequence[int]) -> Iterator[SetBits]:
        """Yields, in one row, what a team has seen of these rounds and none of it had seen before the last round."""
        now, before = (np.bitwise_or.reduce(bits[team], axis=0) for bits in (self._seen, self._before.seen))
        return _set_bits((now & ~before & self._words_of(places))[None])

    def by_bit(self, values: Mapping[int, NDArray[Any]], kind: type) -> NDArray[Any]:
        """Returns the value of each bit's release, given those of rounds by place; 0 for other rounds."""
        found: NDArray[Any] = np.zeros(8 * self._model.shape[1], dtype=kind)
        for place, each in values.items():
            first = 8 * self._columns[place].start
            found[first : first + len(each)] = each
        return found

    def held(self, place: int) -> Held:
        """Returns [node, release] for the round at this place: what reached each node, and what is in its model."""
        return Held(self._unpacked(self._seen, place), self._unpacked(self._model, place))

    def held_before(self, place: int) -> Held:
        """Returns the same as it was before the last round was added."""
        return Held(self._unpacked(self._before.seen, place), self._unpacked(self._before.model, place))

    def _words_of(self, places: Sequence[int]) -> Bits:
        """Returns a row in which all bits of these rounds are set."""
        found = np.zeros(self._model.shape[1], dtype=np.uint8)
        for place in places:
            found[self._columns[place]] = 255
        return found

    def _edges(self, senders: Ids, receivers: Ids) -> Ids:
        """Returns edges between clients, each as one number; a server in gossip sends nothing that it received."""
        # Plain numbers are sorted much faster than rows.
        return (receivers << _ID_BITS | senders)[(senders < self._nodes) & (receivers < self._nodes)]

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
        full = np.packbits(np.ones(releases, dtype=np.bool_))
        self._full = np.concatenate([self._full, full, np.zeros(more.shape[1] - len(full), dtype=np.uint8)])
        self._columns[len(self._counts)] = slice(start, start + more.shape[1])
        self._counts.append(releases)
        return self._model.copy()

    def _drop_final(self) -> None:
        """Removes the columns of rounds about which nothing can change."""
        done = ((self._model == self._full) & (self._seen == self._full)).all(axis=0)
        final = [place for place, columns in self._columns.items() if done[columns].all()]
        if not final:
            return
        kept = np.ones(self._model.shape[1], dtype=np.bool_)
        for place in final:
            kept[self._columns.pop(place)] = False
        # `compress` returns rows in one piece each, as `_pour` needs them.
        self._model, self._seen = np.compress(kept, self._model, axis=1), np.compress(kept, self._seen, axis=1)
        self._full = self._full[kept]
        end = 0
        for place, columns in self._columns.items():
            self._columns[place] = slice(end, end := end + columns.stop - columns.start)


def _set_bits(bits: Bits) -> Iterator[SetBits]:
    """Yields the bits that are set, some rows at a time."""
    step = max(1, _BITS_AT_ONCE // max(8 * bits.shape[1], 1))
    for start in range(0, len(bits), step):
        rows, places = np.nonzero(np.unpackbits(bits[start : start + step], axis=1).view(np.bool_))
        yield SetBits(start + rows, places)


def _pour(into: Bits, carried: Bits, edges: Ids) -> None:
    """Adds to each receiver's row what its senders carry; as many edges at a time as fit the cache."""
    # Sorted by receiver, one reduction joins all that a receiver gets; words of 64 bits are eight times as fast.
    edges = distinct(edges)
    step = max(1, _BYTES_AT_ONCE // max(carried.shape[1], 1))
    for start in range(0, len(edges), step):
        part = edges[start : start + step]
        receivers, senders = part >> _ID_BITS, part & _ID_MASK
        firsts = group_starts(receivers)
        poured = np.bitwise_or.reduceat(carried.view(np.uint64)[senders], firsts, axis=0)
        into[receivers[firsts]] |= poured.view(np.uint8)
