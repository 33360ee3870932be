"""What the exchange says on the wire: seeds, who is missing, and opened seeds."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from privacy.anonymity.pseudonyms import ADDRESS_BYTES
from privacy.noise_shares.seed_expansion import SEED_BYTES
from privacy.sealing.envelopes import Payload

_COUNT = struct.Struct("<H")
_SEED = struct.Struct(f"<{SEED_BYTES}sd")
_OPENED = struct.Struct(f"<H{SEED_BYTES}sd")
_SENT = 0x8000
"""Bit of an opened entry's place: the share was sent to the missing peer, not received from it."""


class Missing(NamedTuple):
    """The aggregator's question: these addresses did not upload."""

    addresses: tuple[bytes, ...]


class Opened(NamedTuple):
    """One share with a missing peer: its place in the question, seed and scale, and the factor's seed if it has one."""

    place: int
    sent: bool
    seed: bytes
    std: float
    factor_seed: bytes = b""


class Opening(NamedTuple):
    """A survivor's answer: the seeds of its shares with the missing."""

    shares: tuple[Opened, ...]


def seed_payload(seed: bytes, std: float) -> Payload:
    """A share as its seed, with its scale; the value is the seed."""
    return Payload(seed, _SEED.size, lambda: _SEED.pack(seed, std), lambda data: _SEED.unpack(data)[0])


def missing_payload(addresses: Sequence[bytes]) -> Payload:
    """The question."""
    data = _COUNT.pack(len(addresses)) + b"".join(addresses)
    return Payload(Missing(tuple(addresses)), len(data), lambda: data, _read_missing)


def opening_payload(opening: Opening) -> Payload:
    """The answer: 32 bytes for each seed, and two to say whose it is."""
    data = b"".join(
        _OPENED.pack(one.place | (_SENT if one.sent else 0), one.seed, one.std) + one.factor_seed
        for one in opening.shares
    )
    return Payload(opening, len(data), lambda: data)


def _read_missing(data: bytes) -> Missing:
    (count,) = _COUNT.unpack_from(data)
    addresses = [data[start : start + ADDRESS_BYTES] for start in range(_COUNT.size, len(data), ADDRESS_BYTES)]
    if len(addresses) != count or any(len(address) != ADDRESS_BYTES for address in addresses):
        raise ValueError("not a list of addresses")
    return Missing(tuple(addresses))
