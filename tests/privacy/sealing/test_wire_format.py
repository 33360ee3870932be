"""The wire format: what is written is read back, at the size that was stated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from privacy.sealing import wire_format

ADDRESS = st.binary(min_size=32, max_size=32)
UINT32 = st.integers(0, 2**32 - 1)


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(wire_format.KINDS)), st.booleans(), UINT32, UINT32, ADDRESS, ADDRESS, st.integers(0, 2**40)
)
def test_header_round_trip(
    kind: str, many: bool, round: int, sequence: int, sender: bytes, receiver: bytes, size: int
) -> None:
    """Every header takes 82 bytes and is read back as it was."""
    fields = (wire_format.KINDS[kind] | (wire_format.MANY if many else 0), round, sequence, sender, receiver, size)
    data = wire_format.encode_header(*fields)
    assert len(data) == wire_format.HEADER_BYTES == 1 + 1 + 4 + 4 + 32 + 32 + 8
    assert wire_format.decode_header(data) == fields


@pytest.mark.parametrize("data", [b"", bytes(81), bytes([2]) + bytes(81)])
def test_foreign_headers_are_refused(data: bytes) -> None:
    """Too short, or of another version: not a header."""
    with pytest.raises(ValueError, match="not a header"):
        wire_format.decode_header(data)


@settings(max_examples=30)
@given(hnp.arrays(np.float32, st.integers(0, 50)))
def test_vector_round_trip(vector: NDArray[np.float32]) -> None:
    """A vector takes four bytes a number and comes back bit for bit, NaN included."""
    data = wire_format.encode_vector(vector)
    assert len(data) == wire_format.vector_size(vector.size)
    assert wire_format.encode_vector(wire_format.decode_vector(data)) == data == vector.tobytes()


def test_decoding_a_vector_copies_nothing() -> None:
    """The decoded vector is a read-only view of the message's bytes."""
    data = wire_format.encode_vector(np.arange(4, dtype=np.float32))
    assert not wire_format.decode_vector(data).flags.owndata
    assert not wire_format.decode_vector(data).flags.writeable


def test_kinds_are_those_of_the_message_log() -> None:
    """One code per kind, none with the `MANY` bit."""
    assert set(wire_format.KINDS) == {
        "control", "bootstrap", "update", "model", "handover", "share", "correction", "collect"
    }  # fmt: skip
    assert len(set(wire_format.KINDS.values())) == len(wire_format.KINDS)
    assert not any(code & wire_format.MANY for code in wire_format.KINDS.values())
