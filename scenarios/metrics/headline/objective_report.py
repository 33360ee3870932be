"""Where an objective is not used as it is written: clients for whom it is undefined, or its constant was capped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.learning.objectives import OBJECTIVES, Fednore2, FednoreBoth
from p2p.config.choices import Choice
from scenarios.loading.writing.dump import kind_of
from scenarios.schema import Scenario

_TEXTS = {
    "undefined": "{kind}: c >= 1 for {count} of {clients} clients, where the printed loss is undefined; all train as "
    "with cross-entropy",
    "capped": "{kind}: c is capped at {c_max:g} for {count} of {clients} clients",
}


def objective_report(scenario: Scenario, records: NDArray[np.int64]) -> dict[str, Any] | None:
    """Returns kind, number of clients by remark, and notes; None for objectives that are always used as written."""
    objective = scenario.objective
    if scenario.learning == "none" or not isinstance(objective, Fednore2 | FednoreBoth):
        return None
    kind, counts = kind_of(Choice(OBJECTIVES), objective), objective.remarks(records)
    notes = [
        _TEXTS[what].format(kind=kind, count=count, clients=len(records), c_max=objective.c_max)
        for what, count in counts.items()
        if count
    ]
    return {"kind": kind, **counts, "notes": notes}
