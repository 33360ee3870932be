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
