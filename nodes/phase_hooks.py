"""Phase hooks: notify listeners when a node reaches a phase, such as "round 3, while the leader aggregates"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["invite", "train", "share", "send", "aggregate", "broadcast"]
Moment = Phase | Literal["appointed"]
"""A phase, or the moment a member receives its assignment."""
PhaseListener = Callable[[int, int, str], None]


@dataclass(slots=True)
class PhaseHooks:
    """Notifies listeners of the phases that processes reach, once per (node, round, phase)."""

    listeners: list[PhaseListener] = field(default_factory=list)
    _reached: set[tuple[int, int, str]] = field(default_factory=set)

    def notify(self, node: int, round_number: int, phase: Moment) -> None:
        """Notifies the listeners that a node has reached a phase of a round."""
        # Without listeners nothing is stored: long runs reach millions of phases.
        if not self.listeners or (node, round_number, phase) in self._reached:
            return
        self._reached.add((node, round_number, phase))
        for watch in self.listeners:
            watch(node, round_number, phase)
