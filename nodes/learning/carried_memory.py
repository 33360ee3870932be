"""What aggregators remember beside their model, and what of it goes on with every model that they hand out.

Momentum belongs to a model: a server keeps it, and a leader hands it on with the model, since the next leader goes on
from there. A mask of the last aggregate belongs to a model too: members of a round must have the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy.stages.sparse import largest
from privacy.stages.sparse_wire import Positions
from privacy.stages.wire import DENSE, Encoding

Matrix = NDArray[np.float32]
MOMENTUM, MASK = "momentum", "mask"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    """What a run's aggregators remember.

    Attributes:
        momentum: whether they keep momentum.
        handed_on: whether that goes on with the model, because the aggregator changes.
        mask: how many coordinates of the last aggregate form the mask of the next round; none without such a mask.
    """

    momentum: bool = False
    handed_on: bool = False
    mask: int | None = None

    @property
    def attachments(self) -> dict[str, Encoding]:
        """The encoding of each part that goes with a model."""
        found: dict[str, Encoding] = {MOMENTUM: DENSE} if self.momentum and self.handed_on else {}
        return found if self.mask is None else found | {MASK: Positions()}

    def blank(self, dimension: int) -> dict[str, Attachment]:
        """Returns attachments of the right size without values, for runs that count bytes only."""
        zeros = np.zeros(dimension, dtype=np.float32)
        return {name: Attachment(wire, partial(_itself, zeros)) for name, wire in self.attachments.items()}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A part of an aggregator's memory on its way with a model."""

    wire: Encoding
    find: Callable[[], Matrix]


class CarriedMemory:
    """The memory that belongs to each model of a run, one row per model; the server's is the last one."""

    def __init__(self, rules: MemoryRules, rows: int, dimension: int) -> None:
        self.rules = rules
        # A server keeps its momentum to itself, so that one row is enough.
        count = rows if rules.handed_on else 1
        self._rows: dict[str, Matrix] = {}
        if rules.momentum:
            self._rows[MOMENTUM] = np.zeros((count, dimension), dtype=np.float32)
        if rules.mask is not None:
            self._rows[MASK] = np.zeros((rows, dimension), dtype=np.float32)

    def momentum_of(self, row: int) -> Matrix | None:
        """Returns the momentum of a model, to be changed in place; None without momentum."""
        kept = self._rows.get(MOMENTUM)
        return None if kept is None else kept[min(row, len(kept) - 1)]

    @property
    def masks(self) -> Matrix | None:
        """For every model, 1 at the coordinates of its last aggregate's mask; no ones before the first aggregate."""
        return self._rows.get(MASK)

    def note(self, row: int, step: Matrix) -> None:
        """Remembers the mask of an aggregate, by the step that it was."""
        if self.rules.mask is not None:
            mask = self._rows[MASK][row]
            mask[:] = 0.0
            mask[largest(step, self.rules.mask)] = 1.0

    def attachments_of(self, row: int) -> dict[str, Attachment]:
        """Returns copies of what goes with a model."""
        found = {}
        for name, wire in self.rules.attachments.items():
            copied = self._rows[name][row].copy()
            copied.flags.writeable = False
            found[name] = Attachment(wire, partial(_itself, copied))
        return found

    def adopt(self, row: int, attached: Mapping[str, Attachment]) -> None:
        """Takes over what came with a model; a model without any has no history."""
        for name in self.rules.attachments:
            self._rows[name][row] = attached[name].find() if name in attached else 0.0

    def state(self) -> dict[str, NDArray[Any]]:
        """Returns all rows by name, for a checkpoint."""
        return {f"carried {name}": rows for name, rows in self._rows.items()}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Sets all rows to what was saved."""
        for name, rows in self._rows.items():
            rows[:] = saved[f"carried {name}"]


def _itself(array: Matrix) -> Matrix:
    return array
