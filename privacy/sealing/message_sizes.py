"""Sizes of messages: header, payload and what sealing adds."""

from __future__ import annotations

from functools import cache

from privacy.anonymity.settings import Sealed
from privacy.sealing import wire_format

TAG_BYTES = 16
WRAP_BYTES = 32 + 32 + TAG_BYTES
"""Size of a wrapped content key: the key, the ciphertext's SHA-256, and the tag."""


@cache  # asked for every message, with few distinct arguments
def message_size(payload_bytes: int, *, many: bool, sealed: Sealed) -> int:
    """Returns the bytes of a whole message; `many` if its payload is sealed for more than one receiver.

    The size does not depend on the kind: all kinds have the same header and seal.
    """
    return wire_format.HEADER_BYTES + payload_bytes + seal_size(many=many, sealed=sealed)


def seal_size(*, many: bool, sealed: Sealed) -> int:
    """Returns the bytes that sealing adds to one message."""
    if sealed is False:
        return 0
    # The payload has a tag in either case; with many receivers the wrapped key has another.
    return TAG_BYTES + (WRAP_BYTES if many else 0)
