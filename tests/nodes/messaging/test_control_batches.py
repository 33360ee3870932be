"""Reports and registrations as numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodes.messaging.control_batches import (
    read_registration,
    read_report,
    registration_note,
    report_note,
    report_number,
)
from nodes.messaging.control_messages import Done, Register
from p2p.transport.messages import TOPICS, Delivery, Note

REPORTS = st.builds(
    Done,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**31 - 1),
    st.booleans(),
    st.integers(-1, 10_000),
    st.booleans(),
)


@given(REPORTS)
def test_a_report_is_read_as_it_was_written(done: Done) -> None:
    """Whatever a member reports, in 63 bits."""
    number = report_number(done)
    assert 0 <= number < 2**62
    delivery = Delivery(0, -number, 0, 1, done.node, done.round_number, TOPICS["done"], 0, 0, 0.0)
    assert read_report(delivery) == done


def test_its_size_is_that_of_the_wire_format() -> None:
    """82 bytes of header and 5 of content; 16 more where it is sealed, and 8 for a loss."""
    assert report_note(False, False) == Note(TOPICS["done"], 87, 82)
    assert report_note(False, True) == Note(TOPICS["done"], 95, 82)
    assert report_note(True, False) == report_note("sizes", False) == Note(TOPICS["done"], 103, 98)


@given(st.integers(0, 2**31 - 1), st.integers(0, 100))
def test_a_registration_is_told_by_its_message(node: int, life: int) -> None:
    """82 bytes of header and 33 of content without a key; it is sent again even if the set-up is over."""
    delivery = Delivery(0, 0, 0, 1, node, 0, TOPICS["register"], 0, life, 0.0)
    assert read_registration("sizes", delivery) == Register(node, True, life)
    assert not read_registration(False, delivery).keyed
    plain, sealed = registration_note(False), registration_note(True)
    assert plain == Note(TOPICS["register"], 115, 82, outlives_round=True)
    assert sealed.size_bytes == plain.size_bytes + 32 + 16
