"""Client availability: always up, alternating random up and down times, or a trace file."""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from nodes.faults.trace_models import TRACES
from p2p.config.distributions import DelayPerNode, Distribution, Exponential, rounded
from p2p.config.errors import UserError
from p2p.config.file_paths import FilePath
from p2p.config.units import PositiveSeconds, Seconds
from p2p.random_streams import draw, stream

Stretch = tuple[float, float]
"""An interval in which a node is down: start and end in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Always:
    """All clients are always up."""

    def down(self, node: int, seed: int) -> Iterator[Stretch]:
        """Yields no down intervals."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """Churn: up and down times alternate, each drawn from its own distribution.

    Attributes:
        mean_up: mean of exponential up times; `up` takes its place
        mean_down: mean of exponential down times; `down_for` takes its place
        up: distribution of the up times, such as {kind: weibull, scale: 20 min, shape: 0.6}
        down_for: distribution of the down times
        start: no client leaves before this time
    """

    mean_up: PositiveSeconds | None = None
    mean_down: PositiveSeconds | None = None
    up: DelayPerNode | None = None
    down_for: DelayPerNode | None = None
    start: Seconds = 0.0

    def __post_init__(self) -> None:
        pairs = (("mean_up", self.mean_up, "up", self.up), ("mean_down", self.mean_down, "down_for", self.down_for))
        for mean_name, mean, full_name, full in pairs:
            if (mean is None) == (full is None):
                raise UserError(f"{mean_name}: needs exactly one of {mean_name} and {full_name}; give one of them")

    def down(self, node: int, seed: int) -> Iterator[Stretch]:
        """Yields down intervals without end; they depend on the seed and the node only."""
        up, down = _distribution(self.mean_up, self.up), _distribution(self.mean_down, self.down_for)
        now_s = self.start
        # Drawn by number, not from a generator: one for each of a million nodes would take gigabytes.
        for number in count():
            begin_s = now_s + _duration(up, draw(seed, "churn-up", number, node))
            now_s = begin_s + _duration(down, draw(seed, "churn-down", number, node))
            yield begin_s, now_s


@dataclass(frozen=True, slots=True, kw_only=True)
class UpTrace:
    """Up times read from a CSV file with the columns `node,up_s,down_s`: one row per up interval.

    Attributes:
        path: the file, relative to the scenario; nodes without a row are always up
    """

    path: FilePath
    stretches: tuple[tuple[int, float, float], ...] = field(default=(), repr=False, metadata={"key": False})

    def __post_init__(self) -> None:
        rows = self.stretches or tuple(_read_trace(Path(self.path)))
        # Sorted, so that a node's rows stand together: looking at all rows for every node would take their product.
        object.__setattr__(self, "stretches", tuple(sorted(rows)))

    def down(self, node: int, seed: int) -> Iterator[Stretch]:
        """Yields the gaps between the node's rows; after its last row the node stays down."""
        first, last = (bisect_left(self.stretches, (which,)) for which in (node, node + 1))
        ups = [(up_s, down_s) for _, up_s, down_s in self.stretches[first:last]]
        if not ups:
            return
        end_s = 0.0
        for up_s, down_s in ups:
            # Rows that meet end to end leave no gap.
            if up_s > end_s:
                yield end_s, up_s
            end_s = down_s
        # A trace says when a node is up; after its last row nothing says so.
        yield end_s, np.inf


TraceName = Literal["phones_rarely_online", "phones_often_online", "phones_mostly_online", "phones_charging"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTrace:
    """A day-long trace that ships, generated from published statistics (`peerveil list traces` has their sources).

    Attributes:
        trace: which one
        start: the time of day at which the run begins, such as `20 h`
    """

    trace: TraceName
    start: Seconds = 0.0

    def down(self, node: int, seed: int) -> Iterator[Stretch]:
        """Yields down intervals without end; they depend on the seed and the node only."""
        for begin_s, end_s in TRACES[self.trace].down(stream(seed, "day-trace", node), self.start):
            # Rounded like all durations, so that equal inputs give equal instants on every platform.
            yield float(rounded(np.array(begin_s), "s")), float(rounded(np.array(end_s), "s"))


AVAILABILITIES: dict[str, type] = {"always": Always, "churn": Churn, "trace": UpTrace, "day": DayTrace}


def _distribution(mean_s: float | None, given: Distribution | None) -> Distribution:
    return given if given is not None else Exponential(mean=mean_s or 1.0)


def _duration(distribution: Distribution, u: float) -> float:
    # At least a millisecond, so that a node cannot alternate infinitely often at one instant.
    return max(1e-3, rounded(distribution.quantiles(np.array([u])), "s").item())


def _read_trace(path: Path) -> Iterator[tuple[int, float, float]]:
    problems: list[str] = []
    rows: list[tuple[int, float, float]] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.DictReader(file), start=2):
                try:
                    node, up_s, down_s = int(row["node"]), float(row["up_s"]), float(row["down_s"])
                except (KeyError, TypeError, ValueError) as reason:
                    problems.append(f"path = {path.name}: line {number}: needs numbers node,up_s,down_s ({reason})")
                    continue
                if not 0 <= up_s < down_s:
                    problems.append(f"path = {path.name}: line {number}: up_s must be >= 0 and before down_s")
                rows.append((node, up_s, down_s))
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        raise UserError(f"path = {path}: cannot be read as CSV ({reason}); give a readable file") from reason
    problems.extend(_overlaps(rows, path))
    if problems or not rows:
        # A wrong separator spoils every line; the first five problems are enough to see it.
        raise UserError(problems[:5] or f"path = {path.name}: has no rows; give node,up_s,down_s")
    yield from rows


def _overlaps(rows: list[tuple[int, float, float]], path: Path) -> Iterator[str]:
    ordered = sorted(rows)
    for (node, up_s, down_s), (other, next_up_s, _) in pairwise(ordered):
        if node == other and next_up_s < down_s:
            yield f"path = {path.name}: node {node} is up from {up_s:g} and again from {next_up_s:g}; join the rows"
