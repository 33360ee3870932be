"""The attack `linkage`: which messages came from the same client, from one observer's view over the whole run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privacy.attacks.attack import Result
    from privacy.attacks.linked_messages import LinkedMessages
    from privacy.attacks.observations import Position, Truth, View


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkageAttack:
    """Links messages of one client across rounds: by addresses, contents, arrival times, and chains over all rounds.

    Attributes:
        by: the observer whose view is attacked; all that can, unless given
    """

    by: str = ""

    def unfit(self, position: Position) -> str:
        """Returns that there is nothing to compare."""
        central = position.public["protocol_kind"] == "central"
        if not position.vectors or position.kind == "model" or (position.kind == "server" and not central):
            return "it gets no updates to compare; take a peer, a coalition, a leader, or the server of `central`"
        return ""

    def guess(self, view: View) -> LinkedMessages:
        """Returns guesses for every pair of consecutive rounds, and tracks through all rounds."""
        from privacy.attacks.linked_messages import link

        return link(view)

    def score(self, guess: LinkedMessages, truth: Truth) -> Result:
        """Returns the share of returning clients that each method recognised, over all rounds and in each."""
        from privacy.attacks.linked_messages import score

        return score(guess, truth)
