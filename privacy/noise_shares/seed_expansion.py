"""Expansion of a share's seed to its noise, identical at both ends: the specified expansion, and a faster one.

`shake` is the reference (SHAKE-256 and Box-Muller in float64, see `unit_normals`). `fast` is a keyed counter
generator: AES-256 in counter mode under the seed, with an initial block derived from round, ends and index, then
Box-Muller in float32 on 32-bit words. Its values are float32 numbers, so both ends add and subtract exactly the same.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np
from numpy.typing import NDArray

from privacy.noise_shares.settings import Expansion

Normals = NDArray[np.float64]
SEED_BYTES = 32
_SHAKE_PREFIX = b"niss-share-v1"
_FAST_PREFIX = b"niss-share-fast-v1"


def expand_share(
    expansion: Expansion, seed: bytes, round_number: int, sender: int, receiver: int, share_index: int, count: int
) -> Normals:
    """Returns `count` standard normals; `sender` and `receiver` are address numbers (see `address_number`), not nodes.

    Guarantees:
        Equal inputs give equal numbers. A seed reused in another round, between other ends or as another share gives
        unrelated ones. Privacy is computational and depends on the secrecy of the seed.
    """
    name = (seed, round_number, sender, receiver, share_index, count)
    return unit_normals(*name) if expansion == "shake" else fast_normals(*name)


def unit_normals(seed: bytes, round_number: int, sender: int, receiver: int, share_index: int, count: int) -> Normals:
    """Returns `count` standard normals from the seed: SHAKE-256, then Box-Muller on pairs of 64-bit words.

    Guarantees:
        Equal inputs give equal numbers at both ends. Round, ends and index are hashed, so a seed reused in another
        round does not repeat noise. Privacy is computational and depends on the secrecy of the seed.
    """
    # The version in the prefix keeps an expansion of another version from giving related noise.
    head = _SHAKE_PREFIX + seed + struct.pack("<QIII", round_number, sender, receiver, share_index)
    pairs = (count + 1) // 2
    words = np.frombuffer(hashlib.shake_256(head).digest(16 * pairs), dtype="<u8")
    # 53 random bits plus one half: the open interval (0, 1), in which the logarithm is finite.
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    radius, angle = np.sqrt(-2.0 * np.log(uniform[0::2])), 2.0 * np.pi * uniform[1::2]
    normals = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return normals.ravel()[:count]


def fast_normals(seed: bytes, round_number: int, sender: int, receiver: int, share_index: int, count: int) -> Normals:
    """Returns standard normals with the guarantees of `unit_normals`, in about a quarter of its time."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    name = _FAST_PREFIX + struct.pack("<QIII", round_number, sender, receiver, share_index)
    # A counter block per name: equal seeds of different shares or rounds start at unrelated counters.
    start = hashlib.sha256(name).digest()[:16]
    pairs = (count + 1) // 2
    stream = Cipher(algorithms.AES(seed), modes.CTR(start)).encryptor().update(bytes(8 * pairs))
    words = np.frombuffer(stream, dtype="<u4").astype(np.float64)
    # The half keeps the uniform numbers above 0, where the logarithm is infinite; rounding to float32 may give 1, whose
    # radius is 0.
    uniform = ((words + 0.5) * 2.0**-32).astype(np.float32)
    radius = np.sqrt(np.float32(-2.0) * np.log(uniform[:pairs]))
    angle = np.float32(2.0 * np.pi) * uniform[pairs:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count].astype(np.float64)


def address_number(address: bytes) -> int:
    """Returns the number that identifies an end in an expansion: the first four bytes of its address."""
    # Both ends know addresses and not nodes; a collision of two only repeats a name, never a seed.
    return int.from_bytes(address[:4], "little")
