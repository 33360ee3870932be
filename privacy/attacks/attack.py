"""The interface of attacks: `unfit` says why a position cannot, `guess` reads a view, `score` knows the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.attacks.observations import Position, Truth, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A diagram of lines for the report page; `lines` maps a line's name to its points."""

    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    text: str = ""
    """What it shows in a sentence, for those who do not see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureGrid:
    """Small pictures in rows, such as originals above reconstructions.

    Attributes:
        images: [rows, columns, height, width] or [rows, columns, height, width, 3], 0 to 1
        rows: a label for each row
    """

    title: str
    rows: Sequence[str]
    images: NDArray[np.float32]
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an attack achieved.

    Attributes:
        headline: one sentence that begins with the figure
        figures: what goes into the summary; plain values
        table: columns of equal length, written as `attacks/KIND-OBSERVER.parquet`
    """

    headline: str
    figures: Mapping[str, Any]
    table: Mapping[str, Any] = field(default_factory=dict)
    curves: Sequence[Curve] = ()
    grids: Sequence[PictureGrid] = ()


class Attack(Protocol):
    """A frozen dataclass; its fields are the keys of an entry of `attacks`, and the options of `peerveil attack`."""

    @property
    def by(self) -> str:
        """The observer whose view is attacked; all that can, if empty."""

    def unfit(self, position: Position) -> str:
        """Returns why this position cannot carry the attack out, with the cure; empty if it can."""

    def guess(self, view: View) -> Any:
        """Returns guesses from the view alone."""

    def score(self, guess: Any, truth: Truth) -> Result:
        """Compares the guesses with the truth."""
