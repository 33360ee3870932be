"""From an observer's view to attacked gradients, and from these to images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodes.adversaries.public_model import build_module
from nodes.adversaries.reconstruction.dlg import Dlg
from nodes.adversaries.reconstruction.gradient_target import GradientTarget
from nodes.adversaries.reconstruction.inversion import Inversion, Reconstruction
from nodes.adversaries.reconstruction.label_recovery import recover_labels
from nodes.adversaries.reconstruction.local_steps import LocalSteps, public_steps
from nodes.datasets.dataset import PixelRange
from p2p.config.errors import UserError
from privacy.attacks.linked_messages import LinkedMessages, link, received_updates
from privacy.attacks.observation_columns import UNKNOWN
from privacy.attacks.observations import View

if TYPE_CHECKING:
    from nodes.adversaries.reconstruction.attack import ReconstructionAttack

Rows = NDArray[np.int64]
MANNERS = ("one_round", "all_round", "sum")


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One reconstruction.

    Attributes:
        rows: the observations that were added up, the attacked one last
        manner: one_round, all_round or sum
        added_noise: deviation of the noise added to the update
        scale: deviation in the gradient for one in the update
        images: [n, channels, height, width] in [0, 1]
        losses: the attack's loss over its steps
    """

    rows: Rows
    round_number: int
    manner: str
    added_noise: float
    scale: float
    labels_known: bool
    pixels: PixelRange
    classes: int
    images: Tensor
    losses: list[float]


def attempts(attack: ReconstructionAttack, view: View) -> list[Attempt]:
    """Attacks the chosen uploads of a view."""
    views = {added: view.with_noise(added, attack.seed) if added else view for added in (0.0, *attack.added_noise)}
    problems = [_Problem(attack, seen, added) for added, seen in views.items()]
    found = [problem.attempt(manner, rows) for problem in problems for manner, rows in problem.attacked()]
    # One manner after the other, each by growing noise.
    return sorted(found, key=lambda one: MANNERS.index(one.manner))


class _Problem:
    """The chosen round of a view."""

    def __init__(self, attack: ReconstructionAttack, view: View, added: float) -> None:
        self._attack, self._view, self._added = attack, view, added
        self._updates = received_updates(view)
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._public = view.position.public
        self._module = build_module(self._public)
        self._round = self._chosen_round()
        known = view.knowledge.batch_size
        self._images = attack.images or (known if isinstance(known, int) else 1)

    def attacked(self) -> Iterator[tuple[str, Rows]]:
        """Yields the rows whose vectors are added up, with the manner of the attack."""
        rows = self._updates[self._round]
        if self._attack.target == "sum":
            yield "sum", rows
            return
        chosen = rows[: self._attack.uploads]
        if self._attack.manner in ("one_round", "both"):
            yield from (("one_round", chosen[place : place + 1]) for place in range(len(chosen)))
        if self._attack.manner in ("all_round", "both"):
            links = link(self._view)
            yield from (("all_round", track(self._view, links, row)) for row in chosen.tolist())

    def attempt(self, manner: str, rows: Rows) -> Attempt:
        """Reconstructs the images behind some rows."""
        count = self._images * (len(rows) if manner == "sum" else 1)
        target = self._target(manner, rows, count)
        found = self._reconstruct(target, rows, manner)
        return Attempt(
            rows=rows,
            round_number=self._round,
            manner=manner,
            added_noise=self._added,
            scale=self._scale(self._round),
            labels_known=self._view.knowledge.labels is not None,
            pixels=target.pixels,
            classes=self._public["classes"],
            images=found.images,
            losses=found.losses,
        )

    def _target(self, manner: str, rows: Rows, count: int) -> GradientTarget:
        gradients = [self._gradient(row) for row in rows.tolist()]
        return GradientTarget(
            module=self._module,
            weights=self._weights(manner, rows),
            # The mean has the direction of the sum, and the length of one gradient.
            gradient=torch.stack(gradients).mean(0),
            count=count,
            shape=tuple(self._public["data_shape"]),
            pixels=self._public["pixels"],
            steps=self._steps(rows, count),
        )

    def _steps(self, rows: Rows, count: int) -> LocalSteps:
        """Returns the local steps behind an update, if the attack simulates them."""
        if self._attack.local_steps == "one_gradient":
            return LocalSteps()
        pull = getattr(self._public["objective"], "mu", 0.0)
        return public_steps(self._public["training"], pull, count, self._round, self._attack.seed, int(rows[-1]))

    def _reconstruct(self, target: GradientTarget, rows: Rows, manner: str) -> Reconstruction:
        attack, classes = self._attack, self._public["classes"]
        name = ("reconstruction", manner, int(rows[-1]))
        if attack.method == "dlg":
            # L-BFGS takes up to 20 inner steps in each call.
            dlg = Dlg(iterations=max(1, attack.steps // 10), restarts=attack.restarts)
            return dlg.reconstruct(target, classes, attack.seed, *name)
        inversion = Inversion(
            objective=attack.objective,
            layers=attack.layers,
            total_variation=attack.total_variation,
            steps=attack.steps,
            step_size=attack.step_size,
            sign_of=attack.sign_of,
            restarts=attack.restarts,
        )
        return inversion.reconstruct(target, self._labels(target, rows, manner), attack.seed, *name)

    def _labels(self, target: GradientTarget, rows: Rows, manner: str) -> Tensor:
        known = self._view.knowledge.labels
        if known is None:
            return recover_labels(target, self._public["classes"], self._attack.seed, "labels", int(rows[-1]))
        labels = np.concatenate([known(row) for row in (rows if manner == "sum" else rows[-1:]).tolist()])
        # An update may have been trained on more records than are looked for.
        return torch.from_numpy(np.resize(labels, target.count))

    def _gradient(self, row: int) -> Tensor:
        """Returns the gradient that an update amounts to: divided by the learning rate and the number of steps."""
        rows = self._view.rows
        number = int(rows["round"][row])
        if number not in self._vectors:
            self._vectors[number] = self._view.vectors(number)
        vector = self._vectors[number][rows["vector"][row]]
        return torch.from_numpy(np.array(vector, dtype=np.float32)) * self._scale(number)

    def _scale(self, round_number: int) -> float:
        training = self._public["training"]
        # With noise shares a client uploads its update times its weight; weights sum to one.
        weights = len(self._updates[round_number]) if self._public["noise_shares"] is not None else 1
        return float(weights / (training.rate(round_number) * training.steps(self._images)))

    def _weights(self, manner: str, rows: Rows) -> Tensor:
        """Returns the models that the updates were trained from, as far as the observer knows them, [s, d]."""
        if manner == "all_round" and self._attack.models == "each":
            return torch.stack([self._model(row) for row in rows.tolist()])
        if manner == "all_round":
            return torch.from_numpy(np.array(self._view.models(0)[:1]))
        return self._model(int(rows[-1]))[None]

    def _model(self, row: int) -> Tensor:
        """Returns the newest model of the view from before the row's round."""
        before = int(self._view.rows["round"][row]) - 1
        number = max(found for found in self._view.model_rounds if found <= before)
        models, nodes = self._view.models(number), self._view.position.nodes
        by = int(self._view.rows["by"][row])
        # A coalition has a model of each member; the receiver of the message uses its own.
        place = nodes.index(by) if len(models) == len(nodes) > 1 and by in nodes else 0
        return torch.from_numpy(np.array(models[place]))

    def _chosen_round(self) -> int:
        seen = self._view.rows.rounds("update")
        if not seen:
            raise UserError("it received no update in this run; take another observer, or more rounds")
        kept = [number for number in seen if number in set(self._view.kept_rounds)]
        if not kept:
            raise UserError("no update with a vector was kept; raise keep.limit and run again")
        asked = {"first": kept[0], "last": kept[-1]}.get(str(self._attack.round), self._attack.round)
        if asked not in kept:
            raise UserError(f"round = {asked}: no updates of it were kept; there are {kept[0]} to {kept[-1]}")
        return int(asked)


def track(view: View, links: LinkedMessages, row: int) -> Rows:
    """Returns the rows that are taken for one client's until `row`, which is the last; earlier rounds come first.

    An observer that knows identities needs no guess.
    """
    last, identity = int(view.rows["round"][row]), int(view.rows["identity"][row])
    place = int(np.flatnonzero(links.rows[last] == row)[0])
    number = links.tracks[last][place]
    found = []
    for round_number in sorted(known for known in links.rows if known <= last):
        rows = links.rows[round_number]
        same = links.tracks[round_number] == number if identity == UNKNOWN else view.rows["identity"][rows] == identity
        found.append(rows[same])
    return np.concatenate(found)
