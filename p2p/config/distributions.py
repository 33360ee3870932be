"""Distributions of quantities that vary between nodes or between pairs of nodes.

A strategy's field is annotated with one of the aliases at the end (`uplink: RatePerNode`). In a scenario its value
is a bare quantity (`20 Mbit/s`) or a mapping (`{kind: lognormal, median: 20 Mbit/s, sigma: 0.5}`); quantities inside
a mapping have the unit of the field. Draws are counter-based: `quantiles(draws(seed, name, ids))` gives each id its
own value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from p2p.config.csv_columns import read_column
from p2p.config.errors import UserError
from p2p.config.file_paths import FilePath
from p2p.config.normal_quantile import normal_quantiles
from p2p.config.units import Unit

Floats = NDArray[np.float64]


class InUnitOfField:
    """Marks a parameter of a distribution that has the unit of the enclosing field."""


Quantity = Annotated[float, InUnitOfField()]


class Distribution(Protocol):
    """The distribution of a non-negative quantity, given by its quantile function."""

    def quantiles(self, u: Floats) -> Floats:
        """Returns the quantiles at probabilities `u` in the open interval (0, 1)."""

    def support(self) -> tuple[float, float]:
        """Returns the smallest and the largest possible value; the latter may be infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The same value for all.

    Attributes:
        value: the value
    """

    value: Quantity

    def quantiles(self, u: Floats) -> Floats:
        """Returns `value` for every u."""
        return np.full(np.shape(u), self.value)

    def support(self) -> tuple[float, float]:
        """Returns the single point."""
        return self.value, self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """All values from `low` to `high` are equally likely.

    Attributes:
        low: the smallest value
        high: the largest value
    """

    low: Quantity
    high: Quantity

    def __post_init__(self) -> None:
        if self.high < self.low:
            raise UserError(f"high = {self.high:g}: must be >= low, which is {self.low:g}")

    def quantiles(self, u: Floats) -> Floats:
        """Interpolates linearly from low to high."""
        return self.low + (self.high - self.low) * u

    def support(self) -> tuple[float, float]:
        """Returns low and high."""
        return self.low, self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Lognormal:
    """The logarithm is normally distributed: half of all draws lie below `median`, and a few far above it.

    Attributes:
        median: half of all draws are smaller
        sigma: standard deviation of the natural logarithm; 0.5 puts 95% within a factor 2.7 of the median
    """

    median: Quantity
    sigma: Annotated[float, Gt(0), Le(10)]

    def __post_init__(self) -> None:
        if self.median <= 0:
            # The bounds of the field are checked later; a logarithm needs this one in any field.
            raise UserError(f"median = {self.median:g}: must be > 0")

    def quantiles(self, u: Floats) -> Floats:
        """`median * exp(sigma * Phi^-1(u))`."""
        return np.asarray(self.median * np.exp(self.sigma * normal_quantiles(u)), dtype=np.float64)

    def support(self) -> tuple[float, float]:
        """Returns the positive half-line."""
        return 0.0, math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto:
    """No values below `minimum`, and a power-law tail above it.

    Attributes:
        minimum: the smallest value
        shape: exponent of the tail; the mean is finite above 1, the variance above 2
    """

    minimum: Quantity
    shape: Annotated[float, Ge(0.1)]

    def __post_init__(self) -> None:
        if self.minimum <= 0:
            raise UserError(f"minimum = {self.minimum:g}: must be > 0")

    def quantiles(self, u: Floats) -> Floats:
        """`minimum * (1 - u)^(-1/shape)`."""
        return np.asarray(self.minimum * (1.0 - u) ** (-1.0 / self.shape), dtype=np.float64)

    def support(self) -> tuple[float, float]:
        """Returns the half-line from the minimum."""
        return self.minimum, math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Memoryless times: the remaining time does not depend on the time elapsed.

    Attributes:
        mean: the mean
    """

    mean: Quantity

    def __post_init__(self) -> None:
        if self.mean <= 0:
            raise UserError(f"mean = {self.mean:g}: must be > 0")

    def quantiles(self, u: Floats) -> Floats:
        """`-mean * log(1 - u)`."""
        # `log1p` keeps the digits of small u.
        return np.asarray(-self.mean * np.log1p(-u), dtype=np.float64)

    def support(self) -> tuple[float, float]:
        """Returns the positive half-line."""
        return 0.0, math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Weibull:
    """Lifetimes: the hazard rate falls with age for shape below 1 (as in peer sessions) and rises for shape above 1.

    Attributes:
        scale: 63% of all draws are smaller
        shape: how the hazard rate changes with age; 1 is the exponential distribution
    """

    scale: Quantity
    shape: Annotated[float, Ge(0.1), Le(100)]

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise UserError(f"scale = {self.scale:g}: must be > 0")

    def quantiles(self, u: Floats) -> Floats:
        """`scale * (-log(1 - u))^(1/shape)`."""
        return np.asarray(self.scale * (-np.log1p(-u)) ** (1.0 / self.shape), dtype=np.float64)

    def support(self) -> tuple[float, float]:
        """Returns the positive half-line."""
        return 0.0, math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Empirical:
    """Draws from the rows of a CSV file with equal probability.

    Attributes:
        path: a CSV file with a line of column names, relative to the scenario file
        column: name of the column; a cell may have a unit
    """

    path: FilePath
    column: str
    values: tuple[float, ...] = field(default=(), repr=False, metadata={"key": False})

    def quantiles(self, u: Floats) -> Floats:
        """Returns the empirical quantiles of the column."""
        # `minimum`: the product can round up to the length for u close to 1.
        rows = np.sort(np.asarray(self.values, dtype=np.float64))
        return rows[np.minimum((u * len(rows)).astype(np.int64), len(rows) - 1)]

    def support(self) -> tuple[float, float]:
        """Returns the smallest and largest value of the column."""
        return min(self.values), max(self.values)

    def loaded(self, unit: Unit) -> Empirical:
        """Returns a copy with the column read from the file."""
        return replace(self, values=tuple(read_column(Path(self.path), self.column, unit)))


DISTRIBUTIONS: dict[str, type] = {
    "constant": Constant,
    "uniform": Uniform,
    "lognormal": Lognormal,
    "pareto": Pareto,
    "exponential": Exponential,
    "weibull": Weibull,
    "empirical": Empirical,
}


@runtime_checkable
class FromFile(Protocol):
    """A distribution whose values are stored in a file."""

    def loaded(self, unit: Unit) -> Any:
        """Returns a copy with the file read; UserError names the line and its problem."""


@dataclass(frozen=True, slots=True)
class Drawn(Unit):
    """Marks a field that takes a distribution of a quantity with this unit, within these bounds.

    `more` lists additional kinds that the field accepts, as (kind, class).
    """

    more: tuple[tuple[str, type], ...] = ()

    @property
    def table(self) -> dict[str, type]:
        """All kinds that the field accepts."""
        return DISTRIBUTIONS | dict(self.more)

    def finish(self, distribution: Any) -> Any:
        """Returns the distribution ready for use; this is the only place where its file is read.

        Raises:
            UserError: the column cannot be read, or the distribution's support exceeds the bounds of the field.
        """
        # Values from files are checked against the bounds one by one while they are read.
        if isinstance(distribution, FromFile):
            return distribution.loaded(self)
        low, high = distribution.support()
        if low < self.low or high > self.high:
            raise UserError(f"draws from {low:g} to {high:g}; the field takes {self.low:g} to {self.high:g}")
        return distribution


def rounded(values: Floats, unit: str) -> Floats:
    """Rounds draws to whole bytes/s (at least 1) or whole nanoseconds; other units are unchanged.

    Later computations use only + - * / in a fixed order, so that event times are equal on every machine.
    """
    # Logarithms and exponentials differ in the last bits between math libraries; rounding removes the difference.
    if unit == "bytes/s":
        # A rate of 0 would never send anything: the tail of a distribution must not stop a run.
        return np.maximum(np.rint(values), 1.0)
    if unit == "s":
        return np.asarray(np.rint(values * 1e9) / 1e9, dtype=np.float64)
    return values


RatePerNode = Annotated[Distribution, Drawn("bytes/s", low=0.0, low_open=True)]
SpeedPerNode = Annotated[Distribution, Drawn("samples/s", low=0.0, low_open=True)]
DelayPerPair = Annotated[Distribution, Drawn("s", low=0.0)]
DelayPerNode = Annotated[Distribution, Drawn("s", low=0.0)]
