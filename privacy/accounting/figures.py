"""The epsilon of one view, with how it is known and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

How = Literal["exact", "bound", "inf"]


@dataclass(frozen=True, slots=True)
class EpsilonFigure:
    """The epsilon of a view.

    Attributes:
        epsilon: the figure; infinite where nothing is proved.
        how: exact if the view's mechanism has this epsilon, bound if it has at most this one, inf if none is proved.
        because: one sentence on a bound or an infinite figure; empty if exact.
    """

    epsilon: float
    how: How = "exact"
    because: str = ""

    def unproved(self, because: str) -> EpsilonFigure:
        """Returns the infinite figure with this reason; the first reason stays if there are several."""
        return self if self.how == "inf" and self.because else infinite(because)

    def at_most(self, because: str) -> EpsilonFigure:
        """Returns the same epsilon as a bound; an infinite figure keeps its reason."""
        return self if self.how == "inf" else replace(self, how="bound", because=because)


def infinite(because: str) -> EpsilonFigure:
    """Returns the figure of a view about which nothing is proved."""
    return EpsilonFigure(math.inf, "inf", because)


def proven(epsilon: float, because_infinite: str, bound: str = "") -> EpsilonFigure:
    """Returns a figure for an epsilon that came out of a formula: exact, a bound if `bound` says why, or infinite."""
    if math.isinf(epsilon) or math.isnan(epsilon):
        return infinite(because_infinite)
    return EpsilonFigure(epsilon, "bound", bound) if bound else EpsilonFigure(epsilon)
