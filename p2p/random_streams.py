"""Named random generators derived from one seed.

A stream is identified by its name. A new draw in one place therefore changes no draws elsewhere, and no result depends
on the order of events. Names never contain the protocol: with one seed, all protocols run in the same environment.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_WORD = (1 << 64) - 1
# Constants of NumPy's SeedSequence, which is O'Neill's seed_seq_fe.
_HALF = (1 << 32) - 1
_HALF_WORD, _SHIFT = np.uint64(_HALF), np.uint64(16)
_HASH_START, _HASH_STEP = 0x43B0D7E5, 0x931E8875
_DRAW_START, _DRAW_STEP = 0x8B51F9DD, 0x58F38DED
_MIX_LEFT, _MIX_RIGHT = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """Returns the generator called `name`; its draws depend on the seed and the name only."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_key(name)))


def streams(seed: int, names: Sequence[tuple[str | int, ...]]) -> list[np.random.Generator]:
    """Returns `stream` for many names of one shape, at a fifth of the cost.

    Repeats NumPy's computation of a generator's state for all names at once; a test compares the two.
    """
    keys = np.array([_key(name) for name in names])
    # NumPy splits numbers above 32 bits into several words, which the vectorised form does not.
    if not len(keys) or keys.min() < 0 or keys.max() > _HALF or not 0 <= seed <= _HALF:
        return [stream(seed, *name) for name in names]
    words = np.ascontiguousarray(_seed_words(seed, keys.astype(np.uint64)).T)
    # Declared here and not by inheritance, so that reading a scenario does not load `numpy.random`.
    np.random.bit_generator.ISeedSequence.register(_Words)
    return [np.random.Generator(np.random.PCG64(cast(Any, _Words(row)))) for row in words]


class _Words:
    """A seed sequence with precomputed state words."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        return self._words


def _seed_words(seed: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns the four state words of `SeedSequence(seed, spawn_key=key)` for each row of keys."""
    # With a spawn key, NumPy pads the seed to the pool's four words before it appends the key.
    entropy = [np.full(len(keys), word, dtype=np.uint64) for word in (seed, 0, 0, 0)] + list(keys.T)
    # The constant changes with every word hashed, so the order of the calls below is that of NumPy.
    constant = _HASH_START

    def hashed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
        nonlocal constant
        value = value ^ np.uint64(constant)
        constant = constant * _HASH_STEP & _HALF
        value = value * np.uint64(constant) & _HALF_WORD
        return value ^ value >> _SHIFT

    def mixed(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
        value = left * _MIX_LEFT - right * _MIX_RIGHT & _HALF_WORD
        return value ^ value >> _SHIFT

    with np.errstate(over="ignore"):
        pool = [hashed(word) for word in entropy[:4]]
        for source in range(4):
            for target in range(4):
                if source != target:
                    pool[target] = mixed(pool[target], hashed(pool[source]))
        for word in entropy[4:]:
            pool = [mixed(one, hashed(word)) for one in pool]
        return _drawn(pool)


def _drawn(pool: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Generates eight 32-bit words from the pool and joins them to four 64-bit words."""
    constant, halves = _DRAW_START, []
    for word in (*pool, *pool):
        value = word ^ np.uint64(constant)
        constant = constant * _DRAW_STEP & _HALF
        value = value * np.uint64(constant) & _HALF_WORD
        halves.append(value ^ value >> _SHIFT)
    return np.array([low | high << np.uint64(32) for low, high in zip(halves[::2], halves[1::2], strict=True)])


def draws(seed: int, name: str, *ids: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """Returns a uniform number in (0, 1) for each id, or for each tuple of ids across arrays that broadcast.

    Counter-based: the number of an id depends on seed, name and id only, and a million take milliseconds. Ids common
    to all tuples are best given first, as plain integers.
    """
    # Ids in front that are plain numbers are hashed once for all tuples.
    plain = next((place for place, part in enumerate(ids) if not isinstance(part, int)), len(ids))
    known = _mixed(seed, name, ids[:plain])
    # The top 53 bits plus one half: the open interval, and every value an exact float64.
    if plain == len(ids):
        return np.asarray(((known >> 11) + 0.5) * 2.0**-53)
    mixed = np.asarray(known, dtype=np.uint64)
    # Negative ids wrap to the same 64-bit words here as in `_mixed`.
    for part in ids[plain:]:
        mixed = _scramble(mixed ^ _scramble(np.asarray(part).astype(np.uint64)))
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def draw(seed: int, name: str, *ids: int) -> float:
    """Returns the number that `draws` gives for these ids."""
    return ((_mixed(seed, name, ids) >> 11) + 0.5) * 2.0**-53


def _mixed(seed: int, name: str, ids: Iterable[Any]) -> int:
    """Returns the 64-bit hash of a seed, a name and ids."""
    known = name_word(seed, name)
    for part in ids:
        known = _scramble_one(known ^ _scrambled_id(part & _WORD))
    return known


@lru_cache(maxsize=256)
def name_word(seed: int, name: str) -> int:
    """Returns the 64-bit hash of a seed and a name; cached, since every message needs one."""
    return int(np.random.SeedSequence(seed, spawn_key=_key((name,))).generate_state(1, np.uint64)[0])


def _key(name: tuple[str | int, ...]) -> tuple[int, ...]:
    # CRC-32 is equal in every process, unlike `hash`, which Python randomises for strings.
    return tuple(part if isinstance(part, int) else zlib.crc32(part.encode()) for part in name)


def _scramble(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Applies the finaliser of SplitMix64: a bijection on 64-bit words with full avalanche."""
    with np.errstate(over="ignore"):
        words = words + _GOLDEN
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _scramble_one(word: int) -> int:
    """Returns `_scramble` of one word, in plain integers: an array of one element takes ten times as long."""
    word = (word + 0x9E3779B97F4A7C15) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


_scrambled_id = lru_cache(maxsize=4096)(_scramble_one)
