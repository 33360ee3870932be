"""Reports as numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodes.messaging.control_batches import read_report, report_note, report_number
from nodes.messaging.control_messages import Done
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
