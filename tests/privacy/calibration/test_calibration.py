"""Noise plans: the published one literally, the others by proof."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.config.errors import UserError
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.calibration.noise_plan import PlanContext
from privacy.calibration.strategies import CALIBRATIONS, AdpdflCalibration, DpFedAvgCalibration, RigorousCalibration
from privacy.mechanisms.clip_and_noise import CLIPS, NOISES, FlatClip, GaussianNoise, NoClip, NoNoise
from privacy.settings import Budget, Privacy
from privacy.stages.release_plan import plan_noise


def context(**changes: object) -> PlanContext:
    """Weng's MNIST run by a rotating leader."""
    fixed: dict[str, object] = {
        "clients": 100,
        "train_per_round": 70,
        "exchange_with": None,
        "rounds": 50,
        "records": np.full(100, 600),
        "topology": "pseudo_central",
    }
    return PlanContext(**{**fixed, **changes})  # type: ignore[arg-type]


def adpdfl(**keys: object) -> Privacy:
    """Theorem 8 with clip norm 1."""
    return Privacy(clip=FlatClip(), noise=GaussianNoise(calibrate=AdpdflCalibration(**keys)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "keys", "std"),
    [
        ({}, {}, 0.000303936369279684),
        ({"topology": "gossip", "exchange_with": 30}, {}, 0.0016647280550070313),
        ({}, {"m_reading": "m_tcs"}, 0.0004341948132566915),
        ({}, {"m_reading": "m_tcs", "noise_reading": "theorem_8"}, 0.0037216698279144986),
        ({"topology": "gossip", "exchange_with": 30}, {"noise_reading": "theorem_8"}, 0.009988368330042187),
    ],
)
def test_theorem_8_noise_in_every_reading(changes: dict[str, object], keys: dict[str, object], std: float) -> None:
    """The reference values of the specification."""
    plan = plan_noise(adpdfl(**keys), context(**changes))
    np.testing.assert_allclose(plan.noise_std, np.full(100, std), rtol=1e-9)
    assert (plan.clip_norm, plan.sensitivity) == (1.0, 2.0)


def test_noise_follows_each_clients_records() -> None:
    """With 2 C sigma / n a client with twice the records adds half the noise."""
    plan = plan_noise(adpdfl(), context(records=np.array([300] * 50 + [600] * 50)))
    assert plan.noise_std[0] == pytest.approx(2 * plan.noise_std[99])


def test_notes_name_the_broken_conditions() -> None:
    """Theorem 8's three side conditions fail at Weng's own setting, and the plan says so."""
    notes = " ".join(plan_noise(adpdfl(), context()).notes)
    assert notes.count("E-T04") == 3
    assert "first-come" in " ".join(plan_noise(adpdfl(), context(selection="first_come")).notes)


def test_without_rehash_nothing_published_applies() -> None:
    """Theorem 8 presumes addresses that change; the noise stays, the claim goes."""
    plan = plan_noise(adpdfl(), context(rehash=False))
    assert plan.published is None
    assert "not applicable" in " ".join(plan.notes)
    assert plan.noise_std[0] > 0


@pytest.mark.slow
@given(st.floats(0.1, 20.0), st.integers(1, 500))
def test_published_epsilon_returns_what_was_asked(epsilon: float, rounds: int) -> None:
    """Theorem 8 inverted after T rounds is the epsilon it was calibrated for, and grows with rounds."""
    rule = plan_noise(adpdfl(epsilon=epsilon), context(rounds=rounds)).published
    assert rule is not None
    assert rule.epsilon_after(rounds) == pytest.approx(epsilon, rel=1e-9)
    assert rule.max_rounds(epsilon) == rounds
    assert 0.0 == rule.epsilon_after(0) < rule.epsilon_after(rounds) < rule.epsilon_after(rounds + 1)


@pytest.mark.slow
@given(st.floats(0.1, 100.0), st.floats(1e-9, 0.1), st.integers(1, 200))
def test_rigorous_noise_gives_exactly_epsilon(epsilon: float, delta: float, rounds: int) -> None:
    """N releases with the planned noise cost epsilon in the local view."""
    noise = GaussianNoise(calibrate=RigorousCalibration(epsilon=epsilon, delta=delta))
    plan = plan_noise(Privacy(clip=FlatClip(norm=0.5), noise=noise), context(rounds=rounds))
    mu = math.sqrt(rounds) * plan.sensitivity / plan.noise_std[0]
    assert epsilon_of(mu, delta) == pytest.approx(epsilon, rel=1e-8)


def test_honest_noise_at_the_thesis_setting() -> None:
    """An honest client-level (8, 1e-5) with 35 participations needs 7.1 C locally and 0.85 C for the model."""
    for view, std in (("local", 7.1), ("model", 0.85)):
        noise = GaussianNoise(calibrate=RigorousCalibration(view=view, releases=35))  # type: ignore[arg-type]
        plan = plan_noise(Privacy(clip=FlatClip(), noise=noise), context())
        assert plan.noise_std[0] == pytest.approx(std, rel=0.01)


def test_gossip_gives_no_credit_for_averaging() -> None:
    """In gossip `model` needs the noise of `local`, and the plan says why."""
    stds = []
    for view in ("local", "model"):
        noise = GaussianNoise(calibrate=RigorousCalibration(view=view))
        plan = plan_noise(Privacy(clip=FlatClip(), noise=noise), context(topology="gossip", exchange_with=30))
        stds.append(plan.noise_std[0])
    assert stds[0] == stds[1]
    assert "gossip" in plan.notes[0]


@pytest.mark.slow
def test_dp_fedavg_splits_the_reference_multiplier() -> None:
    """z = 3.259 for q = 0.7, T = 50, (8, 1e-5); each of 70 clients adds z C / sqrt(70)."""
    plan = plan_noise(Privacy(clip=FlatClip(), noise=GaussianNoise(calibrate=DpFedAvgCalibration())), context())
    assert plan.noise_std[0] * math.sqrt(70) == pytest.approx(3.2590348226695443, rel=1e-4)
    late = plan_noise(
        Privacy(clip=FlatClip(), noise=GaussianNoise(calibrate=DpFedAvgCalibration())),
        context(selection="first_come"),
    )
    assert late.noise_std[0] > plan.noise_std[0]


def test_given_noise_is_what_is_added() -> None:
    """`sigma` is the standard deviation itself; by default nothing limits the run."""
    privacy = Privacy(clip=FlatClip(), noise=GaussianNoise(sigma=0.25))
    assert set(plan_noise(privacy, context()).noise_std) == {0.25}
    assert privacy.resolved_budget() == ("none", math.inf, 1e-5)


def test_given_noise_may_be_charged_by_theorem_8() -> None:
    """With a published budget the smallest client's sigma counts: T_max of the reference case."""
    std = 2 * 0.12 / 600
    privacy = Privacy(clip=FlatClip(), noise=GaussianNoise(sigma=std), budget=Budget(by="published", epsilon=8.0))
    rule = plan_noise(privacy, context()).published
    assert rule is not None
    assert rule.max_rounds(8.0) == 86


def test_no_privacy_plans_no_noise_and_says_so() -> None:
    """The default section adds nothing and claims nothing."""
    plan = plan_noise(Privacy(), context())
    assert not plan.noise_std.any()
    assert plan.clip_norm == plan.sensitivity == math.inf
    assert len(plan.notes) == 2


@pytest.mark.parametrize(
    ("privacy", "path"),
    [
        (Privacy(clip=NoClip(), noise=GaussianNoise(calibrate=AdpdflCalibration())), "privacy.clip = none"),
        (Privacy(budget=Budget(by="rigorous", epsilon=8.0)), "privacy.budget.by = rigorous"),
        (Privacy(budget=Budget(by="published", epsilon=8.0)), "privacy.budget.by = published"),
        (
            Privacy(clip=FlatClip(), noise=GaussianNoise(sigma=1.0), budget=Budget(by="rigorous")),
            "privacy.budget.epsilon",
        ),
        (
            Privacy(
                clip=FlatClip(),
                noise=GaussianNoise(calibrate=RigorousCalibration()),
                budget=Budget(by="published"),
            ),
            "privacy.budget.by = published",
        ),
    ],
)
def test_contradictions_are_told_with_path_rule_and_cure(privacy: Privacy, path: str) -> None:
    """Planning refuses what `check` would refuse, in the same words."""
    with pytest.raises(UserError) as caught:
        plan_noise(privacy, context())
    assert any(line.startswith(path) and ";" in line for line in caught.value.problems)


def test_theorem_8_needs_small_epsilon() -> None:
    """epsilon >= 2 ln(1/delta) is refused when the section is made."""
    with pytest.raises(ValueError, match="2 ln"):
        AdpdflCalibration(epsilon=24.0, delta=1e-5)
    with pytest.raises(ValueError, match="exactly one"):
        GaussianNoise()
    with pytest.raises(ValueError, match="exactly one"):
        GaussianNoise(sigma=1.0, calibrate=AdpdflCalibration())


def test_every_entry_of_every_table_has_defaults() -> None:
    """Each kind can be made from its defaults, but noise, which must say how much."""
    for table in (CLIPS, CALIBRATIONS):
        for kind in table.values():
            assert kind()
    assert isinstance(NOISES["none"](), NoNoise)
