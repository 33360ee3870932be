"""From an observer's view to attacked gradients, and from these to images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from nodes.datasets.dataset import PixelRange
from p2p.config.errors import UserError
from p2p.random_streams import stream
from privacy.attacks.linkage_attack import LinkageAttack, Links
from privacy.attacks.observations import UNKNOWN, View

if TYPE_CHECKING:
    from nodes.adversaries.reconstruction.attack import ReconstructionAttack

Rows = NDArray[np.int64]


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
    problem = _Problem(attack, view)
    return [
        problem.attempt(manner, rows, added)
        for manner, rows in problem.attacked()
        for added in (0.0, *attack.added_noise)
    ]


class _Problem:
    """The chosen round of a view."""

    def __init__(self, attack: ReconstructionAttack, view: View) -> None:
        self._attack, self._view = attack, view
        self._public = view.position.public
        self._module = build_module(self._public)
        self._round = self._chosen_round()
        known = view.knowledge.batch_size
        self._images = attack.images or (known if isinstance(known, int) else 1)

    def attacked(self) -> Iterator[tuple[str, Rows]]:
        """Yields the rows whose vectors are added up, with the manner of the attack."""
        rows = received(self._view, self._round)
        if self._attack.target == "sum":
            yield "sum", rows
            return
        chosen = rows[: self._attack.uploads]
        if self._attack.manner in ("one_round", "both"):
            yield from (("one_round", chosen[place : place + 1]) for place in range(len(chosen)))
        if self._attack.manner in ("all_round", "both"):
            links = LinkageAttack().guess(self._view)
            yield from (("all_round", track(links, row)) for row in chosen.tolist())

    def attempt(self, manner: str, rows: Rows, added: float) -> Attempt:
        """Reconstructs the images behind some rows."""
        count = self._images * (len(rows) if manner == "sum" else 1)
        target = self._target(manner, rows, count)
        if added:
            target = replace(target, gradient=target.gradient + self._noise(rows, added, len(target.gradient)))
        found = self._reconstruct(target, rows, manner)
        return Attempt(
            rows=rows,
            round_number=self._round,
            manner=manner,
            added_noise=added,
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
        )

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
        told = np.concatenate([known(row) for row in (rows if manner == "sum" else rows[-1:]).tolist()])
        # An update may have been trained on more records than are looked for.
        return torch.from_numpy(np.resize(told, target.count))

    def _gradient(self, row: int) -> Tensor:
        """Returns the gradient that an update amounts to: divided by the learning rate and the number of steps."""
        rows = self._view.rows
        number = int(rows["round"][row])
        vector = self._view.vectors(number)[rows["vector"][row]]
        return torch.from_numpy(np.array(vector, dtype=np.float32)) * self._scale(number)

    def _scale(self, round_number: int) -> float:
        training = self._public["training"]
        return float(1.0 / (training.rate(round_number) * training.steps(self._images)))

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

    def _noise(self, rows: Rows, added: float, dimension: int) -> Tensor:
        """Returns noise of a deviation in the update; every one of several updates would have had its own."""
        rng = stream(self._attack.seed, "reconstruction", "noise", int(rows[-1]))
        drawn = rng.standard_normal(dimension, dtype=np.float32)
        return torch.from_numpy(drawn) * float(added * self._scale(self._round) / len(rows) ** 0.5)

    def _chosen_round(self) -> int:
        kept = [number for number in self._view.rows.rounds("update") if number in set(self._view.kept_rounds)]
        if not kept:
            raise UserError(f"{self._view.position.name}: no update with a vector was kept; raise keep.limit")
        asked = {"first": kept[0], "last": kept[-1]}.get(str(self._attack.round), self._attack.round)
        if asked not in kept:
            raise UserError(f"round = {asked}: no updates of it were kept; there are {kept[0]} to {kept[-1]}")
        return int(asked)


def received(view: View, round_number: int) -> Rows:
    """Returns the rows of a round's updates with their vectors, each vector once, in order of arrival."""
    rows = view.rows.received("update", round_number)
    rows = rows[view.rows["vector"][rows] != UNKNOWN]
    _, first = np.unique(view.rows["vector"][rows], return_index=True)
    chosen: Rows = rows[np.sort(first)]
    return chosen


def track(links: list[Links], row: int) -> Rows:
    """Returns the rows that linkage takes for one client's, until `row`, which is the last; the first round first."""
    found = [row]
    for link in reversed(links):
        place = np.flatnonzero(link.after == found[-1])
        if not len(place):
            continue
        # An equal address is no guess; contents decide where addresses change.
        guess = next(int(rows[place[0]]) for rows in link.guesses.values() if rows[place[0]] != UNKNOWN)
        found.append(int(link.before[guess]))
    return np.array(found[::-1], dtype=np.int64)
