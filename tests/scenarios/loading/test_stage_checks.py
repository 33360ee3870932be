"""Lists of stages that cannot work are refused with all problems and their cures."""

from __future__ import annotations

import pytest

from p2p.config.errors import UserError
from privacy.stages.clipping import Clip
from privacy.stages.gaussian import Gaussian
from scenarios.loading.load import dump_scenario, load_scenario, parse_scenario


def problems_of(*overrides: str) -> str:
    """All problems of the tiny scenario with these overrides."""
    with pytest.raises(UserError) as caught:
        load_scenario("tiny", ["privacy=none", *overrides])
    return "\n".join(caught.value.problems)


def test_the_short_form_stands_for_two_stages() -> None:
    """`privacy.clip` and `privacy.noise` are a list of two."""
    privacy = load_scenario(
        "tiny", ["privacy={clip: {kind: flat, norm: 2.0}, noise: {kind: gaussian, sigma: 3}}"]
    ).privacy
    assert privacy is not None
    assert privacy.release_stages == (Clip(norm=2.0), Gaussian(sigma=3.0))


def test_a_list_needs_no_privacy_section_and_is_written_out_again() -> None:
    """Budget and delta have defaults; the resolved text loads to an equal scenario."""
    scenario = load_scenario("tiny", ["privacy=none", "update=[{kind: clip}, {kind: gaussian, sigma: 1}]"])
    assert scenario.privacy is not None
    assert scenario.privacy.release_stages == scenario.update == (Clip(), Gaussian(sigma=1.0))
    assert parse_scenario(dump_scenario(scenario)) == scenario


def test_all_problems_of_a_list_are_told_at_once() -> None:
    """A clip after noise, a second noise, the short form beside the list."""
    told = problems_of(
        "update=[{kind: gaussian, sigma: 1}, {kind: clip}, {kind: gaussian, sigma: 2}]", "privacy={clip: flat}"
    )
    assert "update.1 = clip: needs the update without noise, which update.0 (gaussian) has covered; put" in told
    assert "update.2 = gaussian: a second noise after that of update.0 (gaussian)" in told
    assert "privacy.clip: stands beside `update`" in told


def test_calibrated_noise_needs_a_bound() -> None:
    """As in the short form, with the path of the stage."""
    assert "update.0.calibrate = RigorousCalibration: needs a bound; put a stage such as" in problems_of(
        "update=[{kind: gaussian, calibrate: rigorous}]"
    )


def test_numbers_out_of_range_are_refused() -> None:
    """Single precision ends at about 1e38."""
    assert "update.0.norm = 1e+35: must be between" in problems_of("update=[{kind: clip, norm: 1.0e+35}]")


@pytest.mark.parametrize(
    ("update", "place", "why"),
    [
        ("[{kind: top_k, rate: 0.1}, clip, {kind: gaussian, sigma: 1}]", "update.0 = top_k", "positions"),
        ("[clip, {kind: asgp, epsilon: 1}]", "update.1 = asgp", "leave without noise"),
        ("[clip, snlc]", "update.1 = snlc", "chosen from the client's own update"),
        ("[{kind: top_k, rate: 0.1}, clip, {kind: gaussian, calibrate: rigorous}]", "update.0 = top_k", "positions"),
    ],
)
def test_a_rigorous_budget_needs_stages_that_are_accounted_for(update: str, place: str, why: str) -> None:
    """Otherwise clients would stop at an epsilon that is not theirs; the message names the leak and the cure."""
    budget = "privacy={budget: {by: rigorous, epsilon: 8}}"
    told = problems_of(f"update={update}", budget)
    assert f"{place}: beside `privacy.budget.by: rigorous` this leaves uncharged" in told
    assert why in told
    assert "set `privacy.budget: {by: none}`" in told
    free = load_scenario("tiny", ["privacy={budget: {by: none}}", f"update={update}"])
    assert free.privacy is not None


def test_a_rigorous_budget_beside_losses_or_an_overspending_schedule_is_refused() -> None:
    """What the aggregate and the schedule leave uncharged counts as well."""
    short = "privacy={clip: flat, noise: {kind: gaussian, sigma: 4}, budget: {by: rigorous, epsilon: 8}}"
    assert "aggregate.weights = loss_and_records: beside" in problems_of(short, "aggregate.weights=loss_and_records")
    crd = "schedule={kind: crd, rounding: literal, driven_by: noisy_losses}"
    assert "schedule.rounding = literal: beside" in problems_of(short, crd)


def test_a_rigorous_budget_goes_with_stages_that_are_proved() -> None:
    """Also where they are sparse or not Gaussian."""
    budget = "privacy={budget: {by: rigorous, epsilon: 8}}"
    for update in (
        "[{kind: mask, rate: 0.1}, clip, {kind: gaussian, sigma: 1}, {kind: top_k, rate: 0.5}]",
        "[clip, {kind: binomial, rotate: true}]",
        "[{kind: clip_coordinates, bound: 0.1}, asgp_sound]",
    ):
        assert load_scenario("tiny", ["privacy=none", f"update={update}", budget]).privacy is not None


MODEL_VIEW = "{kind: gaussian, calibrate: {kind: rigorous, epsilon: 2, view: model}}"
CENTRAL = "protocol={kind: central, train_per_round: 4, deadline: 60 s}"


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        ([f"update=[clip, {MODEL_VIEW}, {{kind: top_k, rate: 0.5}}]"], "update.2 = top_k"),
        ([f"update=[{{kind: mask, rate: 0.5, by: last_aggregate}}, clip, {MODEL_VIEW}]"], "update.0 = mask"),
        ([f"update=[clip, {MODEL_VIEW}, clip_cohort_median]"], "update.2 = clip_cohort_median"),
        ([f"update=[clip, {MODEL_VIEW}]", "aggregate={weights: records}"], "aggregate.weights = records"),
        ([f"update=[{{kind: clip, norm: {[1.0] * 5 + [9.0]}}}, {MODEL_VIEW}]"], "update = a list of bounds"),
    ],
)
def test_noise_calibrated_for_means_needs_means_that_hide_all_alike(overrides: list[str], place: str) -> None:
    """Otherwise a budget of the model view would be overspent in every run; `view: local` is no problem."""
    assert f"{place}: leaves a client in a mean with less" in problems_of(CENTRAL, *overrides)
    load_scenario(
        "tiny", ["privacy=none", CENTRAL, *(text.replace("view: model", "view: local") for text in overrides)]
    )


def test_bounds_of_clients_are_one_for_each() -> None:
    """A list of another length is refused, and so is a paper's formula that has one bound for all."""
    assert "update.0.norm = [1.0, 2.0]: has 2 numbers for" in problems_of("update=[{kind: clip, norm: [1, 2]}]")
    clients = load_scenario("tiny").clients
    listed = f"{{kind: clip, norm: {[1.0] * (clients - 1) + [2.0]}}}"
    told = problems_of(f"update=[{listed}, {{kind: gaussian, calibrate: adpdfl}}]")
    assert "update.1.calibrate = AdpdflCalibration: is a paper's formula for one bound of all clients; give" in told
    assert "update.0.norm" in problems_of(f"update=[{{kind: clip, norm: {[0.0] * clients}}}]")
    scenario = load_scenario("tiny", ["privacy=none", f"update=[{listed}, {{kind: gaussian, calibrate: rigorous}}]"])
    assert parse_scenario(dump_scenario(scenario)) == scenario
