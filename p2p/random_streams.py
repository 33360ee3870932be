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

Words = NDArray[np.uint64]
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
    """Returns `stream` for many names of one shape, at a seventh of the cost.

    Repeats NumPy's computation of a generator's state for all names at once; a test compares the two.
    """
    keys = np.array([_key(name) for name in names])
    # NumPy splits numbers above 32 bits into several words, which the vectorised form does not.
    if not len(keys) or keys.min() < 0 or keys.max() > _HALF or not 0 <= seed <= _HALF:
        return [stream(seed, *name) for name in names]
    words = np.ascontiguousarray(_seed_words(seed, keys.astype(np.uint64)).T)
    # Declared here and not by inheritance, so that reading a scenario does not load `numpy.random`.
    np.random.bit_generator.ISeedSequence.register(_StateWords)
    return [np.random.Generator(np.random.PCG64(cast(Any, _StateWords(row)))) for row in words]


class _StateWords:
    """A seed sequence with precomputed state words."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        return self._words


def _seed_words(seed: int, keys: Words) -> Words:
    """Returns the four state words of `SeedSequence(seed, spawn_key=key)` for each row of keys."""
    pool, columns = _seed_pool(seed), keys.T
    # Each word of a key is hashed once for each word of the pool.
    hashed = _hashed(np.repeat(columns, 4, axis=0), _constants(_HASH_START, _HASH_STEP, 16 + 4 * len(columns))[16:])
    for words in hashed.reshape(len(columns), 4, -1):
        pool = _mixed_words(pool, words)
    # Eight words of 32 bits are drawn from the pool and joined to four of 64 bits.
    halves = _hashed(np.concatenate([pool, pool]), _constants(_DRAW_START, _DRAW_STEP, 8))
    return halves[::2] | halves[1::2] << np.uint64(32)


@lru_cache(maxsize=16)
def _seed_pool(seed: int) -> Words:
    """Returns the pool [4, 1] before a key is mixed in; cached, since all names of a run share it."""
    constants = _constants(_HASH_START, _HASH_STEP, 16)
    # With a spawn key, NumPy pads the seed to the pool's four words before it appends the key.
    pool = _hashed(np.array([[seed], [0], [0], [0]], dtype=np.uint64), constants[:5])
    for source in range(4):
        others = [target for target in range(4) if target != source]
        # The constant changes with every word hashed, so the order is that of NumPy.
        first = 4 + 3 * source
        hashed = _hashed(np.repeat(pool[source : source + 1], 3, axis=0), constants[first : first + 4])
        pool[others] = _mixed_words(pool[others], hashed)
    pool.flags.writeable = False
    return pool


@lru_cache(maxsize=16)
def _constants(start: int, step: int, count: int) -> Words:
    """Returns the constants [count + 1, 1] that `count` hashes use: each its own and that of the next."""
    powers = [start * pow(step, place, _HALF + 1) & _HALF for place in range(count + 1)]
    found = np.array(powers, dtype=np.uint64)[:, None]
    found.flags.writeable = False
    return found


def _hashed(values: Words, constants: Words) -> Words:
    """Returns the hash of each row, row i with the constants i and i + 1."""
    values = (values ^ constants[:-1]) * constants[1:] & _HALF_WORD
    return np.asarray(values ^ values >> _SHIFT)


def _mixed_words(left: Words, right: Words) -> Words:
    values = left * _MIX_LEFT - right * _MIX_RIGHT & _HALF_WORD
    return np.asarray(values ^ values >> _SHIFT)


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
