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
SplitChoice = Annotated[Iid | Shards | Dirichlet | ByClient, Choice(SPLITS)]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Records and labels; `client` is the owner of each training record if the data has owners."""

    train_x: Floats
    train_y: Ints
    test_x: Floats
    test_y: Ints
    classes: int
    client: Ints | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one record."""
        return self.train_x.shape[1:]


def hold_out(records: Floats, labels: Ints, share: float, seed: int, owners: Ints | None = None) -> Dataset:
    """Splits off a stratified test set: `share` of each class, rounded, drawn from the seed; order is kept."""
    rng = stream(seed, "data", "test")
    classes = int(labels.max()) + 1
    tested = np.zeros(len(labels), dtype=bool)
    for label in range(classes):
        rows = np.flatnonzero(labels == label)
        tested[rng.permutation(rows)[: round(share * len(rows))]] = True
    if tested.all() or not tested.any():
        raise UserError(f"data.test_share = {share}: leaves no records to train or to test on; choose another share")
    owned = None if owners is None else owners[~tested]
    return Dataset(records[~tested], labels[~tested], records[tested], labels[tested], classes, owned)


def one_hot(values: NDArray[np.generic], categories: NDArray[np.generic]) -> Floats:
    """Encodes values with one column per category; an unknown value becomes all zeros."""
    hits: NDArray[np.bool_] = np.equal(values[:, None], categories[None, :])
    return hits.astype(np.float32)


def standardise(train: Floats, *others: Floats) -> list[Floats]:
    """Shifts and scales all arrays so that every feature of `train` has mean 0 and deviation 1 (or is constant 0)."""
    # float64 moments: float32 sums over many records lose digits of features with a large mean.
    mean = train.mean(axis=0, dtype=np.float64)
    spread = train.std(axis=0, dtype=np.float64)
    scale = np.where(spread > 0, spread, 1.0)  # constant features would divide by zero
    return [((part - mean) / scale).astype(np.float32) for part in (train, *others)]
