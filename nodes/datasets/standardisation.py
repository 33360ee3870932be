"""Standardisation of features, and what it takes from which clients' records.

Pooled statistics make every client's training input depend on every other client's records, which no clipping of
updates bounds. The other ways use one client's records alone, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt, Len
from numpy.typing import NDArray

from nodes.datasets.dataset import Dataset, Floats, Ints
from p2p.config.errors import UserError

Standardise = bool | Literal["per_client", "given"]
Means = Annotated[tuple[float, ...], Len(1)] | None
Deviations = Annotated[tuple[Annotated[float, Gt(0)], ...], Len(1)] | None
Moments = tuple[NDArray[np.float64], NDArray[np.float64]]

POOLED = "feature means and deviations were pooled over all clients' records without noise"


def check_settings(way: Standardise, means: Means, deviations: Deviations) -> None:
    """Raises UserError unless means and deviations are there exactly if `way` is `given`, and are equally many."""
    for key, numbers in (("means", means), ("deviations", deviations)):
        if way == "given" and numbers is None:
            raise UserError(f"{key} = none: `standardise: given` needs public numbers, one for each feature; add them")
        if way != "given" and numbers is not None:
            raise UserError(f"{key} = {list(numbers)[:3]}: is used with `standardise: given` only; drop it")
    if means is not None and deviations is not None and len(means) != len(deviations):
        raise UserError(
            f"deviations = {list(deviations)[:3]}: has {len(deviations)} numbers and means {len(means)}; give as many"
        )


def pooled_statistics(way: Standardise) -> tuple[str, ...]:
    """Returns what this way computes from the records of several clients, in sentences; empty if nothing."""
    return (POOLED,) if way is True else ()


def standardise(
    way: Standardise, means: Means, deviations: Deviations, train: Floats, test: Floats
) -> tuple[Floats, Floats]:
    """Returns both parts, standardised as `way` says.

    With `per_client` the training part is returned as it is (`standardise_each` follows when it is known who holds
    which records), and the test part, which belongs to no client, is standardised by its own moments.
    """
    if way is False:
        return train, test
    if way == "per_client":
        return train, _scaled(test, _moments(test))
    # If pooled, then over the training part only: test records must not influence training.
    moments = _given(means or (), deviations or (), train.shape[1:]) if way == "given" else _moments(train)
    return _scaled(train, moments), _scaled(test, moments)


def standardise_each(dataset: Dataset, shards: Sequence[Ints]) -> Dataset:
    """Returns the data set with every client's records standardised by its own moments, if it asks for that."""
    columns = dataset.per_client
    if columns is None:
        return dataset
    records = dataset.train_x.copy()
    # A view of the copy, so that writing to it fills `records`.
    flat = records.reshape(len(records), -1)
    for shard in shards:
        own = flat[np.ix_(shard, columns)]
        # Through `ix_` again: `own` is a copy.
        flat[np.ix_(shard, columns)] = _scaled(own, _moments(own))
    return replace(dataset, train_x=records, per_client=None)


def _moments(records: Floats) -> Moments:
    # float64: float32 sums over many records lose digits of features with a large mean.
    return records.mean(axis=0, dtype=np.float64), records.std(axis=0, dtype=np.float64)


def _given(means: Sequence[float], deviations: Sequence[float], shape: tuple[int, ...]) -> Moments:
    features = int(np.prod(shape))
    if len(means) != features:
        raise UserError(
            f"data.means = {list(means)[:3]}: has {len(means)} numbers, the data {features} features (one for each "
            "category of a text column); give one for each"
        )
    return np.reshape(means, shape).astype(np.float64), np.reshape(deviations, shape).astype(np.float64)


def _scaled(records: Floats, moments: Moments) -> Floats:
    mean, deviation = moments
    scale = np.where(deviation > 0, deviation, 1.0)  # constant features would divide by zero
    scaled: Floats = ((records - mean) / scale).astype(np.float32)
    return scaled
