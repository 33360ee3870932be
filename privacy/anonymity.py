"""The scenario's section on anonymity: how often addresses change, who learns them, what is sealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from p2p.errors import UserError

Sealed = Literal[True, "sizes", False]
"""`true` does the cipher arithmetic, `sizes` only counts its bytes, `false` sends headers and plain payloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anonymity:
    """What peers may know of each other.

    Attributes:
        rehash: every_round gives each member a new address each round; never keeps one, to study the effect
        hand_out: neighbours tells a member only whom it exchanges with; graph tells everyone the whole graph
        sealed: true seals for real, sizes counts the same bytes without the arithmetic, false does not seal
        routing: assumed means an anonymous transport exists and its cost is not included; relay sends data over relays
        relays: how many relays there are
        hops: how many different relays a message crosses, drawn for each message
    """

    rehash: Literal["every_round", "never"] = "every_round"
    hand_out: Literal["neighbours", "graph"] = "neighbours"
    sealed: Sealed = True
    routing: Literal["assumed", "relay"] = "assumed"
    relays: Annotated[int, Ge(1), Le(100_000)] = 10
    hops: Annotated[int, Ge(1), Le(20)] = 3

    def __post_init__(self) -> None:
        if self.hops > self.relays:
            rule = (
                f"must be <= relays, which is {self.relays}: a message crosses different ones; lower it or add relays"
            )
            raise UserError(f"hops = {self.hops}: {rule}")

    @property
    def relay_count(self) -> int:
        """How many relays the run has: none if anonymous transport is assumed."""
        return self.relays if self.routing == "relay" else 0
