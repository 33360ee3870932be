"""From a share's seed to its noise, the same at both ends: the specified expansion, and a faster one.

`shake` is the reference (SHAKE-256 and Box-Muller in float64, see share_seeds.py). `fast` is a keyed counter
generator: AES-256 in counter mode under the seed, started at a block that names round, ends and index, then
Box-Muller in float32 on 32-bit words. Its numbers are floats of 24 bits, so both ends add and subtract the very same.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacy.share_seeds import unit_normals

Expansion = Literal["fast", "shake"]
Normals = NDArray[np.float64]
_FAST = b"niss-share-fast-v1"


def expand_share(
    expansion: Expansion, seed: bytes, round_number: int, sender: int, receiver: int, share_index: int, count: int
) -> Normals:
    """`count` standard normals. `sender` and `receiver` are address numbers (see `address_number`), never nodes.

    Guarantees:
        equal inputs give equal numbers; a seed reused in another round, between other ends or as another share
        gives unrelated ones. Privacy is computational: as good as the seed is secret.
    """
    name = (seed, round_number, sender, receiver, share_index, count)
    return unit_normals(*name) if expansion == "shake" else fast_normals(*name)


def fast_normals(seed: bytes, round_number: int, sender: int, receiver: int, share_index: int, count: int) -> Normals:
    """The same promise as `unit_normals` at about a quarter of its price."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    name = _FAST + struct.pack("<QIII", round_number, sender, receiver, share_index)
    start = hashlib.sha256(name).digest()[:16]
    pairs = (count + 1) // 2
    stream = Cipher(algorithms.AES(seed), modes.CTR(start)).encryptor().update(bytes(8 * pairs))
    words = np.frombuffer(stream, dtype="<u4").astype(np.float64)
    uniform = ((words + 0.5) * 2.0**-32).astype(np.float32)
    radius = np.sqrt(np.float32(-2.0) * np.log(uniform[:pairs]))
    angle = np.float32(2.0 * np.pi) * uniform[pairs:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count].astype(np.float64)


def address_number(address: bytes) -> int:
    """How an expansion names an end: the first four bytes of its address."""
    return int.from_bytes(address[:4], "little")
