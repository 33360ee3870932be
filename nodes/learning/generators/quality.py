"""How good generated records are: what failed, and how well their class means tell the classes of test records apart.

These figures are the experimenter's: they read real records, and no client sends them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.datasets.dataset import Dataset, Floats, Ints

FEW_RECORDS = 10
"""With fewer records a generator mostly repeats them, or learns nothing."""
_COLLAPSED = 0.1
"""A spread within a class below this share of the real records' counts as mode collapse."""
_TEXTS = {
    "diverged": "of {clients} generators gave numbers that are not finite; their records are zeros",
    "collapsed": "of {clients} generators make nearly one record per class (mode collapse)",
    "few_records": f"of {{clients}} generators were trained on fewer than {FEW_RECORDS} records",
    "one_class": "of {clients} generators have seen one class only",
    "unseen_classes": "of {clients} generators were asked for classes of which their clients have no record",
}


def assess(
    dataset: Dataset,
    shards: Sequence[Ints],
    records: Floats,
    labels: Ints,
    made: Sequence[Ints],
    diverged: Sequence[int],
) -> dict[str, Any]:
    """Returns the counts of failed generators by reason, notes on them, and the accuracy of class means."""
    failed = {"diverged": len(diverged), "collapsed": 0, "few_records": 0, "one_class": 0, "unseen_classes": 0}
    for own, new in zip(shards, made, strict=True):
        held = np.unique(dataset.train_y[own])
        failed["few_records"] += len(own) < FEW_RECORDS
        failed["one_class"] += len(held) == 1
        failed["unseen_classes"] += not np.isin(labels[new], held).all()
        real = spread(dataset.train_x[own], dataset.train_y[own])
        failed["collapsed"] += real > 0 and spread(records[new], labels[new]) < _COLLAPSED * real
    return {
        "records": len(labels),
        "failed": {name: int(count) for name, count in failed.items()},
        "notes": failure_notes(failed, len(shards)),
        "class_means_accuracy": {
            "generated": class_means_accuracy(dataset, records, labels),
            "real": class_means_accuracy(dataset, dataset.train_x, dataset.train_y),
        },
    }


def failure_notes(failed: Mapping[str, int], clients: int) -> list[str]:
    """Returns a sentence on each reason for which generators failed."""
    return [f"{count} {_TEXTS[name].format(clients=clients)}" for name, count in failed.items() if count]


def spread(records: Floats, labels: Ints) -> float:
    """Returns the mean deviation of features within classes that have two records at least; 0 if none has."""
    flat = records.reshape(len(records), -1)
    groups = [flat[labels == label] for label in np.unique(labels)]
    found = [float(group.std(axis=0).mean()) for group in groups if len(group) > 1]
    return float(np.mean(found)) if found else 0.0


def class_means_accuracy(dataset: Dataset, records: Floats, labels: Ints) -> float:
    """Returns the accuracy on the test set of the class whose mean record is nearest."""
    flat = records.reshape(len(records), -1).astype(np.float64)
    present = np.unique(labels)
    means: NDArray[np.float64] = np.stack([flat[labels == label].mean(axis=0) for label in present])
    tests = dataset.test_x.reshape(len(dataset.test_x), -1)
    # Squared distances up to the tests' own norms, which all classes share.
    distances = np.square(means).sum(axis=1) - 2.0 * tests @ means.T
    return float(np.mean(present[distances.argmin(axis=1)] == dataset.test_y))
