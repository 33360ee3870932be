"""Data sets available to scenarios; each provides float32 records, integer labels and a global test set.

Nothing is downloaded: `digits` ships with scikit-learn, `synthetic` is generated, the others are read from a folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Interval, Len

from nodes.datasets.client_split import Iid
from nodes.datasets.dataset import Dataset, Floats, Ints, SplitChoice, hold_out, standardise
from nodes.datasets.original_formats import resolve_data_dir
from nodes.datasets.published import Adult, Cifar10, FashionMnist, Mnist
from nodes.datasets.user_files import read_records
from p2p.config.file_paths import FilePath
from p2p.random_streams import stream

__all__ = ["DATASETS", "Dataset", "resolve_data_dir"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """1,797 grey 8x8 digits that ship with scikit-learn; a fifth of each class is the test set.

    Attributes:
        split: who holds which records
    """

    split: SplitChoice = field(default=Iid())

    def records(self) -> int:
        """Returns the number of training records."""
        return 1438  # 1,797 minus a fifth of each class, rounded as in `hold_out`

    def form(self) -> tuple[tuple[int, ...], int]:
        """Returns the shape of one record and the number of classes."""
        return (1, 8, 8), 10

    def load(self, data_dir: Path, seed: int) -> Dataset:
        """Loads pixels scaled to [0, 1]; the test set is drawn from the seed."""
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
        images = (pixels / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
        return hold_out(images, labels.astype(np.int64), 0.2, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """Balanced classes, each a Gaussian cloud around its own random centre.

    Attributes:
        samples: training records
        test_samples: records of the global test set
        features: numbers per record
        shape: takes the place of `features`: the shape of one record, such as [3, 32, 32]
        classes: how many clouds
        spread: deviation of a cloud, where centres lie about sqrt(2 features) apart; more is harder
        split: who holds which records
    """

    samples: Annotated[int, Ge(1)] = 2000
    test_samples: Annotated[int, Ge(1)] = 500
    features: Annotated[int, Ge(1)] = 20
    shape: Annotated[tuple[Annotated[int, Ge(1)], ...], Len(1)] | None = None
    classes: Annotated[int, Ge(2)] = 10
    spread: Annotated[float, Gt(0)] = 1.0
    split: SplitChoice = field(default=Iid())

    def records(self) -> int:
        """Returns the number of training records."""
        return self.samples

    def form(self) -> tuple[tuple[int, ...], int]:
        """Returns the shape of one record and the number of classes."""
        return self.shape or (self.features,), self.classes

    def load(self, data_dir: Path, seed: int) -> Dataset:
        """Generates the records from the seed alone."""
        centres = stream(seed, "data", "centres").standard_normal(
            (self.classes, prod(self.form()[0])), dtype=np.float32
        )
        # Separate streams, so that the size of one part does not change the other.
        train_x, train_y = self._draw(self.samples, centres, stream(seed, "data", "train"))
        test_x, test_y = self._draw(self.test_samples, centres, stream(seed, "data", "test"))
        return Dataset(train_x, train_y, test_x, test_y, self.classes)

    def _draw(self, count: int, centres: Floats, rng: np.random.Generator) -> tuple[Floats, Ints]:
        labels = rng.permutation(np.arange(count) % self.classes)
        noise = rng.standard_normal((count, centres.shape[1]), dtype=np.float32)
        records = centres[labels] + np.float32(self.spread) * noise
        return records.reshape(count, *self.form()[0]), labels


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """Your own records: npz (array `x` and the named ones), csv or parquet (other columns are features, text one-hot).

    Attributes:
        path: the file, relative to the scenario file
        label: column, or array of the npz, with the class of each record; any values
        client: column, or array, with the owner of each record; none when the data has no owners
        test_share: share of each class held out as the global test set
        standardise: shift and scale every feature to mean 0 and deviation 1 on the training part
        split: who holds which records
    """

    path: FilePath
    label: str = "label"
    client: str | None = None
    test_share: Annotated[float, Interval(gt=0, lt=1)] = 0.2
    standardise: bool = True
    split: SplitChoice = field(default=Iid())

    def records(self) -> None:
        """Returns None: unknown before the file is read."""

    def form(self) -> None:
        """Returns None: unknown before the file is read."""

    def load(self, data_dir: Path, seed: int) -> Dataset:
        """Loads the file; labels and owners become 0, 1, ... in sorted order, the test set is drawn from the seed."""
        path = Path(self.path)
        stored = read_records(path if path.is_file() else data_dir / path, self.label, self.client)
        labels = np.unique(stored.labels, return_inverse=True)[1].astype(np.int64)
        owners = None
        if stored.owners is not None:
            owners = np.unique(stored.owners, return_inverse=True)[1].astype(np.int64)
        held = hold_out(stored.features, labels, self.test_share, seed, owners)
        if not self.standardise:
            return held
        # After the split: moments of the test records must not influence training.
        train_x, test_x = standardise(held.train_x, held.test_x)
        return Dataset(train_x, held.train_y, test_x, held.test_y, held.classes, held.client)


DATASETS: dict[str, type] = {
    "digits": Digits,
    "mnist": Mnist,
    "fashion_mnist": FashionMnist,
    "cifar10": Cifar10,
    "adult": Adult,
    "synthetic": Synthetic,
    "file": File,
}
