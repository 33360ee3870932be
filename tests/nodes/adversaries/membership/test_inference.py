"""Every membership attack: near perfect on memorised labels, near chance on a model that saw no record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from nodes.adversaries.membership.inference import MEMBERSHIP_ATTACKS, AttackedModels, HeldRecords, Inference
from nodes.adversaries.membership.shadow_models import Recipe, train_shadows
from nodes.adversaries.membership.signals import Examples
from nodes.datasets.dataset import Dataset
from nodes.learning.model_kinds.models import Mlp
from nodes.learning.objectives import CrossEntropy
from nodes.learning.trainer import Learner
from nodes.learning.training import Training
from p2p.random_streams import stream
from privacy.attacks.membership.roc import roc_of

MODEL = Mlp(hidden=(64,))
TRAINING = Training(epochs=10, batch_size=10, learning_rate=0.2)
ROUNDS = 20


@dataclass(frozen=True)
class Game:
    """Digits with random labels, which can only be learned by heart: 60 scored members and as many non-members."""

    models: AttackedModels
    knowledge: HeldRecords
    members: Examples
    others: Examples

    def play(self, attack: str) -> tuple[Inference, float]:
        """The attack's answers on all candidates, and its AUC."""
        both = Examples(
            torch.cat([self.members.records, self.others.records]), torch.cat([self.members.labels, self.others.labels])
        )
        found = MEMBERSHIP_ATTACKS[attack]().infer(self.models, self.knowledge, both)
        half = len(self.members)
        return found, roc_of(found.scores[:half], found.scores[half:]).area()


def make_game(digits: Dataset, trained: bool) -> Game:
    """With `trained` false the snapshots are of a model that never saw a record."""
    labels = stream(0, "test", "labels").integers(0, 10, len(digits.train_y))
    shuffled = Dataset(digits.train_x, labels, digits.test_x, digits.test_y, 10)
    learner = Learner(MODEL, shuffled, [np.arange(100)], TRAINING, 0)
    model, snapshots = learner.initial()[None], [learner.initial()]
    for number in range(1, ROUNDS + 1):
        if trained:
            model = learner.train(model, [0], number)
        snapshots.append(model[0])

    def examples(first: int, last: int) -> Examples:
        return Examples(torch.from_numpy(digits.train_x[first:last]), torch.from_numpy(labels[first:last]))

    recipe = Recipe(MODEL, TRAINING, CrossEntropy(), 10, learner.initial(), ROUNDS)
    knowledge = HeldRecords(examples(60, 100), examples(160, 200), examples(200, 400), recipe, 7)
    attacked = AttackedModels(learner.module, learner.kernel, torch.from_numpy(np.stack(snapshots)), 10)
    return Game(attacked, knowledge, examples(0, 60), examples(100, 160))


@pytest.fixture(scope="module")
def memorised(digits: Dataset) -> Game:
    """A model that has learned its records by heart."""
    return make_game(digits, trained=True)


@pytest.fixture(scope="module")
def untouched(digits: Dataset) -> Game:
    """A model that saw no record."""
    return make_game(digits, trained=False)


@pytest.mark.slow
@pytest.mark.parametrize("attack", list(MEMBERSHIP_ATTACKS))
def test_near_perfect_where_everything_is_memorised(memorised: Game, attack: str) -> None:
    """AUC and accuracy; ML-Leaks sees no labels, which are what was memorised."""
    found, area = memorised.play(attack)
    right = np.mean(found.guessed == (np.arange(120) < 60))
    least_area, least_right = (0.6, 0.55) if attack == "ml_leaks" else (0.9, 0.8)
    assert area > least_area, area
    assert right > least_right, right


@pytest.mark.slow
@pytest.mark.parametrize("attack", list(MEMBERSHIP_ATTACKS))
def test_near_chance_where_nothing_was_learned(untouched: Game, attack: str) -> None:
    """Within four standard errors of AUC 0.5 for 60 against 60, which is 0.053."""
    found, area = untouched.play(attack)
    assert abs(area - 0.5) < 4 * 0.053, area
    assert found.scores.shape == found.guessed.shape == (120,)


@pytest.mark.slow
def test_shadows_are_reproducible_and_differ(memorised: Game) -> None:
    """Each is trained on another half; records inside and outside are disjoint and all."""
    knowledge = memorised.knowledge
    assert knowledge.auxiliary is not None
    first, second = train_shadows(knowledge.recipe, knowledge.auxiliary, 2, 3, "t")
    again, _ = train_shadows(knowledge.recipe, knowledge.auxiliary, 2, 3, "t")
    assert torch.equal(first.model, again.model)
    assert not torch.equal(first.model, second.model)
    assert len(first.inside) + len(first.outside) == len(knowledge.auxiliary)
    assert len(first.inside) == 100


def test_every_attack_says_what_it_needs() -> None:
    """Conformance over the table."""
    for kind in MEMBERSHIP_ATTACKS.values():
        assert "models" in kind.needs
        assert set(kind.needs) <= {"models", "known", "auxiliary"}
        assert kind.__doc__
