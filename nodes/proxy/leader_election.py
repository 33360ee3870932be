"""What to do when a round's leader is gone: find who has its model already, or appoint another."""

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
    """A new arrangement for the members still waiting, or None if nothing can be done for them.

    If the old leader's model has reached anybody, that one hands it on and nothing is aggregated again. Else one of
    those who complained (they are alive) becomes leader, and the others send it the identical updates.
    """
    having = sorted(node for node, report in done.items() if report.model_round == round_number)
    others = np.array(sorted(waiting), dtype=np.int64)
    if having and len(others):
        return RoundPlan({"model": np.column_stack([np.full_like(others, having[0]), others])}, NOBODY)
    if len(others) < 2:
        return None
    candidates = sorted(set(complained) & set(waiting)) or others.tolist()
    leader = int(stream(seed, "leader", round_number, epoch).choice(candidates))
    others = others[others != leader]
    updates = np.column_stack([others, np.full_like(others, leader)])
    return RoundPlan({"update": updates, "model": updates[:, ::-1]}, leader)
