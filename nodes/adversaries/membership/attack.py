"""The attack `membership`: which of a victim's records were trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Len

if TYPE_CHECKING:
    from nodes.adversaries.membership.carry_out import Readiness
    from privacy.attacks.attack import Result
    from privacy.attacks.observations import Position, Truth, View

Method = Literal["loss_threshold", "modified_entropy", "basic", "ml_leaks", "shadow_models", "white_box", "cs_mia"]
METHODS: tuple[Method, ...] = (
    "loss_threshold", "modified_entropy", "basic", "ml_leaks", "shadow_models", "white_box", "cs_mia",
)  # fmt: skip
NEEDS_AUXILIARY = ("basic", "ml_leaks", "shadow_models", "white_box", "cs_mia")
NEEDS_MEMBERS = ("white_box", "cs_mia")


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipAttack:
    """Tells records that a victim trained on from those that a coin kept out, by seven published scores.

    Attributes:
        by: the observer whose view is attacked; all that can, unless given
        methods: the scores; all that the observer knows enough for, unless given
        models: own attacks the models that the view contains, received the model that a victim's last update makes
        seed: for the attack's own draws
    """

    by: str = ""
    methods: Annotated[tuple[Method, ...], Len(1)] | None = None
    models: Literal["own", "received"] = "own"
    seed: Annotated[int, Ge(0)] = 0

    def unfit(self, position: Position) -> str:
        """Returns what is missing: victims, models, updates, or knowledge of a method that is asked for."""
        central = position.public["protocol_kind"] == "central"
        if position.public["reserved"].victims is None:
            return "no client has records that a coin kept out of training; add `reserved: {victims: [0]}`, run again"
        if position.kind == "eavesdropper" or (position.kind == "proxy" and not position.nodes):
            return "it holds no model; take a peer, a coalition, a leader, a server or a model observer"
        if position.kind == "server" and not central:
            return "it gets only the collected model; take a model observer, or the server of `central`"
        if not position.snapshots:
            return "the models of its view are not kept; add `keep: {snapshots: true}` to the observer"
        if self.models == "received" and (not position.vectors or position.kind == "model"):
            return "it gets no updates; use `models: own`"
        return next((why for method in self.methods or () if (why := lacks(method, position))), "")

    def guess(self, view: View) -> Readiness:
        """Returns the models and the knowledge with which every candidate can be judged."""
        from nodes.adversaries.membership.carry_out import prepare

        why: dict[str, str] = {method: lacks(method, view.position) for method in self.methods or METHODS}
        able = tuple(method for method in self.methods or METHODS if not why[method])
        skipped = {method: reason for method, reason in why.items() if reason}
        return prepare(view, able, skipped, self.models == "received", self.seed)

    def score(self, guess: Readiness, truth: Truth) -> Result:
        """Judges members and non-members of the victims and compares."""
        from nodes.adversaries.membership.scoring import score_readiness

        return score_readiness(guess, truth)


def lacks(method: str, position: Position) -> str:
    """Returns what a method needs to know and the observer does not; empty if it can be used."""
    if method in NEEDS_AUXILIARY and not position.knows["auxiliary"]:
        return (
            f"{method} needs records of no client; add `reserved: {{auxiliary: 200}}` and `knows: {{auxiliary: 200}}`"
        )
    own = position.knows["own_records"] and position.nodes
    if method in NEEDS_MEMBERS and not position.knows["members"] and not own:
        return f"{method} needs known members; add `knows: {{members: 20}}`"
    return ""
