"""Wire messages of the exchange: seeds, lists of missing peers, and opened seeds."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from privacy.anonymity.pseudonyms import ADDRESS_BYTES
from privacy.noise_shares.seed_expansion import SEED_BYTES
from privacy.sealing.envelopes import Payload

_COUNT = struct.Struct("<H")
_SEED = struct.Struct(f"<{SEED_BYTES}sd")
# Little-endian without padding: the sizes are those on the wire.
_OPENED = struct.Struct(f"<H{SEED_BYTES}sd")
_SENT = 0x8000
"""Bit of an opened entry's place: the share was sent to the missing peer, not received from it."""


class Missing(NamedTuple):
    """The aggregator's request: the addresses without an upload."""

    addresses: tuple[bytes, ...]


class Opened(NamedTuple):
    """One share with a missing peer: the peer's place in the request, seed, scale, and the factor's seed if any."""

    place: int
    sent: bool
    seed: bytes
    std: float
    factor_seed: bytes = b""


class Opening(NamedTuple):
    """A survivor's answer: the seeds of its shares with the missing peers."""

    shares: tuple[Opened, ...]


def seed_payload(seed: bytes, std: float) -> Payload:
    """Encodes a share as its seed and scale; the decoded value is the seed."""
    return Payload(seed, _SEED.size, lambda: _SEED.pack(seed, std), lambda data: _SEED.unpack(data)[0])


def missing_payload(addresses: Sequence[bytes]) -> Payload:
    """Encodes the request."""
    data = _COUNT.pack(len(addresses)) + b"".join(addresses)
    return Payload(Missing(tuple(addresses)), len(data), lambda: data, _read_missing)


def opening_payload(opening: Opening) -> Payload:
    """Encodes the answer: each entry names its peer by place in the request, in two bytes."""
    data = b"".join(
        _OPENED.pack(one.place | (_SENT if one.sent else 0), one.seed, one.std) + one.factor_seed
        for one in opening.shares
    )
    return Payload(opening, len(data), lambda: data)


def _read_missing(data: bytes) -> Missing:
    (count,) = _COUNT.unpack_from(data)
    addresses = [data[start : start + ADDRESS_BYTES] for start in range(_COUNT.size, len(data), ADDRESS_BYTES)]
    # Unsealed payloads may be corrupted in transit; a wrong length must not pass as another list.
    if len(addresses) != count or any(len(address) != ADDRESS_BYTES for address in addresses):
        raise ValueError("not a list of addresses")
    return Missing(tuple(addresses))
