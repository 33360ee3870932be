"""Cells: which there are, what they are called by, and problems of all of them at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from p2p.config.errors import UserError
from scenarios.loading.load import dump_scenario, load_scenario, parse_scenario
from scenarios.sweeps.grid import Grid, expand
from scenarios.sweeps.identity import cell_key, cell_keys
from scenarios.sweeps.run_sweep import choose
from scenarios.sweeps.sweep_file import parse_sweep


def grid(text: str, folder: Path | None = None) -> Grid:
    """The cells of a sweep."""
    return expand(parse_sweep(f"name: story\n{text}", folder=folder))


def problems(text: str, folder: Path | None = None) -> str:
    """What a bad sweep is told."""
    with pytest.raises(UserError) as caught:
        grid(text, folder)
    return str(caught.value)


def test_every_combination_is_a_cell_first_seeds_first() -> None:
    """Axes multiply, zipped axes move together."""
    cells = grid(
        "bases: tiny\naxes: {rounds: [1, 2]}\nzip: [{clients: [6, 7], data.spread: [0.5, 1.0]}]\nseeds: 2"
    ).cells
    assert [cell.seed for cell in cells] == [1] * 4 + [2] * 4
    assert [tuple(cell.settings.values()) for cell in cells[:4]] == [(1, 6, 0.5), (1, 7, 1.0), (2, 6, 0.5), (2, 7, 1.0)]
    assert cells[0].label == "tiny, rounds=1, clients=6, spread=0.5, seed=1"
    assert len({cell.key for cell in cells}) == 8


def test_an_axis_that_a_base_lacks_is_left_out_there_and_said() -> None:
    """The plain base runs once per seed instead of once per sigma."""
    found = grid("bases: [tiny, leader-plain]\naxes: {privacy.noise.sigma: [0.1, 1.0]}\nseeds: 2")
    assert [(cell.base, dict(cell.settings)) for cell in found.cells if cell.seed in (0, 1)].count(
        ("leader-plain", {})
    ) <= 2
    assert sum(cell.base == "leader-plain" for cell in found.cells) == 2
    assert sum(cell.base == "tiny" for cell in found.cells) == 4
    assert len(found.remarks) == 1
    assert found.remarks[0].startswith("privacy.noise.sigma: left out in leader-plain")


def test_a_key_of_a_section_that_is_off_can_be_an_axis() -> None:
    """The loader decides what can be set, as for --set."""
    assert len(grid("bases: tiny\naxes: {evaluation.target_accuracy: [0.5, 0.6]}").cells) == 2


def test_long_settings_give_names_that_may_be_run() -> None:
    """A worker loads the cell from its text: a name that is cut off in dots would be refused there."""
    axes = """
axes:
  network.latency: [{kind: uniform, low: 20 ms, high: 120 ms}]
  compute: [{kind: lognormal, median: 200 samples/s, sigma: 0.4}]
"""
    (cell,) = grid(f"bases: [tiny]{axes}").cells
    assert len(cell.label) > 80
    assert parse_scenario(dump_scenario(cell.scenario)).name == cell.scenario.name


def test_bad_cells_are_all_told_at_once(tmp_path: Path) -> None:
    """Unknown axis, wrong types, a base that does not check, one that is not there."""
    (tmp_path / "broken.yaml").write_text("name: broken\nrounds: 0\n")
    told = problems(
        "bases: [tiny, broken.yaml, nowhere]\naxes: {rounds: [1, many], protocol.train_per_rond: [3]}", tmp_path
    )
    for part in (
        "bases = broken.yaml: rounds = 0: must be >= 1",
        "bases = nowhere: nowhere: neither a file nor in the catalog",
        "tiny, rounds=many: rounds = many: must be a whole number",
    ):
        assert part in told
    assert "axes.protocol.train_per_rond: no base has it; protocol.train_per_rond: unknown key" in problems(
        "bases: tiny\naxes: {protocol.train_per_rond: [3]}"
    )


def test_cells_that_collide_are_refused(tmp_path: Path) -> None:
    """Two bases that differ by name only, and two spellings of one value."""
    text = (Path(load_scenario.__code__.co_filename).parents[1] / "catalog" / "tiny.yaml").read_text()
    (tmp_path / "twin.yaml").write_text(text.replace("name: tiny", "name: twin"))
    assert "twin, seed=1: is the same run as tiny, seed=1; keep one" in problems("bases: [tiny, twin.yaml]", tmp_path)
    assert "is the same run as" in problems("bases: tiny\naxes: {training.learning_rate: [1, 1.0]}")


def test_many_cells_need_a_yes() -> None:
    """Before any cell is made; bases and axes that are wrong are told with it."""
    text = "bases: tiny\naxes: {rounds: {from: 1, to: 200, step: 1}, clients: {from: 10, to: 100, step: 1}}"
    assert "18200 cells: more than 10000; add --yes" in problems(text)
    told = problems(text.replace("tiny", "[tiny, nowhere]").replace("rounds", "roundz"))
    for part in ("36400 cells: more than 10000", "bases = nowhere", "axes.roundz: no base has it"):
        assert part in told


def test_bases_of_one_name_would_be_seeds_of_one_base(tmp_path: Path) -> None:
    """Two files of one name in two folders: the table has names only, so one must be renamed."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "tiny.yaml").write_text(dump_scenario(replace(load_scenario("tiny"), rounds=3)))
    told = problems("bases: [tiny, a/tiny.yaml]", tmp_path)
    assert "bases = a/tiny.yaml: would be called tiny in the table, as tiny is; rename the file" in told


def test_the_key_is_that_of_the_results_not_of_the_name(tmp_path: Path) -> None:
    """Name and question do not count; seed, settings, data and plug-ins do."""
    tiny = load_scenario("tiny")
    key = cell_key(cell_keys(tiny, None), tiny.seed)
    renamed = replace(tiny, name="other", question="Why?")
    assert cell_key(cell_keys(renamed, None), tiny.seed) == key
    assert cell_key(cell_keys(tiny, None), 2) != key
    assert cell_key(cell_keys(replace(tiny, rounds=3), None), 1) != key
    assert cell_key(cell_keys(replace(tiny, plugins={"a:B": "1" * 64}), None), 1) != key


def test_a_data_file_counts_by_its_content(tmp_path: Path) -> None:
    """Moved: the same key. Changed by one number: another."""
    keys = []
    for folder, number in (("a", 0.0), ("b", 0.0), ("c", 1.0)):
        (tmp_path / folder).mkdir()
        features = np.arange(40.0).reshape(20, 2) + number
        np.savez(tmp_path / folder / "own.npz", x=features, label=np.arange(20) % 2)
        text = load_scenario("tiny")
        path = tmp_path / folder / "own.yaml"
        path.write_text(
            "name: own\nrounds: 1\nclients: 4\ndata: {name: file, path: own.npz, label: label}\nmodel: linear\n"
            "protocol: {kind: gossip, train_per_round: 3, exchange_with: 2}\n"
        )
        text = load_scenario(path)
        keys.append(cell_key(cell_keys(text, None), text.seed))
    assert keys[0] == keys[1] != keys[2]


def test_only_chooses_by_the_last_part_of_an_axis() -> None:
    """And says which axes and values there are."""
    cells = grid("bases: tiny\naxes: {privacy.noise.sigma: [0.1, 1.0], rounds: [1, 2]}\nseeds: 2").cells
    assert len(choose(cells, ["sigma=0.1"])) == 4
    assert len(choose(cells, ["sigma=0.1", "seed=2", "rounds=1"])) == 1
    with pytest.raises(UserError, match=r"no cell has that value; known are 0\.1, 1\.0"):
        choose(cells, ["sigma=3"])
    with pytest.raises(UserError, match="did you mean `rounds`"):
        choose(cells, ["round=3"])
