"""From an observer's view to the models that it attacks and the records that it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from nodes.adversaries.membership.inference import AttackedModels, HeldRecords
from nodes.adversaries.membership.shadow_models import Recipe
from nodes.adversaries.membership.signals import Examples, join_examples
from nodes.adversaries.public_model import build_kernel, build_module
from p2p.config.errors import UserError
from privacy.attacks.observation_columns import UNKNOWN
from privacy.attacks.observations import Records, View

if TYPE_CHECKING:
    from nodes.adversaries.membership.attack import Method

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Readiness:
    """Everything but the candidates.

    Attributes:
        own: the models of the view, or None if received ones are attacked
        received: the rows of updates, and the model that the update of a row makes
        members_of: known members of each victim; none if the observer knows its own records instead
        what: what is attacked, in words
        skipped: methods that the observer knows too little for, with the reason
    """

    methods: tuple[Method, ...]
    own: AttackedModels | None
    received: tuple[tuple[int, ...], Callable[[int], AttackedModels]]
    knowledge: HeldRecords
    members_of: dict[int, Examples]
    what: str
    skipped: dict[str, str]


def prepare(view: View, methods: tuple[Method, ...], skipped: dict[str, str], received: bool, seed: int) -> Readiness:
    """Reads snapshots, received updates and known records."""
    public = view.position.public
    if not view.model_rounds:
        raise UserError(f"{view.position.name}: no model was kept; raise keep.limit")
    models = _Models(view)
    members_of = _members_of(view)
    knowledge = _knowledge(view, list(members_of.values()), models.initial(), seed)
    updates = models.rows_of_updates(), models.after
    if received:
        what = "the model that a victim's last received update makes of the observer's model before it"
        return Readiness(methods, None, updates, knowledge, members_of, what, skipped)
    what = what_is_attacked(public["protocol_kind"], view.position.kind)
    return Readiness(methods, models.own(), updates, knowledge, members_of, what, skipped)


def what_is_attacked(protocol: str, observer: str) -> str:
    """Returns whose models the snapshots of an observer are."""
    if protocol == "gossip" and observer != "model":
        return "the observer's own model: the victims' models are not known to it"
    return "the rounds' aggregates"


class _Models:
    def __init__(self, view: View) -> None:
        self._view, self._public = view, view.position.public
        self._module = build_module(self._public)
        self._kernel = build_kernel(self._module, self._public)

    def initial(self) -> Floats:
        """Returns the first model, which all have."""
        first: Floats = np.array(self._view.models(0)[0])
        return first

    def own(self) -> AttackedModels:
        """Returns the snapshots of all rounds but the first model's; of several nodes, their mean."""
        rounds = [number for number in self._view.model_rounds if number > 0] or [0]
        return self._attacked([self._view.models(number).mean(0) for number in rounds])

    def rows_of_updates(self) -> tuple[int, ...]:
        """Returns the rows of received updates whose vectors were kept."""
        rows = self._view.rows.received("update")
        return tuple(rows[self._view.rows["vector"][rows] != UNKNOWN].tolist())

    def after(self, row: int) -> AttackedModels:
        """Returns the model that the update of a row makes."""
        return self._attacked([self._moved(row)])

    def _moved(self, row: int) -> Floats:
        number = int(self._view.rows["round"][row])
        vector = self._view.vectors(number)[self._view.rows["vector"][row]]
        if getattr(self._public["protocol"], "exchange", "update") == "model":
            return np.array(vector)
        before = max(found for found in self._view.model_rounds if found < number)
        # An update is what is subtracted from a model.
        after: Floats = self._view.models(before).mean(0) - vector
        return after

    def _attacked(self, models: list[Floats]) -> AttackedModels:
        snapshots = torch.from_numpy(np.stack(models).astype(np.float32))
        return AttackedModels(self._module, self._kernel, snapshots, self._public["classes"])


def _members_of(view: View) -> dict[int, Examples]:
    known = view.knowledge
    return {} if known.members is None else {node: examples(known.members(node)) for node in known.victims}


def _knowledge(view: View, members: list[Examples], initial: Floats, seed: int) -> HeldRecords:
    known, public = view.knowledge, view.position.public
    auxiliary = None if known.auxiliary is None else examples(known.auxiliary())
    if not members and known.own_records is not None:
        members = [examples(known.own_records())]
    recipe = Recipe(
        public["model"], public["training"], public["objective"], public["classes"], initial, public["rounds"]
    )
    return HeldRecords(join_examples(members) if members else None, auxiliary, auxiliary, recipe, seed)


def examples(records: Records) -> Examples:
    """Returns records as tensors."""
    return Examples(torch.from_numpy(np.array(records.features)), torch.from_numpy(np.array(records.labels)))
