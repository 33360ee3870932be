"""Quantities that differ from node to node or from pair to pair: a constant, or a law to draw them from.

A strategy's field is annotated with one of the aliases at the end (`uplink: RatePerNode`). In a scenario it
is a bare quantity (`20 Mbit/s`) or a mapping (`{kind: lognormal, median: 20 Mbit/s, sigma: 0.5}`); quantities
inside carry the unit of the field. Draws are counter-based: `quantiles(draws(seed, name, ids))` gives each id
its own value.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from p2p.errors import UserError
from p2p.paths import FilePath
from p2p.units import Unit

Floats = NDArray[np.float64]


class InUnitOfField:
    """Marks a number of a distribution that carries the unit of the field the distribution stands in."""


Quantity = Annotated[float, InUnitOfField()]


class Distribution(Protocol):
    """A law of one positive quantity, given by its inverse distribution function."""

    def quantiles(self, u: Floats) -> Floats:
        """The values below which shares `u` (in the open interval 0 to 1) of all draws lie."""

    def support(self) -> tuple[float, float]:
        """The smallest and the largest value (maybe infinite) that can come out."""

    def expectation(self) -> float:
        """The expected value, maybe infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The same value for everybody.

    Attributes:
        value: the value
    """

    value: Quantity

    def quantiles(self, u: Floats) -> Floats:
        """`value` for every u."""
        return np.full(np.shape(u), self.value)

    def support(self) -> tuple[float, float]:
        """One point."""
        return self.value, self.value

    def expectation(self) -> float:
        """The value."""
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Every value from `low` to `high` alike.

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
        """Linear from low to high."""
        return self.low + (self.high - self.low) * u

    def support(self) -> tuple[float, float]:
        """Low and high."""
        return self.low, self.high

    def expectation(self) -> float:
        """The middle."""
        return (self.low + self.high) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Lognormal:
    """The logarithm is normal: half of all draws lie below `median`, and a few far above it.

    Attributes:
        median: half of all draws are smaller
        sigma: standard deviation of the natural logarithm; 0.5 puts 95% within a factor 2.7 of the median
    """

    median: Quantity
    sigma: Annotated[float, Gt(0), Le(10)]

    def __post_init__(self) -> None:
        if self.median <= 0:
            raise UserError(f"median = {self.median:g}: must be > 0")

    def quantiles(self, u: Floats) -> Floats:
        """`median * exp(sigma * Phi^-1(u))`."""
        from scipy.special import ndtri  # imported late: reading a scenario must stay quick

        return np.asarray(self.median * np.exp(self.sigma * ndtri(u)), dtype=np.float64)

    def support(self) -> tuple[float, float]:
        """All positive numbers."""
        return 0.0, math.inf

    def expectation(self) -> float:
        """Above the median, by the heavy upper tail."""
        return self.median * math.exp(self.sigma**2 / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto:
    """Nothing below `minimum`, and a power-law tail above it.

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
        """From the minimum upwards."""
        return self.minimum, math.inf

    def expectation(self) -> float:
        """Infinite up to shape 1."""
        return self.minimum * self.shape / (self.shape - 1) if self.shape > 1 else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Times without memory: how long it has taken says nothing about how long it will still take.

    Attributes:
        mean: the mean
    """

    mean: Quantity

    def __post_init__(self) -> None:
        if self.mean <= 0:
            raise UserError(f"mean = {self.mean:g}: must be > 0")

    def quantiles(self, u: Floats) -> Floats:
        """`-mean * log(1 - u)`."""
        return np.asarray(-self.mean * np.log1p(-u), dtype=np.float64)

    def support(self) -> tuple[float, float]:
        """All positive numbers."""
        return 0.0, math.inf

    def expectation(self) -> float:
        """The mean."""
        return self.mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Weibull:
    """Lifetimes: below shape 1 the old last longer (sessions of peers do), at 1 it is exponential, above they wear out.

    Attributes:
        scale: 63% of all draws are smaller
        shape: how the rate of ending changes with age
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
        """All positive numbers."""
        return 0.0, math.inf

    def expectation(self) -> float:
        """`scale * Gamma(1 + 1/shape)`."""
        return self.scale * math.gamma(1 + 1 / self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Empirical:
    """Draws from the rows of a CSV file, each row alike.

    Attributes:
        path: a CSV file with a line of column names, relative to the scenario file
        column: which column to take; a cell may carry a unit
    """

    path: FilePath
    column: str
    values: tuple[float, ...] = field(default=(), repr=False, metadata={"key": False})

    def quantiles(self, u: Floats) -> Floats:
        """The value of the row at share `u` of the sorted column."""
        rows = np.sort(np.asarray(self.values, dtype=np.float64))
        return rows[np.minimum((u * len(rows)).astype(np.int64), len(rows) - 1)]

    def support(self) -> tuple[float, float]:
        """The smallest and largest value of the column."""
        return min(self.values), max(self.values)

    def expectation(self) -> float:
        """The mean of the column."""
        return math.fsum(self.values) / len(self.values)

    def loaded(self, unit: Unit) -> Empirical:
        """The same with the column read."""
        return replace(self, values=tuple(_column(self, unit)))


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
    """A law whose numbers stand in a file."""

    def loaded(self, unit: Unit) -> Any:
        """The same law with its file read; UserError names the line and what is wrong there."""


@dataclass(frozen=True, slots=True)
class Drawn(Unit):
    """Marks a field that takes a distribution of a quantity with this unit, within these bounds.

    `more` are kinds beyond the distributions that the field takes as well, as (kind, class).
    """

    more: tuple[tuple[str, type], ...] = ()

    @property
    def table(self) -> dict[str, type]:
        """Every kind that the field takes."""
        return DISTRIBUTIONS | dict(self.more)

    def finish(self, distribution: Any) -> Any:
        """The distribution, ready to draw from (a file is read once, here).

        Raises:
            UserError: the column cannot be read, or values outside the bounds of the field could come out.
        """
        if isinstance(distribution, FromFile):
            return distribution.loaded(self)
        low, high = distribution.support()
        if low < self.low or high > self.high:
            raise UserError(f"draws from {low:g} to {high:g}; the field takes {self.low:g} to {self.high:g}")
        return distribution


def rounded(values: Floats, unit: str) -> Floats:
    """Draws as the clock uses them: whole bytes/s (at least 1), whole nanoseconds, others as they are.

    After this only + - * / in a fixed order touch them, so that events are equal on every machine.
    """
    if unit == "bytes/s":
        return np.maximum(np.rint(values), 1.0)
    if unit == "s":
        return np.asarray(np.rint(values * 1e9) / 1e9, dtype=np.float64)
    return values


def _column(source: Empirical, unit: Unit) -> list[float]:
    problems: list[str] = []
    values: list[float] = []
    for line, cell in _cells(Path(source.path), source.column):
        try:
            values.append(unit.check(cell.strip()))
        except ValueError as reason:
            problems.append(f"column = {cell}: line {line} of {Path(source.path).name} {reason}")
    if not values and not problems:
        problems.append(f"path = {source.path}: has no rows below the line of column names")
    if problems:
        raise UserError(_few(problems))
    return values


def _cells(path: Path, column: str) -> Iterator[tuple[int, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            names = rows.fieldnames or []
            if column not in names:
                raise UserError(f"column = {column}: not in {path.name}; its columns are {', '.join(names) or 'none'}")
            yield from ((rows.line_num, row[column] or "") for row in rows)
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        text = reason.strerror if isinstance(reason, OSError) else str(reason)
        raise UserError(f"path = {path}: cannot be read as CSV ({text}); give a readable file") from reason


def _few(problems: list[str], limit: int = 5) -> list[str]:
    """The first few: a file of a million bad cells is one mistake."""
    if len(problems) <= limit:
        return problems
    return [*problems[:limit], f"column: and {len(problems) - limit} more such lines"]


RatePerNode = Annotated[Distribution, Drawn("bytes/s", low=0.0, low_open=True)]
SpeedPerNode = Annotated[Distribution, Drawn("samples/s", low=0.0, low_open=True)]
DelayPerPair = Annotated[Distribution, Drawn("s", low=0.0)]
DelayPerNode = Annotated[Distribution, Drawn("s", low=0.0)]
SharePerNode = Annotated[Distribution, Drawn("", low=0.0, high=1.0)]
NumberPerNode = Annotated[Distribution, Drawn("", low=0.0)]
