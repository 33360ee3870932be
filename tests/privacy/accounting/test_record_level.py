"""The record-level account against dp-accounting, against the formula in plain Python, and against an audit."""

from __future__ import annotations

import math
from typing import Any

import dp_accounting
import numpy as np
import pytest

from nodes.datasets.dataset import Dataset
from nodes.learning.model_kinds.models import Linear
from nodes.learning.private_records.dp_sgd import RecordNoise
from nodes.learning.trainer import Learner
from nodes.learning.training import PerSample, Training
from p2p.random_streams import stream
from privacy.accounting.record_level import RecordAccount, SampledGaussian, calibrated_record_noise, record_epsilon
from tests.privacy.accounting.audit import lower_epsilon

DELTA = 1e-5
CASES = [(0.01, 0.8, 1000), (0.1, 1.0, 100), (0.35, 2.0, 60), (0.7, 5.3, 40), (1.0, 4.0, 20)]


def step(rate: float, multiplier: float) -> Any:
    """One step as dp-accounting describes it."""
    return dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "multiplier", "steps"), CASES)
def test_the_figure_is_that_of_dp_accounting(rate: float, multiplier: float, steps: int) -> None:
    """Equal to its RDP at our orders, and above its privacy loss distributions, which are tighter, by little."""
    ours = record_epsilon((SampledGaussian(rate, multiplier, steps),), DELTA)
    rdp = dp_accounting.rdp.RdpAccountant([*range(2, 65), 72, 80, 96, 112, 128, 160, 192, 224, 256])
    assert ours == pytest.approx(rdp.compose(step(rate, multiplier), steps).get_epsilon(DELTA), rel=1e-9)
    exact = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    tight = exact.compose(step(rate, multiplier), steps).get_epsilon(DELTA)
    assert tight * 0.999 <= ours <= 1.2 * tight


def test_the_formula_in_plain_python() -> None:
    """Binomial sums of Mironov, Talwar and Zhang (2019), with exact integers for the coefficients."""
    rate, z, steps = 0.2, 1.3, 30
    found = []
    for order in range(2, 40):
        terms = (
            math.comb(order, k) * (1 - rate) ** (order - k) * rate**k * math.exp(k * (k - 1) / (2 * z * z))
            for k in range(order + 1)
        )
        rdp = steps * math.log(math.fsum(terms)) / (order - 1)
        found.append(rdp + math.log1p(-1 / order) - (math.log(DELTA) + math.log(order)) / (order - 1))
    assert record_epsilon((SampledGaussian(rate, z, steps),), DELTA) == pytest.approx(min(found), rel=1e-9)


@pytest.mark.slow
def test_what_came_before_is_composed() -> None:
    """A generator trained by DP-SGD and then a training: dp-accounting's composition of both."""
    both = (SampledGaussian(0.3, 1.5, 50), SampledGaussian(0.1, 1.0, 100))
    rdp = dp_accounting.rdp.RdpAccountant(list(range(2, 65)))
    rdp.compose(step(0.3, 1.5), 50).compose(step(0.1, 1.0), 100)
    assert record_epsilon(both, DELTA) == pytest.approx(rdp.get_epsilon(DELTA), rel=1e-9)
    assert record_epsilon(both, DELTA) > max(record_epsilon((one,), DELTA) for one in both)


def account(**changes: Any) -> RecordAccount:
    """Three clients: one with few records and so a high rate, one with many and so many steps."""
    known: dict[str, Any] = {
        "rates": np.array([0.5, 0.1, 0.1]),
        "steps": np.array([2, 10, 10]),
        "multiplier": 1.2,
        "delta": DELTA,
    }
    return RecordAccount(**known | changes)


def test_the_worst_record_is_that_of_any_client() -> None:
    """Few records may be worse than many steps; a client that has not trained has lost nothing."""
    held = account()
    each = held.epsilons([3, 5, 0])
    assert each[2] == 0.0
    assert held.worst([3, 5, 0]).epsilon == max(each)
    assert held.worst([3, 5, 0]).how == "bound"
    assert held.worst([0, 0, 0]).epsilon == 0.0
    assert held.worst([3, 6, 0]).epsilon >= held.worst([3, 5, 0]).epsilon


def test_nothing_is_proved_without_noise_or_with_a_reason() -> None:
    """The reason is told."""
    assert account(multiplier=0.0).worst([1, 1, 1]).how == "inf"
    told = account(why_not="means were pooled").worst([1, 1, 1])
    assert (told.how, told.because) == ("inf", "means were pooled")
    assert account(why_not="means were pooled").epsilons([1, 0, 0]).tolist() == [math.inf, 0.0, 0.0]


def test_noise_for_an_epsilon_is_the_least_that_keeps_to_it() -> None:
    """For the client that needs most."""
    exposures = [(0.7, 40), (0.1, 400)]
    planned = [(SampledGaussian(rate, 1.0, steps),) for rate, steps in exposures]
    noise = calibrated_record_noise(planned, 4.0, DELTA)
    assert noise is not None

    def spent(multiplier: float) -> float:
        return max(record_epsilon((SampledGaussian(rate, multiplier, steps),), DELTA) for rate, steps in exposures)

    assert spent(noise) <= 4.0 < spent(noise * 0.999)
    generator = SampledGaussian(1.0, 0.5, 10)
    assert calibrated_record_noise([(generator, *one) for one in planned], 4.0, DELTA) is None


TRIALS = 20_000
LOOSE = 0.01
"""The delta of the audits: with more of it, fewer trials come close to the figure."""


def canary_scores(private: PerSample, multiplier: float, records: int) -> tuple[Any, Any]:
    """A client trains thousands of times with and without a canary; scored is how far it went along its gradient.

    Without it the canary's label-free place is empty: the same number of records, rate, steps and divisor.
    """
    images = np.zeros((records + 1, 4), dtype=np.float32)
    images[0] = [60.0, 0.0, 0.0, 0.0]  # a gradient far above the clipping norm
    images[1:-1] = stream(8, "test").standard_normal((records - 1, 4)) * 0.3
    labels = np.zeros(records + 1, dtype=np.int64)
    training = Training(batch_size=2, epochs=1, learning_rate=1.0, per_sample=private)
    shards = [np.arange(records)] * TRIALS
    found = []
    for present in (False, True):
        dataset = Dataset(images.copy(), labels, images, labels, 2)
        seed = 100 + present
        learner = Learner(Linear(), dataset, shards, training, seed, record_noise=RecordNoise(private, multiplier))
        if not present:
            # An empty place: its loss has no gradient, whatever the model.
            dataset.train_x[0] = 0.0
            learner._train.records[0] = 0.0
            learner._objective = _SilentFirst()
            learner._train.targets[0] = 0.0
        models = np.tile(learner.initial(), (TRIALS, 1))
        trained = learner.train(models, range(TRIALS), 1, [0] * TRIALS)
        # Class 0 gains along the first feature, class 1 loses.
        found.append((trained[:, 0] - trained[:, 4]).astype(np.float64))
    return found[0], found[1]


class _SilentFirst:
    """Cross-entropy for records that have a label; a place without one has no gradient."""

    def terms(self, records: Any) -> Any:
        from nodes.learning.objectives import Terms, cross_entropy

        return Terms(lambda scores, targets: cross_entropy(scores, targets) * targets.sum(2, keepdim=True))


@pytest.mark.slow
@pytest.mark.parametrize(("sampling", "records", "noise"), [("poisson", 4, 0.8), ("shuffled", 4, 0.8)])
def test_no_audit_beats_the_figure(sampling: Any, records: int, noise: float) -> None:
    """The lower bound of thousands of trainings with and without a canary is below, and not far below."""
    private = PerSample(clip=1.0, noise=noise, sampling=sampling)
    without, with_it = canary_scores(private, noise, records)
    training = Training(batch_size=2, per_sample=private)
    charge = SampledGaussian(training.exposure(records).rate, noise, training.exposure(records).steps)
    found, figure = lower_epsilon(without, with_it, LOOSE), record_epsilon((charge,), LOOSE)
    assert 0.4 * figure < found <= figure
    # An accountant that took the noise for twice as large is refuted.
    assert found > record_epsilon((charge._replace(multiplier=2 * noise),), LOOSE)
    # Amplification that shuffled batches do not have would be refuted too.
    if sampling == "shuffled":
        assert found > record_epsilon((charge._replace(rate=0.1),), LOOSE)
