"""The attack `reconstruction`: images of a client from the updates that an observer received."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Gt

if TYPE_CHECKING:
    from nodes.adversaries.reconstruction.carry_out import Attempt
    from privacy.attacks.attack import Result
    from privacy.attacks.observations import Position, Truth, View

Manner = Literal["one_round", "all_round", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructionAttack:
    """Searches images whose gradient explains an update: gradient inversion (thesis ch. 4) or DLG (L-BFGS).

    Attributes:
        by: the observer whose view is attacked; all that can, unless given
        method: inversion needs labels or recovers them; dlg searches labels too, and needs smooth activations
        objective: inversion: distance of gradients; cosine ignores lengths, hence clipping of the whole vector
        layers: inversion: compare gradients as one vector (together), or each layer on its own
        total_variation: inversion: weight of the images' total variation
        steps: steps of inversion; dlg takes a tenth as many calls of L-BFGS
        step_size: inversion: first step size, in units of the pixel range
        sign_of: inversion: Adam on signs of the gradient, or sign descent with momentum (Weng's wording)
        restarts: random starts; the one with the smallest loss is kept
        manner: attack the messages of one round, the sum of linked messages of all rounds until then, or both
        models: all_round: match the sum at the first model, or at the model of each round
        target: one upload at a time, or the sum of all uploads of the round
        local_steps: take an update for one_gradient, or simulate the client's steps (simulated); needs knows.batch_size
        round: the round that is attacked, first or last of those kept
        uploads: how many messages of the round are attacked, in order of arrival
        images: images behind an upload; by default the batch size, if that is a number and known
        added_noise: deviations of noise added to what was seen: what more noise would have left
        seed: for the attack's own draws
    """

    by: str = ""
    method: Literal["inversion", "dlg"] = "inversion"
    objective: Literal["cosine", "euclidean"] = "cosine"
    layers: Literal["together", "each"] = "together"
    total_variation: Annotated[float, Ge(0)] = 0.01
    steps: Annotated[int, Ge(1)] = 500
    step_size: Annotated[float, Gt(0)] = 0.01
    sign_of: Literal["gradient", "moment"] = "gradient"
    restarts: Annotated[int, Ge(1)] = 1
    manner: Manner = "one_round"
    models: Literal["first", "each"] = "first"
    target: Literal["upload", "sum"] = "upload"
    local_steps: Literal["one_gradient", "simulated"] = "one_gradient"
    round: Annotated[int, Ge(1)] | Literal["first", "last"] = "last"
    uploads: Annotated[int, Ge(1)] = 1
    images: Annotated[int, Ge(1)] | None = None
    added_noise: tuple[Annotated[float, Gt(0)], ...] = ()
    seed: Annotated[int, Ge(0)] = 0

    def unfit(self, position: Position) -> str:
        """Returns what is missing: updates, models, images, or their number."""
        public = position.public
        central = public["protocol_kind"] == "central"
        if not position.vectors or position.kind == "model" or (position.kind == "server" and not central):
            return "it gets no updates to invert; take a peer, a coalition, a leader, or the server of `central`"
        if getattr(public["protocol"], "exchange", "update") == "model":
            return "models are exchanged, so no update is seen; use protocol.exchange: update"
        if public["pixels"] is None:
            return "records are no images with a known range of pixels; use digits, mnist, fashion_mnist or cifar10"
        if type(public["objective"]).__name__ not in ("CrossEntropy", "FedProx"):
            return "gradients of cross-entropy are matched; use objective: cross_entropy or fedprox"
        if not position.snapshots:
            return "the model that updates were trained from is not kept; add `keep: {snapshots: true}` to the observer"
        if self.images is None and not self._known_batch(position):
            return "the number of images behind an update is not known; set `images`"
        return self._cannot_simulate(position) if self.local_steps == "simulated" else ""

    def _cannot_simulate(self, position: Position) -> str:
        if not position.knows["batch_size"]:
            return "batch size and epochs are not known; set knows.batch_size, or local_steps: one_gradient"
        if self.target == "sum":
            return "a sum has steps of many clients; use target: upload, or local_steps: one_gradient"
        if position.public["training"].per_sample is not None:
            return "steps that clip and noise single records are not simulated; use local_steps: one_gradient"
        return ""

    def _known_batch(self, position: Position) -> bool:
        return bool(position.knows["batch_size"]) and position.public["training"].batch_size != "all"

    def guess(self, view: View) -> list[Attempt]:
        """Returns reconstructed images for each attacked upload and noise."""
        from nodes.adversaries.reconstruction.carry_out import attempts

        return attempts(self, view)

    def score(self, guess: list[Attempt], truth: Truth) -> Result:
        """Compares reconstructions with the records of those who sent the updates."""
        from nodes.adversaries.reconstruction.scoring import score_attempts

        return score_attempts(guess, truth)
