"""The Pareto front of a sweep: combinations that no other one beats in all objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

OBJECTIVES = (("accuracy", 1), ("client_median", -1), ("simulated_s", -1))
"""Figures and whether more (1) or less (-1) is better; epsilon of a view is a further one, less is better."""
VIEWS = {
    "worst_peer": "rigorous, worst peer",
    "model": "rigorous, model",
    "local": "rigorous, local",
    "published": "as published",
}


def pareto_front(means: Sequence[Mapping[str, float | None]], view: str) -> list[int]:
    """Returns the places of combinations on the front; those that lack an objective are on none.

    An infinite epsilon counts as the worst, so it can be on the front by accuracy or cost alone.
    """
    signs = [*OBJECTIVES, (view, -1)]
    points = {
        place: [sign * value for name, sign in signs if (value := one.get(name)) is not None]
        for place, one in enumerate(means)
    }
    known = {place: point for place, point in points.items() if len(point) == len(signs)}
    return [place for place, mine in known.items() if not any(_beats(other, mine) for other in known.values())]


def _beats(other: Sequence[float], mine: Sequence[float]) -> bool:
    return all(theirs >= own for theirs, own in zip(other, mine, strict=True)) and list(other) != list(mine)
