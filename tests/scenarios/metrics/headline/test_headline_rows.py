"""Rows of the final table: what is said once, and units that are read at a glance."""

from __future__ import annotations

import pytest

from scenarios.metrics.headline.headline_rows import grouped_by_erratum
from scenarios.metrics.headline.number_format import joules_text


def test_notes_on_one_erratum_are_one() -> None:
    """Others stay as they are, in order."""
    notes = ["sigma is small (E-T04)", "no budget", "the order is large (E-T04)", "m is squared (E-T05)"]
    assert grouped_by_erratum(notes) == [
        "sigma is small; the order is large (erratum E-T04 of docs/privacy.md)",
        "no budget",
        "m is squared (erratum E-T05 of docs/privacy.md)",
    ]


@pytest.mark.parametrize(
    ("energy_j", "text"),
    [(0.0, "0 J"), (16_240.0, "16.2 kJ"), (95.8, "95.8 J"), (0.025, "25 mJ"), (999.9, "1 kJ"), (3.5e-6, "3.5 uJ")],
)
def test_energies(energy_j: float, text: str) -> None:
    """Three digits and the unit that suits."""
    assert joules_text(energy_j) == text
