"""Completion times of work on nodes with temporary slowdowns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Slow(NamedTuple):
    """A slowdown: from `start_s` until `end_s` work takes `factor` times as long."""

    start_s: float
    end_s: float
    factor: float


def finish_s(start_s: float, work_s: float, slow: Sequence[Slow]) -> float:
    """Returns the completion time of work that takes `work_s` at full speed; overlapping slowdowns multiply."""
    if not slow:
        return start_s + work_s
    now_s, left_s = start_s, work_s
    edges = sorted({edge for one in slow for edge in (one.start_s, one.end_s) if edge > start_s})
    # The speed is constant between two edges; each pass completes the work or the interval, whichever ends first.
    for edge_s in (*edges, np.inf):
        factor = float(np.prod([one.factor for one in slow if one.start_s <= now_s < one.end_s]))
        if now_s + left_s * factor <= edge_s:
            return now_s + left_s * factor
        left_s -= (edge_s - now_s) / factor  # work done in the interval, at full speed
        now_s = edge_s
    return now_s
