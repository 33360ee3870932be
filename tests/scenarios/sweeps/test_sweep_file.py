"""Sweep files: what they mean, and every problem of their form at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2p.config.errors import UserError
from scenarios.sweeps.grid import expand
from scenarios.sweeps.sweep_file import load_sweep, parse_sweep

GOOD = """
name: price
bases: [tiny, leader-plain]
settings: {rounds: 2}
axes:
  privacy.noise.sigma: [0.1, 1]
  protocol.train_per_round: {from: 3, to: 5, step: 1}
zip:
  - {data.spread: [0.5, 1.0], training.learning_rate: [0.1, 0.05]}
seeds: 5
"""


def test_a_sweep_counts_its_cells() -> None:
    """Two bases, two times three times two settings, five seeds."""
    sweep = parse_sweep(GOOD)
    assert sweep.size() == 2 * 2 * 3 * 2 * 5
    assert sweep.axes == ["privacy.noise.sigma", "protocol.train_per_round", "data.spread", "training.learning_rate"]
    assert sweep.groups[1][0].values == (3, 4, 5)


def test_a_range_of_fractions_has_its_end_and_no_rounding_errors() -> None:
    """0.1 + 2 * 0.1 is 0.3, and 0.5 is not lost."""
    sweep = parse_sweep("name: a\nbases: [tiny]\naxes: {data.spread: {from: 0.1, to: 0.5, step: 0.1}}")
    assert sweep.groups[0][0].values == (0.1, 0.2, 0.3, 0.4, 0.5)


def test_all_problems_come_at_once() -> None:
    """Those of the form (unknown key, empty axis, repeated values, seed as an axis) and those of bases and cells."""
    text = """
bases: [tiny, tiny, nosuch]
axis: {}
axes:
  {rounds: [], clients: [3, 3], data.spread: {from: 1, to: 0, step: 1}, seed: [1], training.epochs: [x], no.way: [1]}
zip: [{a: [1], b: [1, 2]}]
seeds: 0
"""
    with pytest.raises(UserError) as caught:
        expand(parse_sweep(text, "bad.yaml"))
    told = str(caught.value)
    assert told.startswith("bad.yaml: 13 problems")
    for part in (
        "axis: unknown key; did you mean `axes`?",
        "name: required key is missing",
        "bases = tiny: stands there twice",
        "axes.rounds = []: is empty",
        "axes.clients = 3: stands there twice",
        "axes.data.spread = {from: 1, to: 0, step: 1}: needs step > 0",
        "zip.0: axes that move together need equally many values: a has 1, b has 2",
        "seeds = 0: must be",
        "axes.seed: cannot be an axis or a setting; use `seeds`",
        "bases = nosuch: ",
        "training.epochs = x: must be",
        "no.way",
    ):
        assert part in told


def test_axes_that_move_together_may_repeat_a_value_but_not_a_row() -> None:
    """(1, 5), (1, 6) are two settings; a second (1, 5) is not."""
    sweep = parse_sweep("name: a\nbases: [tiny]\nzip: [{rounds: [1, 1], clients: [5, 6]}]")
    assert sweep.size() == 2
    with pytest.raises(UserError, match=r"zip\.0 = 1, 5: stands there twice"):
        expand(parse_sweep("name: a\nbases: [tiny]\nzip: [{rounds: [1, 1], clients: [5, 5]}]"))


@pytest.mark.parametrize("text", ["", "- 1", "name: [", "name: &a x"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    """One message, with the file's name."""
    with pytest.raises(UserError, match=r"sweep\.yaml"):
        parse_sweep(text, "sweep.yaml")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """Not a traceback."""
    with pytest.raises(UserError, match="cannot be read"):
        load_sweep(tmp_path / "nowhere.yaml")
