"""The scenario's section on anonymity: how often addresses change, who learns them, what is sealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Sealed = Literal[True, "sizes", False]
"""`true` does the cipher arithmetic, `sizes` only counts its bytes, `false` sends headers and plain payloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anonymity:
    """What peers may know of each other.

    Attributes:
        rehash: every_round gives each member a new address each round; never keeps one, to study the effect
        hand_out: neighbours tells a member only whom it exchanges with; graph tells everyone the whole graph
        sealed: true seals for real, sizes counts the same bytes without the arithmetic, false does not seal
        routing: assumed means an anonymous transport exists and its cost is not included
    """

    rehash: Literal["every_round", "never"] = "every_round"
    hand_out: Literal["neighbours", "graph"] = "neighbours"
    sealed: Sealed = True
    routing: Literal["assumed"] = "assumed"
