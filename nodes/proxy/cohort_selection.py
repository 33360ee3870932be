"""Cohort selection: which of the clients that joined train in a round."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from p2p.random_streams import stream


def choose_cohort(
    joined: NDArray[np.int64], size: int, selection: Literal["uniform", "first_come"], seed: int, round_number: int
) -> NDArray[np.int64]:
    """Returns `size` of the joined nodes, sorted; `joined` is in the order of their answers.

    Guarantees:
        `uniform` is a simple random sample of the nodes that joined within the window; `first_come` takes the first
        answers, which correlates with latency, so no accountant may call it sampling.
    """
    if selection == "first_come":
        return np.sort(joined[:size])
    # Sorted before the draw, so that the sample does not depend on the order in which answers arrived.
    return np.sort(stream(seed, "cohort", round_number).choice(np.sort(joined), size, replace=False))
