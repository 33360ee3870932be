"""The `anonymity` section of a scenario: address changes, address disclosure, sealing, routing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from p2p.config.errors import UserError

Rehash = Literal["every_round", "chained", "never"]
Sealed = Literal[True, "sizes", False]
"""`true` encrypts, `sizes` only counts the bytes of encryption, `false` sends headers and plain payloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anonymity:
    """What peers can learn about each other.

    Attributes:
        rehash: every_round gives each member a new address each round, from its initial one; chained from the address
            of the round before, as Weng (2025) prints it; never keeps one, to study the effect
        hand_out: neighbours gives a member only the peers it exchanges with; graph gives all members the whole graph
        sealed: true encrypts messages, sizes counts the same bytes without encryption, false does not seal
        routing: assumed means an anonymous transport exists and its cost is not included; relay sends data over relays
        relays: number of relays
        hops: number of different relays that a message crosses, drawn for each message
    """

    rehash: Rehash = "every_round"
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
        """Number of relays in the run; 0 if anonymous transport is assumed."""
        return self.relays if self.routing == "relay" else 0
