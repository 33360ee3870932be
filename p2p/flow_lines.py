"""A transfer under way as an object: a straight line of bytes left over time until its rate changes."""

from __future__ import annotations

from typing import NamedTuple

from p2p.progressive_filling import DOWNLINK, UPLINK

NO_HOLDER = -1
FASTEST = 1e200
"""A rate that is as good as infinite, and with which one can still reckon."""


class Line(NamedTuple):
    """Bytes left at `since_s`, from when on it runs at `rate`, held back by a link; and when it ends so."""

    left: float
    since_s: float
    rate: float
    holder: int
    by_up_s: float
    finish_s: float


class Flow:
    """One transfer over the links `up` and `down`.

    Attributes:
        number: the caller's name for it
        line: how it goes on as things stand
        version: grows with each change of its end
    """

    __slots__ = ("down", "line", "number", "started_s", "up", "version")

    def __init__(self, number: int, up: int, down: int, started_s: float, line: Line) -> None:
        self.number, self.up, self.down, self.started_s, self.line = number, up, down, started_s, line
        self.version = 0

    @property
    def links(self) -> tuple[int, int]:
        """Both its links."""
        return self.up, self.down

    def left_at(self, time_s: float) -> float:
        """Bytes that have not left yet."""
        line = self.line
        return max(line.left - line.rate * (time_s - line.since_s), 0.0)

    def turned(self, time_s: float, rate: float, holder: int) -> Line:
        """Its line if it goes on at another rate from now on."""
        line = self.line
        left = self.left_at(time_s)
        by_up_s = line.by_up_s + (time_s - line.since_s if line.holder == self.up else 0.0)
        return Line(left, time_s, rate, holder, by_up_s, time_s + left / rate if rate else float("inf"))

    def held_by(self, end_s: float) -> int:
        """The kind of link that held it back for at least half of its time, if it ends so."""
        line = self.line
        by_up_s = line.by_up_s + (end_s - line.since_s if line.holder == self.up else 0.0)
        return UPLINK if 2 * by_up_s >= end_s - self.started_s else DOWNLINK
