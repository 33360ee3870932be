"""The `audit` section: how a scenario's epsilons are measured from below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt

Neighbours = Literal["replace", "add_remove"]
"""What two inputs differ in: one client is replaced (distance 2C), or its updates are there or zero (distance C)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Runs of their own in which canaries take the place of clients.

    Attributes:
        canaries: how many clients are canaries, or all
        runs: how many runs, each with coins, directions and noise of its own
        others: train lets the other clients train, still lets them send noise only, which is faster
        neighbours: replace compares v with -v, add_remove v with nothing, each with the proved figure of its relation
        confidence: that no lower bound of the audit is wrong
        seed: of coins, directions and noise
    """

    canaries: Annotated[int, Ge(1)] | Literal["all"] = "all"
    runs: Annotated[int, Ge(1), Le(100_000)] = 1
    others: Literal["train", "still"] = "train"
    neighbours: Neighbours = "replace"
    confidence: Annotated[float, Gt(0.5), Lt(1.0)] = 0.95
    seed: Annotated[int, Ge(0)] = 0
