"""Round rules common to all protocols: cohort size, selection, deadlines and quorum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from p2p.config.units import PositiveSeconds, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """An aggregation need not wait for everyone.

    Attributes:
        quorum: the share of the expected updates that is enough
    """

    quorum: Annotated[float, Gt(0), Le(1)] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRules:
    """The rules of a round.

    Attributes:
        train_per_round: how many clients train in a round; give this or `tcsr`
        tcsr: the same as a share of all clients
        selection: uniform draws from all who answer within the window, first_come takes the first
        invite_window: how long the proxy waits for answers
        invite_timeout: how long it repeats the invitation while willing clients are merely offline
        include_own: whether a node averages its own noisy update with those received
        deadline: from receipt of the assignment until updates must have arrived; an arrival exactly then counts
        finish: all waits for every update until the deadline, {quorum: 0.9} goes on with that share of them
        min_updates: an aggregation with fewer received updates is skipped
        send_at: ready sends as soon as trained, barrier at a common instant named by the proxy: the longest training
            after the cohort is formed, plus once more what the invitation took
        grace: how long after the last deadline the proxy still waits before it closes a round
    """

    train_per_round: Annotated[int, Ge(2)] | None = None
    tcsr: Annotated[float, Gt(0), Le(1)] | None = None
    selection: Literal["uniform", "first_come"] = "uniform"
    invite_window: PositiveSeconds = 5.0
    invite_timeout: PositiveSeconds = 600.0
    include_own: bool = True
    deadline: PositiveSeconds = 60.0
    finish: Literal["all"] | Quorum = "all"
    min_updates: Annotated[int, Ge(0)] = 1
    send_at: Literal["ready", "barrier"] = "ready"
    grace: Seconds = 5.0

    @property
    def longest_s(self) -> float:
        """The longest time from a member's assignment to the end of its part; protocols with more steps override it."""
        return self.deadline

    @property
    def quorum(self) -> float:
        """The fraction of the expected updates for which an aggregation waits."""
        return 1.0 if self.finish == "all" else self.finish.quorum

    @property
    def cohort_size(self) -> int:
        """The number of clients that train in a round."""
        # Loading replaces `tcsr` by the number; a None here means that a protocol was built without loading.
        if self.train_per_round is None:
            raise ValueError("train_per_round is not known before the scenario is loaded")
        return self.train_per_round
