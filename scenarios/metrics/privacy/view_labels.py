"""The rigorous views as text: each figure with `exact`, `bound` or `inf because ...`, receivers of updates first.

A plan's figures are `projected`: those of a run in which every update arrives in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from scenarios.metrics.headline.number_format import epsilon_text
from scenarios.metrics.privacy.privacy_verdict import epsilon_of

_VIEWS = (
    ("local", "receivers of updates", ("local",)),
    ("peer", "worst peer", ("peer", "worst")),
    ("peer", "median peer", ("peer", "median")),
    ("coalition", "coalition", ("coalition",)),
    ("model", "model", ("model",)),
)


RELATION = "one record added or removed, its place kept: the number of a client's records is public"
AUDITED_VIEWS = {
    "local": "receivers of updates",
    "receiver": "best single receiver",
    "peer": "best single peer",
    "coalition": "coalition",
    "model": "model",
}
"""The views that an audit measures, and their names."""
_KNOWN = ("exact", "bound", "projected")


class ViewLabel(NamedTuple):
    """One view of a summary: who is looking, the figure with how it is known, and the reason."""

    name: str
    figure: str
    because: str


def view_labels(rigorous: Mapping[str, Any]) -> list[ViewLabel]:
    """Returns the views that a `rigorous` entry has; entries of older runs say nothing about how."""
    found = []
    for view, name, path in _VIEWS:
        epsilon = epsilon_of(_at(rigorous, path))
        if epsilon is not None:
            how = (rigorous.get("how") or {}).get(view, "")
            label = f" ({how})" if how in _KNOWN else ""
            found.append(ViewLabel(name, epsilon_text(epsilon) + label, (rigorous.get("because") or {}).get(view, "")))
    return found


def reasons(labels: list[ViewLabel]) -> list[str]:
    """Returns one sentence for each reason, with the views that it is about: `model: inf because ...`."""
    views: dict[str, list[str]] = {}
    for label in labels:
        if label.because:
            how = next((word for word in _KNOWN if label.figure.endswith(f"({word})")), "inf")
            views.setdefault(f"{how} because {label.because}", []).append(label.name)
    return [f"{', '.join(names)}: {because}" for because, names in views.items()]


def record_rows(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the rows on single records, as (label, text), for runs and plans that protect them; else none."""
    epsilon = epsilon_of(entry)
    if epsilon is None:
        return
    how = f" ({entry['how']})" if entry.get("how") in _KNOWN else ""
    yield (
        "epsilon of a record",
        f"rigorous {epsilon_text(epsilon)}{how} all views (record level, delta {entry['delta']:g})",
    )
    yield "record level", f"{entry['relation']}; {entry['how']} because {entry['because']}"
    if entry.get("no_amplification_because"):
        yield "record level", str(entry["no_amplification_because"])


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
