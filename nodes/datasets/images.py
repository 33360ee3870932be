"""What sets of images have in common: their constants are known before any file is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from nodes.datasets.client_split import Iid
from nodes.datasets.dataset import PixelRange, SplitChoice
from nodes.datasets.generated import Generated


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Labelled images whose pixels are scaled by public constants.

    Attributes:
        split: who holds which records
        generated: generated records that take the place of some real ones in training; none uses real ones only
    """

    split: SplitChoice = field(default=Iid())
    generated: Generated | None = None
    SHAPE: ClassVar[tuple[int, ...]]
    PIXELS: ClassVar[PixelRange]
    CLASS_COUNTS: ClassVar[tuple[int, ...]]

    def class_counts(self) -> tuple[int, ...]:
        """Returns the number of training records of each class."""
        return self.CLASS_COUNTS

    def records(self) -> int:
        """Returns the number of training records."""
        return sum(self.CLASS_COUNTS)

    def pooled(self) -> tuple[str, ...]:
        """Returns nothing: constants are public, and a test set is drawn before any client has records."""
        return ()

    def form(self) -> tuple[tuple[int, ...], int]:
        """Returns the shape of one record and the number of classes."""
        return self.SHAPE, len(self.CLASS_COUNTS)

    def value_range(self) -> tuple[float, float]:
        """Returns the bounds of all pixels of all channels."""
        return min(self.PIXELS.black), max(self.PIXELS.white)

    def pixel_range(self) -> PixelRange:
        """Returns the values of black and white for each channel."""
        return self.PIXELS
