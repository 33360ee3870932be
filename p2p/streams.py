"""One seed to many named generators.

A stream is found by its name, so a new draw in one place moves nothing elsewhere, and no result depends on
the order of events. Names never contain the protocol: on one seed every protocol meets the same world.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_WORD = (1 << 64) - 1


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """The generator called `name`: equal for equal seeds, whoever else draws."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_key(name)))


def draws(seed: int, name: str, *ids: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """One uniform number in (0, 1) for each id, or for each tuple of ids taken across arrays that broadcast.

    Counter-based: the number of an id depends on seed, name and id alone, and a million cost milliseconds. Ids that
    are the same for all are best given first, and as plain numbers.
    """
    plain = next((place for place, part in enumerate(ids) if not isinstance(part, int)), len(ids))
    known = _mixed(seed, name, ids[:plain])
    if plain == len(ids):
        return np.asarray(((known >> 11) + 0.5) * 2.0**-53)
    mixed = np.asarray(known, dtype=np.uint64)
    for part in ids[plain:]:
        mixed = _scramble(mixed ^ _scramble(np.asarray(part).astype(np.uint64)))
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def draw(seed: int, name: str, *ids: int) -> float:
    """The one number that `draws` gives for these ids."""
    return ((_mixed(seed, name, ids) >> 11) + 0.5) * 2.0**-53


def _mixed(seed: int, name: str, ids: Iterable[Any]) -> int:
    """The word that a name and some ids stand for."""
    known = _state(seed, name)
    for part in ids:
        known = _scramble_one(known ^ _scrambled_id(part & _WORD))
    return known


@lru_cache(maxsize=256)
def _state(seed: int, name: str) -> int:
    """The word that a name stands for; asked for at every message, so it is kept."""
    return int(np.random.SeedSequence(seed, spawn_key=_key((name,))).generate_state(1, np.uint64)[0])


def _key(name: tuple[str | int, ...]) -> tuple[int, ...]:
    return tuple(part if isinstance(part, int) else zlib.crc32(part.encode()) for part in name)


def _scramble(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: a bijection on 64-bit words with full avalanche."""
    with np.errstate(over="ignore"):
        words = words + _GOLDEN
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _scramble_one(word: int) -> int:
    """The same for one word: arrays of one cost ten times as much."""
    word = (word + 0x9E3779B97F4A7C15) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


_scrambled_id = lru_cache(maxsize=4096)(_scramble_one)
