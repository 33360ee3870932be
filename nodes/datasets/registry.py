"""Data sets available to scenarios; each provides float32 records, integer labels and a global test set.

Nothing is downloaded: `digits` ships with scikit-learn, `synthetic` is generated, the others are read from a folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Interval, Len

from nodes.datasets.client_split import Iid
from nodes.datasets.dataset import (
    Dataset,
    Floats,
    Ints,
    PixelRange,
    SplitChoice,
    hold_out,
    mark_by_class,
    mark_by_number,
)
from nodes.datasets.generated import Generated
from nodes.datasets.images import Images
from nodes.datasets.original_formats import resolve_data_dir
from nodes.datasets.plays import Shakespeare
from nodes.datasets.published import Adult, Cifar10, FashionMnist, Mnist
from nodes.datasets.standardisation import (
    Deviations,
    Means,
    Standardise,
    check_settings,
    pooled_statistics,
    standardise,
)
from nodes.datasets.user_files import read_records
from p2p.config.file_paths import FilePath
from p2p.random_streams import stream

__all__ = ["DATASETS", "Dataset", "resolve_data_dir"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits(Images):
    """1,797 grey 8x8 digits that ship with scikit-learn; a fifth of each class is the test set.

    Attributes:
        split: who holds which records
        generated: generated records that take the place of some real ones in training; none uses real ones only
    """

    SHAPE: ClassVar[tuple[int, ...]] = (1, 8, 8)
    PIXELS: ClassVar[PixelRange] = PixelRange()
    # 178, 182, 177, ... minus a fifth of each, rounded as in `mark_by_class`.
    CLASS_COUNTS: ClassVar[tuple[int, ...]] = (142, 146, 142, 146, 145, 146, 145, 143, 139, 144)

    def load(self, data_dir: Path, seed: int) -> Dataset:
        """Loads pixels scaled to [0, 1]; the test set is drawn from the seed."""
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
        # Grey values of this set run from 0 to 16.
        images = (pixels / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
        classes = labels.astype(np.int64)
        return hold_out(images, classes, mark_by_class(classes, 0.2, seed))


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
        generated: generated records that take the place of some real ones in training; none uses real ones only
    """

    samples: Annotated[int, Ge(1)] = 2000
    test_samples: Annotated[int, Ge(1)] = 500
    features: Annotated[int, Ge(1)] = 20
    shape: Annotated[tuple[Annotated[int, Ge(1)], ...], Len(1)] | None = None
    classes: Annotated[int, Ge(2)] = 10
    spread: Annotated[float, Gt(0)] = 1.0
    split: SplitChoice = field(default=Iid())
    generated: Generated | None = None

    def class_counts(self) -> tuple[int, ...]:
        """Returns the number of training records of each class; they differ by at most one."""
        return tuple(len(range(label, self.samples, self.classes)) for label in range(self.classes))

    def records(self) -> int:
        """Returns the number of training records."""
        return self.samples

    def pooled(self) -> tuple[str, ...]:
        """Returns nothing: every record is drawn by itself."""
        return ()

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
        test_share: share of the records held out as the global test set, drawn by their numbers
        standardise: shift and scale every feature, by moments that are pooled (true), per_client or given
        means: for `standardise: given`, a public constant for each feature
        deviations: for `standardise: given`, a public constant for each feature
        split: who holds which records
        generated: generated records that take the place of some real ones in training; none uses real ones only
    """

    path: FilePath
    label: str = "label"
    client: str | None = None
    test_share: Annotated[float, Interval(gt=0, lt=1)] = 0.2
    standardise: Standardise = True
    means: Means = None
    deviations: Deviations = None
    split: SplitChoice = field(default=Iid())
    generated: Generated | None = None

    def __post_init__(self) -> None:
        """Checks the keys of the standardisation."""
        check_settings(self.standardise, self.means, self.deviations)

    def class_counts(self) -> None:
        """Returns None: unknown before the file is read."""

    def records(self) -> None:
        """Returns None: unknown before the file is read."""

    def form(self) -> None:
        """Returns None: unknown before the file is read."""

    def pooled(self) -> tuple[str, ...]:
        """Returns the moments if they are pooled; the test set is drawn by record number."""
        return pooled_statistics(self.standardise)

    def public(self) -> tuple[str, ...]:
        """Returns what is read off all records and taken as public."""
        return ("names of the classes, and of the categories of text columns, in the data file",)

    def load(self, data_dir: Path, seed: int) -> Dataset:
        """Loads the file; labels and owners become 0, 1, ... in sorted order, the test set is drawn from the seed."""
        path = Path(self.path)
        stored = read_records(path if path.is_file() else data_dir / path, self.label, self.client)
        labels = np.unique(stored.labels, return_inverse=True)[1].astype(np.int64)
        owners = None
        if stored.owners is not None:
            owners = np.unique(stored.owners, return_inverse=True)[1].astype(np.int64)
        tested = mark_by_number(len(labels), self.test_share, seed)
        # Before the moments are taken, so that test records do not enter them.
        held = hold_out(stored.features, labels, tested, owners)
        train_x, test_x = standardise(self.standardise, self.means, self.deviations, held.train_x, held.test_x)
        # All features: a category's column is standardised like a number.
        each = np.arange(prod(held.shape)) if self.standardise == "per_client" else None
        return replace(held, train_x=train_x, test_x=test_x, per_client=each)


DATASETS: dict[str, type] = {
    "digits": Digits,
    "mnist": Mnist,
    "fashion_mnist": FashionMnist,
    "cifar10": Cifar10,
    "adult": Adult,
    "shakespeare": Shakespeare,
    "synthetic": Synthetic,
    "file": File,
}
