"""Rows on generated records, in the final table and on the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.metrics.headline.number_format import accuracy_text, count_text


def generated_rows(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the rows of the final table and of the page, as (label, text)."""
    means = {name: accuracy_text(value) for name, value in entry["class_means_accuracy"].items()}
    yield (
        "generated records",
        f"{count_text(entry['records'])}, {entry['share']:.0%} of what is trained on, class ratios "
        f"{entry['class_ratios']}; their class means classify test records with accuracy {means['generated']}, "
        f"those of real records with {means['real']}",
    )
    for note in entry["notes"]:
        yield "generators", str(note)
