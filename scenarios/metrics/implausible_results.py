"""Results that are surely not meant: accuracy at chance, and labels that are quantities and no classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scenarios.metrics.headline.number_format import accuracy_text, count_text

if TYPE_CHECKING:
    from scenarios.composition.simulation import Simulation

_MANY_CLASSES = 50
_RECORDS_PER_CLASS = 4


def implausible_results(simulation: Simulation, collected: tuple[float, float] | None) -> list[str]:
    """Returns warnings about what a run has learned; nothing without learning or without a collected model."""
    if simulation.learner is None:
        return []
    labels = simulation.learner.test_labels()
    quantity = label_warning(simulation.learner.classes, simulation.learner.training_records)
    if quantity is not None:
        return [quantity]
    chance = None if collected is None else chance_warning(collected[0], labels)
    return [] if chance is None else [chance]


def label_warning(classes: int, records: int) -> str | None:
    """Returns a warning if there are too few records of a class to learn one, as with a continuous label."""
    if classes <= _MANY_CLASSES or records >= _RECORDS_PER_CLASS * classes:
        return None
    return (
        f"data.label: has {count_text(classes)} distinct values in {count_text(records)} training records: a quantity, "
        "not a class, so accuracy is about 0; bin it into a few classes, or name another column"
    )


def chance_warning(accuracy: float, labels: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str | None:
    """Returns a warning if a model is no better than one that always names the most frequent class."""
    share = float(np.bincount(labels).max() / len(labels))
    # Two standard errors of a share: a model at chance is often a little above it.
    if accuracy > share + 2 * float(np.sqrt(share * (1 - share) / len(labels))):
        return None
    return (
        f"accuracy {accuracy_text(accuracy)} is chance: naming the most frequent class every time gives "
        f"{accuracy_text(share)}; train longer or with another learning rate, or add less noise"
    )
