"""Control messages: sizes are known without encoding, and encoding agrees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.sealing.control_format import (
    HAND_OVER,
    LEADS,
    SEND_TO,
    Entry,
    WireAssignment,
    assignment_size,
    control_size,
    decode_assignment,
    decode_control,
    encode_control,
)

BYTES_32 = st.binary(min_size=32, max_size=32)
FIXED: list[tuple[str, tuple[Any, ...], int]] = [
    ("register", (bytes(32),), 33),
    ("invite", (12.5,), 9),
    ("join", (b"k" * 32,), 33),
    ("decline", (2,), 2),
    ("turned_away", (), 1),
    ("done", (49,), 5),
    ("close", (), 1),
    ("fetch", (), 1),
    ("commit", (3, b"h" * 32), 37),
    ("verdict", (3, 12.5), 13),
]


@pytest.mark.parametrize(("what", "fields", "size_bytes"), FIXED)
def test_fixed_messages(what: str, fields: tuple[Any, ...], size_bytes: int) -> None:
    """Each has its stated size and is read back as it was."""
    data = encode_control(what, *fields)
    assert len(data) == control_size(what) == size_bytes
    assert decode_control(data) == (what, fields)


def test_a_join_without_sealing_carries_no_key() -> None:
    """Where nothing is sealed no key is sent."""
    assert len(encode_control("join", b"")) == control_size("join", keyed=False) == 1
    assert decode_control(encode_control("join", b"")) == ("join", (b"",))


@settings(max_examples=30)
@given(
    st.lists(st.tuples(BYTES_32, BYTES_32.filter(any), st.integers(0, 15)), max_size=8),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=8),
    st.booleans(),
)
def test_assignments(rows: list[tuple[bytes, bytes, int]], edges: list[tuple[int, int]], keyed: bool) -> None:
    """65 bytes a neighbour with its key (33 without), 8 an edge, and all of it is read back."""
    entries = [Entry(address, key if keyed else b"", flags) for address, key, flags in rows]
    sent = WireAssignment(b"o" * 32, 60.0, entries, 5.0, LEADS, edges)
    data = sent.encode()
    assert len(data) == assignment_size(len(entries), len(edges), keyed)
    assert assignment_size(1, 0, keyed) - assignment_size(0, 0, keyed) == (65 if keyed else 33)
    assert decode_assignment(data) == sent


def test_an_assignment_says_who_needs_the_model() -> None:
    """The last leader's assignment marks those it has to hand the model over to."""
    entry = Entry(b"a" * 32, b"k" * 32, SEND_TO | HAND_OVER)
    received = decode_assignment(WireAssignment(b"o" * 32, 1.0, [entry]).encode())
    assert [e.flags & HAND_OVER for e in received.entries] == [HAND_OVER]
