"""A noise share as a 32-byte seed: both ends expand it to the same normal numbers."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
from numpy.typing import NDArray

_PREFIX = b"niss-share-v1"
SEED_BYTES = 32


def unit_normals(
    seed: bytes, round_number: int, sender: int, receiver: int, share_index: int, count: int
) -> NDArray[np.float64]:
    """Returns `count` standard normals from the seed: SHAKE-256, then Box-Muller on pairs of 64-bit words.

    Guarantees:
        Equal inputs give equal numbers at both ends. Round, ends and index are hashed, so a seed reused in another
        round does not repeat noise. Privacy is computational and depends on the secrecy of the seed.
    """
    head = _PREFIX + seed + struct.pack("<QIII", round_number, sender, receiver, share_index)
    pairs = (count + 1) // 2
    words = np.frombuffer(hashlib.shake_256(head).digest(16 * pairs), dtype="<u8")
    # 53 random bits plus one half: the open interval (0, 1), in which the logarithm is finite.
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    radius, angle = np.sqrt(-2.0 * np.log(uniform[0::2])), 2.0 * np.pi * uniform[1::2]
    normals = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return normals.ravel()[:count]
