"""Generated records in a summary: their number and quality, and which generators failed."""

from __future__ import annotations

from typing import Any

from nodes.datasets.preparation import generator_of
from scenarios.composition.simulation import Simulation

_TIMELESS = "generators are trained before the run, which takes no simulated time"


def generated_report(simulation: Simulation) -> dict[str, Any]:
    """Returns the summary's entry on generated records; empty for runs without."""
    settings, learner = generator_of(simulation.scenario.data), simulation.learner
    if settings is None or learner is None or learner.generated is None:
        return {}
    figures = {"share": settings.share, "class_ratios": settings.class_ratios, **learner.generated.quality}
    return {"generated": figures | {"notes": [*figures["notes"], _TIMELESS]}}
