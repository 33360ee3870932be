"""Published data sets, read from a folder in their original formats and standardised.

The constants of each set (sizes, shapes, means) are known before any file is read, so scenarios are checked early.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nodes.datasets.client_split import Iid
from nodes.datasets.dataset import Dataset, Floats, PixelRange, SplitChoice, one_hot, standardised_pixels
from nodes.datasets.generated import Generated
from nodes.datasets.images import Images
from nodes.datasets.original_formats import Source, check_labels, read_adult, read_cifar_batch, read_idx
from nodes.datasets.standardisation import (
    Deviations,
    Means,
    Standardise,
    check_settings,
    pooled_statistics,
    standardise,
)
from p2p.config.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Mnist(Images):
    """60,000 + 10,000 grey 28x28 handwritten digits, standardised by the published mean and deviation.

    Attributes:
        split: who holds which records
        generated: generated records that take the place of some real ones in training; none uses real ones only
    """

    SOURCE: ClassVar[Source] = Source(
        "mnist",
        "mnist",
        "the authors' page http://yann.lecun.com/exdb/mnist or torchvision.datasets.MNIST",
        {
            "train-images-idx3-ubyte.gz": "SHA-256 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "SHA-256 3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "SHA-256 8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "SHA-256 f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
    )
    SHAPE: ClassVar[tuple[int, ...]] = (1, 28, 28)
    MEAN: ClassVar[tuple[float, ...]] = (0.1307,)
    STD: ClassVar[tuple[float, ...]] = (0.3081,)
    PIXELS: ClassVar[PixelRange] = standardised_pixels(MEAN, STD)
    CLASS_COUNTS: ClassVar[tuple[int, ...]] = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)

    def load(self, data_dir: Path, seed: int) -> Dataset:
        """Loads the set's own train and test parts."""
        return _load_idx(self.SOURCE, self.MEAN, self.STD, data_dir)


@dataclass(frozen=True, slots=True, kw_only=True)
class FashionMnist(Mnist):
    """60,000 + 10,000 grey 28x28 pieces of clothing, standardised by the published mean and deviation.

    Attributes:
        split: who holds which records
        generated: generated records that take the place of some real ones in training; none uses real ones only
    """

    SOURCE: ClassVar[Source] = Source(
        "fashion_mnist",
        "fashion-mnist",
        "https://github.com/zalandoresearch/fashion-mnist or torchvision.datasets.FashionMNIST",
        {
            "train-images-idx3-ubyte.gz": "SHA-256 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte.gz": "SHA-256 a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte.gz": "SHA-256 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte.gz": "SHA-256 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        },
    )
    MEAN: ClassVar[tuple[float, ...]] = (0.2860,)
    STD: ClassVar[tuple[float, ...]] = (0.3530,)
    PIXELS: ClassVar[PixelRange] = standardised_pixels(MEAN, STD)
    CLASS_COUNTS: ClassVar[tuple[int, ...]] = (6000,) * 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Cifar10(Images):
    """50,000 + 10,000 colour 32x32 images, standardised by the published means and deviations.

    Attributes:
        split: who holds which records
        generated: generated records that take the place of some real ones in training; none uses real ones only
    """

    SOURCE: ClassVar[Source] = Source(
        "cifar10",
        "cifar10",
        "the binary version on the authors' page https://www.cs.toronto.edu/~kriz/cifar.html",
        {
            "data_batch_1.bin": "MD5 5dd7e06a14cb22eb9f671a540d1b7c25",
            "data_batch_2.bin": "MD5 5ea93a67294ea407fff1d09f752e9692",
            "data_batch_3.bin": "MD5 942cd6a4bcdd0dd3c604fbe906cb4421",
            "data_batch_4.bin": "MD5 ae636b3ba5c66a11e91e8cb52e771fcb",
            "data_batch_5.bin": "MD5 53f37980c15c3d472c316c40844f3f0d",
            "test_batch.bin": "MD5 803d5f7f4d78ea53de84dbe85f74fb6d",
        },
    )
    SHAPE: ClassVar[tuple[int, ...]] = (3, 32, 32)
    MEAN: ClassVar[tuple[float, ...]] = (0.49140, 0.48216, 0.44653)
    STD: ClassVar[tuple[float, ...]] = (0.24703, 0.24349, 0.26159)
    PIXELS: ClassVar[PixelRange] = standardised_pixels(MEAN, STD)
    CLASS_COUNTS: ClassVar[tuple[int, ...]] = (5000,) * 10

    def load(self, data_dir: Path, seed: int) -> Dataset:
        """Loads the set's own train and test parts."""
        batches = [read_cifar_batch(path) for path in self.SOURCE.locate(data_dir)]
        mean, std = _per_channel(self.MEAN), _per_channel(self.STD)
        # Five training batches, then the test batch.
        images = [_scale(pixels, mean, std) for pixels, _ in batches]
        labels = [label.astype(np.int64) for _, label in batches]
        return Dataset(np.concatenate(images[:-1]), np.concatenate(labels[:-1]), images[-1], labels[-1], 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adult:
    """UCI census income: 32,561 + 16,281 rows, categories one-hot (`?` is one), six numbers standardised.

    Attributes:
        standardise: shift and scale the six numbers, by moments that are pooled (true), per_client or given
        means: for `standardise: given`, a public constant for each of the six numbers
        deviations: for `standardise: given`, a public constant for each of the six numbers
        split: who holds which records
        generated: generated records that take the place of some real ones in training; none uses real ones only
    """

    standardise: Standardise = True
    means: Means = None
    deviations: Deviations = None
    split: SplitChoice = field(default=Iid())
    generated: Generated | None = None
    SOURCE: ClassVar[Source] = Source(
        "adult",
        "adult",
        "the UCI Machine Learning Repository, https://archive.ics.uci.edu/dataset/2/adult",
        {
            "adult.data.gz": "SHA-256 of adult.data 5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            "adult.test.gz": "SHA-256 of adult.test a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        },
    )
    NUMERIC: ClassVar[tuple[int, ...]] = (0, 2, 4, 10, 11, 12)

    def __post_init__(self) -> None:
        """Checks the keys of the standardisation."""
        check_settings(self.standardise, self.means, self.deviations)

    def class_counts(self) -> tuple[int, ...]:
        """Returns the number of training records of each class."""
        return 24_720, 7_841

    def pooled(self) -> tuple[str, ...]:
        """Returns the moments if they are pooled."""
        return pooled_statistics(self.standardise)

    def public(self) -> tuple[str, ...]:
        """Returns what is read off all records and taken as public."""
        return ("categories of each attribute, which adult.names lists",)

    def records(self) -> int:
        """Returns the number of training records."""
        return 32_561

    def form(self) -> tuple[tuple[int, ...], int]:
        """Returns the shape of one record and the number of classes."""
        return (108,), 2

    def load(self, data_dir: Path, seed: int) -> Dataset:
        """Loads the set's own train and test parts; class 1 earns more than 50K."""
        paths = self.SOURCE.locate(data_dir)
        train, test = (np.asarray(read_adult(path)) for path in paths)
        train_x, test_x = self._features(train, test)
        # The label is the last column; `read_adult` has refused any other word.
        train_y, test_y = ((part[:, -1] == ">50K").astype(np.int64) for part in (train, test))
        each = np.arange(len(self.NUMERIC)) if self.standardise == "per_client" else None
        return Dataset(train_x, train_y, test_x, test_y, 2, per_client=each)

    def _features(self, train: NDArray[np.str_], test: NDArray[np.str_]) -> list[Floats]:
        columns = list(self.NUMERIC)
        try:
            numbers = [part[:, columns].astype(np.float32) for part in (train, test)]
        except ValueError as error:
            raise UserError(
                f"data.name = adult: a numeric attribute is not a number ({error}); fetch it again"
            ) from error
        named = [column for column in range(14) if column not in self.NUMERIC]
        # Categories come from the train part alone; one that occurs only in the test part becomes all zeros.
        coded = [
            np.concatenate([one_hot(part[:, column], np.unique(train[:, column])) for column in named], axis=1)
            for part in (train, test)
        ]
        scaled = standardise(self.standardise, self.means, self.deviations, *numbers)
        return [np.concatenate(pair, axis=1) for pair in zip(scaled, coded, strict=True)]


def _load_idx(source: Source, means: tuple[float, ...], deviations: tuple[float, ...], data_dir: Path) -> Dataset:
    paths = source.locate(data_dir)
    mean, std = _per_channel(means), _per_channel(deviations)
    # A source lists images and labels in turn, train before test.
    images = [_scale(read_idx(path, 3)[:, None], mean, std) for path in paths[::2]]
    labels = [check_labels(read_idx(path, 1), 10, path).astype(np.int64) for path in paths[1::2]]
    # Each file is whole by itself, but two of different sets would pass until here.
    for path, part, classes in zip(paths[::2], images, labels, strict=True):
        if len(part) != len(classes):
            raise UserError(f"data file {path}: has {len(part)} images for {len(classes)} labels; fetch it again")
    return Dataset(images[0], labels[0], images[1], labels[1], 10)


def _per_channel(constants: tuple[float, ...]) -> Floats:
    return np.asarray(constants, dtype=np.float32).reshape(-1, 1, 1)


def _scale(pixels: NDArray[np.uint8], mean: Floats, std: Floats) -> Floats:
    return ((pixels.astype(np.float32) / np.float32(255.0)) - mean) / std
