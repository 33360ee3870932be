"""The facts of a finished run: the input of every summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.log import Log
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.findings import RunLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """All inputs of a summary.

    Attributes:
        scenario: read for `name, seed, question, rounds, clients` and `evaluation.target_accuracy` only.
        client_accuracy: final accuracy of every evaluated client, None without learning.
        privacy: `{"published": ..., "rigorous": ...}`, see `scenarios.metrics.privacy.privacy_verdict`.
        linkability: `{"address": ..., "content": ..., "chance": ..., "content_at_least": ..., "content_by": ...}`.
        sealed: `true`, `sizes` or `false`.
        relays: the nodes that forward messages.
        limits: the rates and deadlines of the run, for its diagnosis.
        warnings: what is surely not meant in the scenario, or in what came of it.
        extra: further keys of the summary, after the documented ones.
    """

    scenario: Any
    log: Log
    rounds_completed: int
    stopped_because: str
    simulated_s: float
    wall_s: float
    privacy: Mapping[str, Any]
    linkability: Mapping[str, Any]
    client_accuracy: NDArray[Any] | None = None
    collected_accuracy: float | None = None
    collected_loss: float | None = None
    events_depend_on_learning: bool = False
    protocol: str = ""
    sealed: str | bool = True
    routing: str = "assumed"
    relays: Sequence[int] = ()
    limits: RunLimits | None = None
    warnings: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def roles(self) -> Roles:
        """The role of each node."""
        return Roles(int(self.scenario.clients), tuple(int(node) for node in self.relays))

    @property
    def measure_from(self) -> int:
        """The first round that counts for costs and losses."""
        # Reports of killed runs pass a stand-in without these keys.
        return int(getattr(getattr(self.scenario, "evaluation", None), "measure_from", 0))

    @property
    def target_accuracy(self) -> float | None:
        """The accuracy for which the cost is reported, if the scenario sets one."""
        return getattr(getattr(self.scenario, "evaluation", None), "target_accuracy", None)

    @property
    def accuracy(self) -> dict[str, float | None]:
        """Max, mean and min over the clients: at the end, or of the last evaluated round."""
        values = self.client_accuracy
        if values is not None and len(values):
            return {"max": float(np.max(values)), "mean": float(np.mean(values)), "min": float(np.min(values))}
        # An interrupted run has no final evaluation.
        evaluated = [record for record in self.log.rounds if record.get("accuracy_after_mean") is not None]
        last: Mapping[str, Any] = evaluated[-1] if evaluated else {}
        return {what: last.get(f"accuracy_after_{what}") for what in ("max", "mean", "min")}
