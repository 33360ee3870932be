"""Seven membership attacks behind one verb: from models and knowledge to a score and a guess for each record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nodes.adversaries.membership.attack_networks import Classifier, fit
from nodes.adversaries.membership.shadow_models import Recipe, Shadow, train_shadows
from nodes.adversaries.membership.signals import (
    Examples,
    join_examples,
    largest_posteriors,
    layer_gradient_norms,
    log_posteriors,
    modified_entropy,
    true_label,
)
from nodes.learning.kernels.interface import Kernel
from p2p.random_streams import stream
from privacy.attacks.membership.roc import best_threshold, upper_half

Need = Literal["models", "known", "auxiliary"]


@dataclass(frozen=True, slots=True, eq=False)
class AttackedModels:
    """The models that an observer attacks, one for each snapshot in order, [s, d], and how to run them."""

    module: nn.Module
    kernel: Kernel
    snapshots: Tensor
    classes: int


@dataclass(frozen=True, slots=True, eq=False)
class HeldRecords:
    """Records that the adversary has besides: known members and non-members, auxiliary ones, the public recipe."""

    members: Examples | None
    others: Examples | None
    auxiliary: Examples | None
    recipe: Recipe
    seed: int
    shadows: dict[int, list[Shadow]] = field(default_factory=dict)
    """Shadow models by their number: methods and victims share them."""


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """A score for each candidate, larger for likelier members, and whether it is guessed to be one."""

    scores: NDArray[np.float64]
    guessed: NDArray[np.bool_]


class InferenceMethod(Protocol):
    """An attack; `needs` names what it cannot do without."""

    needs: ClassVar[tuple[Need, ...]]

    def infer(self, models: AttackedModels, knowledge: HeldRecords, candidates: Examples) -> Inference:
        """Scores the candidates without knowing which are members."""


class LossThreshold:
    """Minus the loss under the last model; the better half is guessed (Yeom et al. 2018)."""

    needs: ClassVar[tuple[Need, ...]] = ("models",)

    def infer(self, models: AttackedModels, knowledge: HeldRecords, candidates: Examples) -> Inference:
        """Guesses by rank alone."""
        return _by_rank(true_label(_last(models, candidates), candidates.labels))


class ModifiedEntropy:
    """Minus the modified entropy under the last model; the better half is guessed (Song & Mittal 2021)."""

    needs: ClassVar[tuple[Need, ...]] = ("models",)

    def infer(self, models: AttackedModels, knowledge: HeldRecords, candidates: Examples) -> Inference:
        """Guesses by rank alone."""
        return _by_rank(-modified_entropy(_last(models, candidates), candidates.labels))


class Basic:
    """Confidence of the true label under the last model; the threshold is the best one on a shadow model."""

    needs: ClassVar[tuple[Need, ...]] = ("models", "auxiliary")

    def infer(self, models: AttackedModels, knowledge: HeldRecords, candidates: Examples) -> Inference:
        """Transfers the threshold of one shadow model."""
        (shadow,) = _shadows(knowledge, 1)
        threshold = best_threshold(*(_confidences(models, shadow, part) for part in (shadow.inside, shadow.outside)))
        scores = true_label(_last(models, candidates), candidates.labels).numpy()
        return Inference(scores, scores > threshold)


class MlLeaks:
    """The three largest posteriors, judged by a network trained on one shadow (Salem et al. 2019, adversary 1)."""

    needs: ClassVar[tuple[Need, ...]] = ("models", "auxiliary")

    def infer(self, models: AttackedModels, knowledge: HeldRecords, candidates: Examples) -> Inference:
        """Needs no labels: only what the model outputs."""

        def features(model: Tensor, examples: Examples) -> Tensor:
            return largest_posteriors(log_posteriors(models.kernel, model[None], examples.records)[0])

        judge = _fit_on(_shadows(knowledge, 1), features, knowledge, "ml_leaks")
        return _by_odds(judge(features(models.snapshots[-1], candidates)))


class ShadowModels:
    """All posteriors and the label, judged by one network per class trained on four shadows (Shokri et al. 2017)."""

    needs: ClassVar[tuple[Need, ...]] = ("models", "auxiliary")
    COUNT: ClassVar[int] = 4

    def infer(self, models: AttackedModels, knowledge: HeldRecords, candidates: Examples) -> Inference:
        """Trains the network of a class on the shadows' records of that class."""
        shadows = _shadows(knowledge, self.COUNT)
        posteriors = _last(models, candidates)
        scores = torch.zeros(len(candidates), dtype=torch.float64)
        for label in np.unique(candidates.labels.numpy()).tolist():
            chosen = candidates.labels == label
            scores[chosen] = self._judge(models, knowledge, shadows, label)(posteriors[chosen].exp())
        return _by_odds(scores)

    def _judge(self, models: AttackedModels, knowledge: HeldRecords, shadows: list[Shadow], label: int) -> Classifier:
        def features(model: Tensor, examples: Examples) -> Tensor:
            return log_posteriors(models.kernel, model[None], examples.records)[0].exp()

        of_class = [
            Shadow(one.model, one.inside.at(one.inside.labels == label), one.outside.at(one.outside.labels == label))
            for one in shadows
        ]
        # A class that the auxiliary records hardly have is judged by a network of all classes.
        enough = all(sum(len(part) for part in parts) >= 2 for parts in _both_sides(of_class))
        return _fit_on(of_class if enough else shadows, features, knowledge, "shadow_models", label)


class WhiteBox:
    """Loss, label, confidence and each layer's gradient norm under several snapshots (after Nasr et al. 2019)."""

    needs: ClassVar[tuple[Need, ...]] = ("models", "known")
    SNAPSHOTS: ClassVar[int] = 5

    def infer(self, models: AttackedModels, knowledge: HeldRecords, candidates: Examples) -> Inference:
        """Trains on known members and non-members."""
        places = np.unique(np.linspace(0, len(models.snapshots) - 1, self.SNAPSHOTS).round().astype(int))
        snapshots = models.snapshots[torch.from_numpy(places)]

        def features(examples: Examples) -> Tensor:
            hot = nn.functional.one_hot(examples.labels, models.classes).double()
            logs = true_label(log_posteriors(models.kernel, snapshots, examples.records), examples.labels)
            norms = [layer_gradient_norms(models.module, model, examples) for model in snapshots]
            return torch.cat([hot, -logs.T, logs.exp().T, *norms], 1)

        return _by_odds(_fit_on_known(features, knowledge, "white_box")(features(candidates)))


class ConfidenceSeries:
    """Confidences of the true label over all snapshots, judged by a network on known ones (CS-MIA, Gu et al. 2022)."""

    needs: ClassVar[tuple[Need, ...]] = ("models", "known")

    def infer(self, models: AttackedModels, knowledge: HeldRecords, candidates: Examples) -> Inference:
        """Trains on the series of known members and non-members."""

        def features(examples: Examples) -> Tensor:
            logs = log_posteriors(models.kernel, models.snapshots, examples.records)
            return true_label(logs, examples.labels).exp().T

        return _by_odds(_fit_on_known(features, knowledge, "cs_mia")(features(candidates)))


MEMBERSHIP_ATTACKS: dict[str, type[InferenceMethod]] = {
    "loss_threshold": LossThreshold,
    "modified_entropy": ModifiedEntropy,
    "basic": Basic,
    "ml_leaks": MlLeaks,
    "shadow_models": ShadowModels,
    "white_box": WhiteBox,
    "cs_mia": ConfidenceSeries,
}


def _last(models: AttackedModels, examples: Examples) -> Tensor:
    return log_posteriors(models.kernel, models.snapshots[-1:], examples.records)[0]


def _confidences(models: AttackedModels, shadow: Shadow, part: Examples) -> NDArray[np.float64]:
    found: NDArray[np.float64] = true_label(
        log_posteriors(models.kernel, shadow.model[None], part.records)[0], part.labels
    ).numpy()
    return found


def _shadows(knowledge: HeldRecords, count: int) -> list[Shadow]:
    if knowledge.auxiliary is None:
        raise ValueError("an attack that needs auxiliary records was given none")
    if count not in knowledge.shadows:
        trained = train_shadows(knowledge.recipe, knowledge.auxiliary, count, knowledge.seed, "membership", "shadows")
        knowledge.shadows[count] = trained
    return knowledge.shadows[count]


def _fit_on(
    shadows: list[Shadow],
    features: Callable[[Tensor, Examples], Tensor],
    knowledge: HeldRecords,
    *name: str | int,
) -> Classifier:
    """Returns a network trained on the members and non-members of shadow models."""
    inside, outside = (
        torch.cat([features(one.model, part) for one, part in zip(shadows, parts, strict=True)])
        for parts in _both_sides(shadows)
    )
    return fit(inside, outside, stream(knowledge.seed, "membership", *name, "network"))


def _both_sides(shadows: list[Shadow]) -> tuple[list[Examples], list[Examples]]:
    return [one.inside for one in shadows], [one.outside for one in shadows]


def _fit_on_known(features: Callable[[Examples], Tensor], knowledge: HeldRecords, name: str) -> Classifier:
    if knowledge.members is None or knowledge.others is None:
        raise ValueError("an attack that needs known members was given none")
    # One call for both, so that a gradient of every record is computed once.
    found = features(join_examples([knowledge.members, knowledge.others]))
    split = len(knowledge.members)
    return fit(found[:split], found[split:], stream(knowledge.seed, "membership", name, "network"))


def _by_rank(scores: Tensor) -> Inference:
    values: NDArray[np.float64] = scores.numpy()
    return Inference(values, upper_half(values))


def _by_odds(log_odds: Tensor) -> Inference:
    values: NDArray[np.float64] = log_odds.numpy()
    return Inference(values, values > 0.0)
