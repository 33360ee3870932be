"""Control messages have the sizes of their fields, added up by hand."""

from __future__ import annotations

import pytest

from privacy.sealing.control_format import assignment_size, control_size

KIND, FLAGS, ADDRESS, KEY, DIGEST, SECONDS, NUMBER = 1, 1, 32, 32, 32, 8, 4


@pytest.mark.parametrize(
    ("what", "size_bytes"),
    [
        ("register", KIND + ADDRESS),
        ("invite", KIND + SECONDS),
        ("join", KIND + KEY),
        ("decline", KIND + 1),
        ("turned_away", KIND),
        ("done", KIND + NUMBER),
        ("close", KIND),
        ("fetch", KIND),
        ("commit", KIND + NUMBER + DIGEST),
        ("verdict", KIND + NUMBER + SECONDS),
    ],
)
def test_fixed_messages(what: str, size_bytes: int) -> None:
    """Without padding between the fields."""
    assert control_size(what) == size_bytes


def test_a_join_without_sealing_carries_no_key() -> None:
    """Where nothing is sealed no key is sent."""
    assert control_size("join", keyed=False) == KIND


@pytest.mark.parametrize("keyed", [True, False])
def test_assignments(keyed: bool) -> None:
    """A head, then 65 bytes a neighbour with its key (33 without), and 8 an edge."""
    head = KIND + FLAGS + ADDRESS + 2 * SECONDS + 2 * NUMBER
    entry = ADDRESS + (KEY if keyed else 0) + FLAGS
    assert [assignment_size(n, 0, keyed) for n in (0, 1, 5)] == [head, head + entry, head + 5 * entry]
    assert assignment_size(5, 7, keyed) == head + 5 * entry + 7 * 2 * NUMBER
