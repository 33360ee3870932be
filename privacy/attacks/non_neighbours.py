"""The attack `non_neighbours`: whose values an observer of gossip over models can solve for, beyond its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privacy.attacks.attack import Result
    from privacy.attacks.heard_models import Heard
    from privacy.attacks.observations import Position, Truth, View

MOST_CLIENTS = 1000
"""The decomposition of a matrix of so many columns takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NonNeighboursAttack:
    """Finds the clients whose values follow from what was heard by linear algebra (Mrini et al. 2024).

    Attributes:
        by: the observer whose view is attacked; all that can, unless given
    """

    by: str = ""

    def unfit(self, position: Position) -> str:
        """Returns that no models are exchanged, or that the position receives none."""
        public = position.public
        if getattr(public["protocol"], "exchange", "") != "model":
            return "no models are exchanged; use `protocol: {kind: gossip, exchange: model}` and run again"
        if position.kind not in ("peer", "coalition", "proxy") or not position.nodes:
            return "it receives no models from neighbours; take a peer, a coalition, or the proxy with peers"
        if public["clients"] > MOST_CLIENTS:
            return f"clients = {public['clients']}: must be <= {MOST_CLIENTS} for the linear algebra; run with fewer"
        return ""

    def guess(self, view: View) -> Heard:
        """Returns which messages make the knowledge matrix, and whether the observer knows its entries."""
        from privacy.attacks.heard_models import what_was_heard

        return what_was_heard(view)

    def score(self, guess: Heard, truth: Truth) -> Result:
        """Returns who is exposed after each round, with the mixing that really took place."""
        from privacy.attacks.heard_models import score

        return score(guess, truth)
