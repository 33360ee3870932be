"""Named random numbers inside the core: the same words as `p2p.random_streams.draws`, mixed the same way (compiled)."""

from __future__ import annotations

import numpy as np

from p2p.transport.core.compiled import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


@kernel
def scramble(word: np.uint64) -> np.uint64:
    """Returns the SplitMix64 output function of a word."""
    word = word + _GOLDEN
    word = (word ^ (word >> _S30)) * _FIRST
    word = (word ^ (word >> _S27)) * _SECOND
    return word ^ (word >> _S31)


@kernel
def mixed(word: np.uint64, part: int) -> np.uint64:
    """Returns the word of a name extended by one part."""
    return scramble(word ^ scramble(np.uint64(np.int64(part))))


@kernel
def uniform(word: np.uint64) -> float:
    """Returns a word's number in (0, 1)."""
    # The upper 53 bits, centred in their interval: never 0 or 1, so quantile functions stay finite.
    return (float(word >> _S11) + 0.5) * 2.0**-53
