"""The rigorous views as text: each figure with `exact`, `bound` or `inf because ...`, receivers of updates first.

A plan's figures are `projected`: those of a run in which every update arrives in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from scenarios.metrics.number_format import epsilon_text
from scenarios.metrics.privacy_verdict import epsilon_of

_VIEWS = (
    ("local", "receivers of updates", ("local",)),
    ("peer", "worst peer", ("peer", "worst")),
    ("peer", "median peer", ("peer", "median")),
    ("coalition", "coalition", ("coalition",)),
    ("model", "model", ("model",)),
)


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


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
