"""The in-memory form of a data set, and the preprocessing that data sets share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from nodes.datasets.client_split import SPLITS, ByClient, Dirichlet, Iid, Shards
from p2p.config.choices import Choice
from p2p.config.errors import UserError
from p2p.random_streams import stream

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
SplitChoice = Annotated[Iid | Shards | Dirichlet | ByClient, Choice(SPLITS, needs=("needs", "split"))]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Records and labels; `client` is the owner of each training record if the data has owners.

    `per_client` holds the indices of the features (of a flattened record) that every client standardises by its own
    records, once it is known who holds which.
    """

    train_x: Floats
    train_y: Ints
    test_x: Floats
    test_y: Ints
    classes: int
    client: Ints | None = None
    per_client: Ints | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one record."""
        return self.train_x.shape[1:]


@dataclass(frozen=True, slots=True)
class PixelRange:
    """The values of black and white in an image's records, for each channel: public constants of a data set."""

    black: tuple[float, ...] = (0.0,)
    white: tuple[float, ...] = (1.0,)


def standardised_pixels(means: tuple[float, ...], deviations: tuple[float, ...]) -> PixelRange:
    """Returns the range of pixels in [0, 1] after standardisation by public constants."""
    pairs = list(zip(means, deviations, strict=True))
    black = tuple(-mean / deviation for mean, deviation in pairs)
    return PixelRange(black, tuple((1.0 - mean) / deviation for mean, deviation in pairs))


def hold_out(records: Floats, labels: Ints, tested: Flags, owners: Ints | None = None) -> Dataset:
    """Splits off the records marked in `tested` as the test set; order is kept."""
    if tested.all() or not tested.any():
        raise UserError(
            f"data.test_share: {int(tested.sum())} of {len(tested)} records are held out, which leaves no records to "
            "train or to test on; choose another share"
        )
    owned = None if owners is None else owners[~tested]
    # Classes are counted over both parts: a class may be left in one of them only.
    return Dataset(records[~tested], labels[~tested], records[tested], labels[tested], int(labels.max()) + 1, owned)


def mark_by_class(labels: Ints, share: float, seed: int) -> Flags:
    """Marks `share` of each class, rounded, drawn from the seed: for sets that have no owners before the run.

    Which records are marked depends on all labels. Where records have owners, that would couple them.
    """
    rng = stream(seed, "data", "test")
    tested = np.zeros(len(labels), dtype=np.bool_)
    # Class by class, so that both parts have the same mixture; one stream, in the order of labels.
    for label in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == label)
        tested[rng.permutation(rows)[: round(share * len(rows))]] = True
    return tested


def mark_by_number(count: int, share: float, seed: int) -> Flags:
    """Marks `share` of `count` records, rounded, drawn from the seed; what a record contains has no influence."""
    tested = np.zeros(count, dtype=np.bool_)
    tested[stream(seed, "data", "test").permutation(count)[: round(share * count)]] = True
    return tested


def one_hot(values: NDArray[np.generic], categories: NDArray[np.generic]) -> Floats:
    """Encodes values with one column per category; an unknown value becomes all zeros."""
    hits: NDArray[np.bool_] = np.equal(values[:, None], categories[None, :])
    return hits.astype(np.float32)
