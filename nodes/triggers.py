"""Phases as they are reached, for whoever wants something to happen "in round 3, while the leader aggregates"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["invite", "train", "share", "send", "aggregate", "broadcast"]
Moment = Phase | Literal["appointed"]
"""A phase, or the moment a member gets its assignment."""
Watch = Callable[[int, int, str], None]


@dataclass(slots=True)
class Triggers:
    """Processes say which phase they have reached; each (node, round, phase) is told once."""

    watches: list[Watch] = field(default_factory=list)
    _reached: set[tuple[int, int, str]] = field(default_factory=set)

    def reach(self, node: int, round_number: int, phase: Moment) -> None:
        """A node has reached a phase of a round."""
        if not self.watches or (node, round_number, phase) in self._reached:
            return
        self._reached.add((node, round_number, phase))
        for watch in self.watches:
            watch(node, round_number, phase)
