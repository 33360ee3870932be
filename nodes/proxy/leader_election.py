"""Leader election: the new plan of a round whose leader was lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from nodes.messaging.control_messages import Done
from nodes.protocols.api import RoundPlan
from p2p.log.records import NOBODY
from p2p.random_streams import stream


def arrange_without_leader(
    seed: int,
    round_number: int,
    epoch: int,
    waiting: Sequence[int],
    complained: Collection[int],
    done: Mapping[int, Done],
) -> RoundPlan | None:
    """Returns a new plan for the members still waiting, or None if there is none.

    If the old leader's model has reached a node, that node hands it on and nothing is aggregated again. Otherwise one
    of the members that complained (they are alive) becomes leader, and the others send it the identical updates.
    """
    having = sorted(node for node, report in done.items() if report.model_round == round_number)
    others = np.array(sorted(waiting), dtype=np.int64)
    # A second aggregation beside the first would leave the cohort with two models, so an existing one comes first.
    # Any holder would do; the smallest number keeps the choice deterministic.
    if having and len(others):
        return RoundPlan({"model": np.column_stack([np.full_like(others, having[0]), others])}, NOBODY)
    if len(others) < 2:
        return None
    # The epoch is part of the stream's name: a second election of the same round draws afresh.
    candidates = sorted(set(complained) & set(waiting)) or others.tolist()
    leader = int(stream(seed, "leader", round_number, epoch).choice(candidates))
    others = others[others != leader]
    updates = np.column_stack([others, np.full_like(others, leader)])
    return RoundPlan({"update": updates, "model": updates[:, ::-1]}, leader)
