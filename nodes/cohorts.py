"""Who of those that joined trains in a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nodes.controls import Answer
from p2p.streams import stream


def choose_cohort(
    joined: Sequence[Answer], size: int, selection: Literal["uniform", "first_come"], seed: int, round_number: int
) -> NDArray[np.int64]:
    """`size` of the nodes that joined, sorted.

    Guarantees:
        `uniform` is a simple random sample of those who joined within the window; `first_come` takes the first
        answers, which correlates with latency, so no accountant may call it sampling.
    """
    nodes = np.array([answer.node for answer in joined], dtype=np.int64)
    if selection == "first_come":
        return np.sort(nodes[:size])
    return np.sort(stream(seed, "cohort", round_number).choice(np.sort(nodes), size, replace=False))
