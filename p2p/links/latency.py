"""Latency models that depend on both ends of a path: world regions, and measured matrices.

`network.latency` takes a distribution (drawn independently for each pair, see p2p/config/distributions.py) or one of
`LATENCIES`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from p2p.config.distributions import Distribution, Drawn, rounded
from p2p.config.errors import UserError
from p2p.config.file_paths import FilePath
from p2p.config.population_shares import place_of, share_problem
from p2p.config.units import SCALES, Fraction, Seconds, Unit
from p2p.links.latency_regions import REGIONS, one_way_s
from p2p.random_streams import draws

Nodes = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST_ROWS = 5000  # a dense matrix of this size takes 200 MB
_MOST_PROBLEMS = 5


@runtime_checkable
class PairLatency(Protocol):
    """A latency model that depends on both ends of a path."""

    def between(self, seed: int, senders: Nodes, receivers: Nodes) -> Floats:
        """Returns the one-way latency in seconds from each sender to its receiver (arrays that broadcast)."""


class PlacedNodes(NamedTuple):
    """The nodes of a run in a table of latencies: `places` has the row of each node."""

    table: Floats
    places: Nodes

    def latencies(self, senders: Nodes, receivers: Nodes) -> Floats:
        """Returns the one-way latency in whole nanoseconds from each sender to its receiver."""
        return np.asarray(self.table[self.places[senders], self.places[receivers]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """Nodes are placed in regions of the world; p2p/links/latency_regions.py has the round-trip times between them.

    Attributes:
        regions: region to share of the nodes placed there; equal shares of all regions if not given
        same_region: one-way latency between two nodes of one region
    """

    regions: dict[str, Fraction] = field(default_factory=dict)
    same_region: Seconds = 0.005

    def __post_init__(self) -> None:
        unknown = [name for name in self.regions if name not in REGIONS]
        problems = [f"regions.{name}: unknown region; known are {', '.join(REGIONS)}" for name in unknown]
        problems += share_problem("regions", list(self.regions.values())) if self.regions else []
        if problems:
            raise UserError(problems)

    @property
    def names(self) -> list[str]:
        """Regions in use, in the order given."""
        return list(self.regions or REGIONS)

    def region_of(self, seed: int, nodes: Nodes) -> Nodes:
        """Returns the region of each node as an index into `names`."""
        return place_of(draws(seed, "region", nodes), list(self.regions.values()) or [1 / len(REGIONS)] * len(REGIONS))

    def between(self, seed: int, senders: Nodes, receivers: Nodes) -> Floats:
        """Returns half the round-trip time between the two regions."""
        table = one_way_s(self.names, self.same_region)
        return np.asarray(table[self.region_of(seed, senders), self.region_of(seed, receivers)])

    def placed(self, seed: int, nodes: int) -> PlacedNodes:
        """Returns the nodes of a run in the table of regions."""
        # Rounded once for the table; `pair_latencies` rounds what `between` gives in the same way.
        table = rounded(one_way_s(self.names, self.same_region), "s")
        return PlacedNodes(table, self.region_of(seed, np.arange(nodes)))

    def support(self) -> tuple[float, float]:
        """Returns the smallest and the largest latency."""
        table = one_way_s(self.names, self.same_region)
        return float(table.min()), float(table.max())


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Measured latencies: a square CSV file, from row to column, with or without column names (and then row names).

    Two nodes of one row have the latency on the diagonal; an empty cell there is 0. An asymmetric matrix gives the two
    directions of a path different latencies.

    Attributes:
        path: the CSV file, relative to the scenario file
        unit: unit of its numbers
        round_trip: true if they are round-trip times, which are halved; false if they are one-way latencies
        place: random draws a row for every node, in_order gives node i row i and starts over after the last
    """

    path: FilePath
    unit: Literal["s", "ms", "us"] = "ms"
    round_trip: bool = True
    place: Literal["random", "in_order"] = "random"
    seconds: Floats = field(
        default_factory=lambda: np.zeros((1, 1)), repr=False, compare=False, metadata={"key": False}
    )

    def loaded(self, unit: Unit) -> Matrix:
        """Returns a copy with the file read and converted to one-way seconds."""
        values = read_square(Path(self.path))
        # Round trips are halved: how a measured one is divided between its directions is not known.
        return replace(self, seconds=values * SCALES["s"][self.unit] / (2 if self.round_trip else 1))

    def row_of(self, seed: int, nodes: Nodes) -> Nodes:
        """Returns the matrix row of each node."""
        count = len(self.seconds)
        if self.place == "in_order":
            return np.asarray(np.asarray(nodes) % count)
        return (draws(seed, "latency row", nodes) * count).astype(np.int64)

    def between(self, seed: int, senders: Nodes, receivers: Nodes) -> Floats:
        """Returns the entry in the sender's row and the receiver's column."""
        return np.asarray(self.seconds[self.row_of(seed, senders), self.row_of(seed, receivers)])

    def placed(self, seed: int, nodes: int) -> PlacedNodes:
        """Returns the nodes of a run in the matrix."""
        return PlacedNodes(rounded(self.seconds, "s"), self.row_of(seed, np.arange(nodes)))

    def support(self) -> tuple[float, float]:
        """Returns the smallest and the largest latency."""
        return float(self.seconds.min()), float(self.seconds.max())


LATENCIES: dict[str, type] = {"matrix": Matrix, "regions": Regions}

LatencyPerPair = Annotated[Distribution | PairLatency, Drawn("s", low=0.0, more=tuple(LATENCIES.items()))]


def pair_latencies(latency: Distribution | PairLatency, seed: int, senders: Nodes, receivers: Nodes) -> Floats:
    """Returns one-way latencies in whole nanoseconds; drawn ones are equal in both directions of a path."""
    if isinstance(latency, PairLatency):
        return rounded(latency.between(seed, senders, receivers), "s")
    # The unordered pair names the draw, which makes it symmetric.
    u = draws(seed, "latency", np.minimum(senders, receivers), np.maximum(senders, receivers))
    return rounded(latency.quantiles(u), "s")


def read_square(path: Path) -> Floats:
    """Reads the numbers of a square CSV file.

    Raises:
        UserError: it cannot be read, is not square, or has cells that are not numbers >= 0, by line and column.
    """
    lines = _lines(path)
    # Any text in the first line makes it a line of names.
    labelled = bool(lines) and any(_number(cell) is None for cell in lines[0][1] if cell)
    names, rows = (lines[0][1], lines[1:]) if labelled else ([], lines)
    # One name more than rows: the first column holds row names.
    skip = 1 if len(names) == len(rows) + 1 else 0
    problems = _shape_problems(path, rows, skip)
    values = np.zeros((len(rows), len(rows)))
    for index, (line, cells) in enumerate(rows if not problems else []):
        for column, cell in enumerate(cells[skip:]):
            # An empty diagonal is usual in measured matrices: no machine measures the way to itself.
            number = 0.0 if not cell and index == column else _number(cell)
            if number is None or not 0 <= number < np.inf:
                problems.append(_bad_cell(path, cell, line, column + skip + 1, number))
            else:
                values[index, column] = number
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        raise UserError(problems[:_MOST_PROBLEMS] + ([f"path: and {more} more such cells"] if more > 0 else []))
    return values


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Reads the non-empty lines, each with its number."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            # `line_num` counts lines of the file: a quoted cell may span several.
            return [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except csv.Error as reason:
        raise UserError(f"path = {path.name}: line {reader.line_num} is not CSV ({reason}); mend it") from reason
    except (OSError, UnicodeDecodeError) as reason:
        text = reason.strerror if isinstance(reason, OSError) else str(reason)
        raise UserError(f"path = {path}: cannot be read as CSV ({text}); give a readable file") from reason


def _shape_problems(path: Path, rows: list[tuple[int, list[str]]], skip: int) -> list[str]:
    if not rows:
        return [f"path = {path.name}: has no rows of numbers; give a square matrix"]
    # Before the matrix is made, whose memory grows with the square.
    if len(rows) > _MOST_ROWS:
        return [f"path = {path.name}: has {len(rows)} rows; at most {_MOST_ROWS} are taken"]
    wrong: list[Any] = [(line, len(cells) - skip) for line, cells in rows if len(cells) - skip != len(rows)]
    return [
        f"path = {path.name}: line {line} has {width} numbers, the file {len(rows)} rows; a matrix must be square"
        for line, width in wrong[:_MOST_PROBLEMS]
    ]


def _bad_cell(path: Path, cell: str, line: int, column: int, number: float | None) -> str:
    # `number != number` is true for NaN only, which `float` accepts as text.
    rule = "is not a number" if number is None or number != number else "must be finite and >= 0"
    return f"path = {path.name}: line {line}, column {column}: {cell[:20]!r} {rule}"


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
