"""The book of reproductions: its data, its rules, its verdicts, and the page made of them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from p2p.config.errors import UserError
from scenarios.cli.main import main
from scenarios.loading.load import load_scenario
from scenarios.reproductions import reproduce
from scenarios.reproductions.book import picture_path, write_book
from scenarios.reproductions.formulas.table import FORMULAS
from scenarios.reproductions.judging import Measured, judge_parts
from scenarios.reproductions.pictures import _caption, _label, draw, line_axis
from scenarios.reproductions.published_results import find_result, folder_of, published_results
from scenarios.reproductions.rule_file import rules
from scenarios.reproductions.value_table import value_table
from scenarios.reproductions.verdict import WORDS, Part, judge
from scenarios.reproductions.waiting import state_of

DOCS = Path(__file__).parents[3] / "docs"


def test_the_printed_results_are_complete() -> None:
    """121 results, 1,064 printed values, each with its paper, section and claim."""
    found = published_results()
    assert len(found) == 121
    assert sum(len(one.rows) for one in found.values()) == 1064
    for one in found.values():
        assert one.source
        assert one.claim
        assert one.where
        assert state_of(one)


# What the papers' own arithmetic gives, found by hand beforehand: the word, and a figure that must be told.
EXPECTED = {
    "S0-T3.1": ("not reproduced", "delta 0.00134 at epsilon 8, printed 0.001"),
    "S0-C3.1": ("not reproduced", "0.131"),
    "S0-C3.2": ("reproduced", "round 54"),
    "S0-C3.4": ("refuted", "q1 = -0.327"),
    "S0-C3.6": ("refuted", "at worst 0.07"),
    "S0-T4.5": ("refuted", "2 of 3 printed pairs"),
    "S0-C4.1": ("not reproduced", "23.3"),
    "S0-C4.3": ("refuted", "k1 0.1"),
    "S0-C5.1": ("refuted", "2381"),
    "S0-C5.2": ("not reproduced", "0 of 9"),
    "S1-F3": ("refuted", "19 of 20"),
    "S1-C1": ("refuted", "4.78"),
    "S1-C2": ("reproduced", "least at T 251"),
    "S1-C3": ("reproduced", "sigma 0.03749"),
    "S1-C4": ("reproduced", "least difference"),
    "S2-C1": ("reproduced", "mean 18.6 over 4 ranges"),
    "S2-C2": ("reproduced", "formula 0.7"),
    "S2-C3": ("refuted", "mu inf"),
    "S2-C4": ("refuted", "0.7071"),
    "S3-C2": ("refuted", "6.91 against 0.0128"),
    "S4-TIII": ("refuted", "163 of 360"),
    "S4-TIV": ("refuted", "CIFAR-10 CNN, epsilon 0.5: DP-FedSNLC"),
    "S4-TV": ("refuted", "printed 88.33, recomputed 88.44"),
    "S4-TVI": ("refuted", "6.47 3.98 3.01 1.83 1.25 1.73"),
    "S4-F4": ("reproduced", "0 of 9"),
    "S4-F5": ("refuted", "CIFAR-10 at epsilon 0.5"),
    "S4-C1": ("refuted", "0.5"),
    "S4-C2": ("not reproduced", "200 against 400"),
    "S4-C3": ("refuted", "late"),
    "S4-C4": ("refuted", "3.43 2.82 5.62"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_have_their_verdicts(name: str) -> None:
    """Each in seconds; refuted ones have a counterexample."""
    verdict = FORMULAS[name]()
    word, figure = EXPECTED[name]
    assert verdict.word == word
    assert any(figure in part.measured for part in verdict.parts), verdict.parts
    assert bool(verdict.because) == (word == "refuted")
    assert find_result(name)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", rules())
def test_every_rule_names_cells_of_its_sweeps(name: str) -> None:
    """For every size, each statement finds one cell per seed on each side: none is judged on nothing."""
    from scenarios.sweeps.grid import base_name, expand

    if not os.environ.get("PEERVEIL_DATA"):
        pytest.skip("needs PEERVEIL_DATA")
    rule = rules()[name]
    assert find_result(name)
    for size in rule.sizes:
        grid = expand(rule.sweep(size, 2))
        cells = [Measured({"base": base_name(cell.base), **cell.settings}, cell.seed, 0.5) for cell in grid.cells]
        parts = judge_parts(rule.parts, lambda figure, cells=cells: cells)  # type: ignore[misc]
        assert parts
        assert all(part.measured != "not measured" for part in parts), parts


def measured(values: dict[str, list[float]]) -> list[Measured]:
    """Cells with an axis called x."""
    return [Measured({"a.x": x}, seed, value) for x, list_ in values.items() for seed, value in enumerate(list_)]


def only(one: dict[str, Any], values: dict[str, list[float]]) -> Part:
    """The one part of a rule with one statement."""
    (part,) = judge_parts([one], lambda figure: measured(values))
    return part


def test_an_order_is_judged_by_paired_differences() -> None:
    """Seeds differ more than settings do; the pairs still decide. Mixed signs stay open, with a number of seeds."""
    rule = {"kind": "order", "greater": {"x": "p"}, "less": {"x": "q"}}
    assert only(rule, {"p": [0.5, 0.7, 0.9], "q": [0.4, 0.61, 0.8]}).holds is True
    assert only(rule, {"p": [0.4, 0.61, 0.8], "q": [0.5, 0.7, 0.9]}).holds is False
    mixed = only(rule, {"p": [0.5, 0.7, 0.9], "q": [0.6, 0.5, 0.7]})
    assert mixed.holds is None
    assert mixed.seeds_needed is not None
    assert mixed.seeds_needed > 3
    assert only(rule, {"p": [0.5], "q": [0.4]}).holds is None
    assert only(rule, {"p": [0.5]}).measured == "not measured"


def test_other_statements() -> None:
    """Bounds, closeness, the best of several, along an axis."""
    steady = {"p": [0.5, 0.51, 0.49], "q": [0.4, 0.41, 0.42], "r": [0.2, 0.21, 0.22]}
    assert only({"kind": "below", "value": 0.6, "where": {"x": "p"}}, steady).holds is True
    assert only({"kind": "above", "value": 0.6, "where": {"x": "p"}}, steady).holds is False
    assert only({"kind": "close", "first": {"x": "p"}, "second": {"x": "q"}, "value": 0.2}, steady).holds is True
    assert only({"kind": "close", "first": {"x": "p"}, "second": {"x": "q"}, "value": 0.01}, steady).holds is False
    parts = judge_parts(
        [{"kind": "argmax", "over": "x", "at": "p", "among": ["p", "q", "r"]}], lambda _: measured(steady)
    )
    assert [part.holds for part in parts] == [True, True]
    down = {"kind": "monotone", "over": "x", "direction": "down", "among": ["p", "q", "r"]}
    assert [part.holds for part in judge_parts([down], lambda _: measured(steady))] == [True, True]
    up = {**down, "direction": "up"}
    assert [part.holds for part in judge_parts([up], lambda _: measured(steady))] == [False, False]


def test_a_rule_that_names_several_cells_is_refused() -> None:
    """Averaging over a forgotten axis would hide it."""
    cells = [Measured({"a.x": "p", "a.y": y}, 1, 0.5) for y in (1, 2)]
    with pytest.raises(UserError, match="names several cells of seed 1"):
        judge_parts([{"kind": "below", "value": 1, "where": {"x": "p"}}], lambda _: cells)


def test_a_verdict_follows_from_its_parts() -> None:
    """One failure decides, one open statement leaves it open."""
    parts = {holds: Part("a", holds, "") for holds in (True, False, None)}
    assert judge([parts[True], parts[True]]).word == "reproduced"
    assert judge([parts[True], parts[None]]).word == "inconclusive"
    assert judge([parts[None], parts[False]]).word == "not reproduced"


def test_recorded_outcomes_say_how_they_came_about() -> None:
    """Command, versions, digests, a probe; the rule they follow is in the package, and gives the word recorded."""
    for name, outcome in reproduce.outcomes().items():
        assert outcome["verdict"] in WORDS
        assert outcome["id"] == name
        assert name in rules()
        assert outcome["command"].startswith(f"peerveil reproduce {name}")
        assert outcome["digests"]
        assert outcome["probe"]["events"]
        parts = [Part(part["statement"], part["holds"], "", None, part.get("reading", "")) for part in outcome["parts"]]
        # A refutation by proof outweighs what was measured; its own statement is among those that fail.
        proof = FORMULAS[name]() if name in FORMULAS else judge(parts)
        if proof.word == "refuted":
            assert (outcome["verdict"], outcome["because"]) == ("refuted", proof.because)
            assert judge(parts).word == "not reproduced"
        else:
            assert judge(parts).word == outcome["verdict"]


@pytest.mark.slow
def test_the_page_is_made_of_the_files() -> None:
    """`peerveil reproduce --book docs/reproductions.md` would change nothing, and its plots are today's."""
    text = (DOCS / "reproductions.md").read_text(encoding="utf-8")
    assert text == write_book()
    for name, outcome in reproduce.outcomes().items():
        # Matplotlib keeps the text of every label as a comment.
        plot = (DOCS / picture_path(name)).read_text(encoding="utf-8")
        assert _caption(outcome).splitlines()[1] in plot, name
        rows = [row for row in outcome["values"] if row["mean"] is not None]
        axis = line_axis(rows)
        labels = [axis] if axis else [_label(row["settings"]) for row in rows]
        assert all(f"<!-- {label} -->" in plot for label in labels), name


@pytest.mark.slow
def test_the_command_lists_runs_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    """A formula runs at once; a drawing and an unknown name are one message each."""
    assert main(["reproduce", "--list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["results"]) == 121
    assert main(["reproduce", "S2-C4"]) == 0
    assert capsys.readouterr().out.startswith("S2-C4: refuted: ")
    assert main(["reproduce", "S0-F1.1"]) == 2
    assert "a drawing, nothing measured" in capsys.readouterr().err
    assert main(["reproduce", "s0-t5.4"]) == 2
    assert "did you mean `S0-T5.4`?" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_gives_an_outcome_with_values_and_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule over the smallest scenario: printed beside measured, a probe that is not stale, then one that is."""
    from scenarios.reproductions import rule_file
    from scenarios.sweeps.run_sweep import SweepOptions
    from scenarios.sweeps.store import Store

    monkeypatch.chdir(tmp_path)
    sweep = {"bases": ["tiny"], "axes": {"privacy.noise.sigma": [0.01, 5.0]}, "seeds": 2}
    parts = [{"kind": "below", "value": 100, "where": {"sigma": 0.01}, "what": "accuracy"}]
    printed = [{"where": {"sigma": 0.01}, "value": 0.9}]
    made = rule_file.Rule("S0-T5.4", "accuracy", {"reduced": sweep}, parts, printed, ["nothing"], "")
    monkeypatch.setattr(reproduce, "rules", lambda: {"S0-T5.4": made})
    outcome = reproduce.reproduce_sweep(
        "S0-T5.4", "reduced", None, SweepOptions(on="serial"), Store(tmp_path / "cells")
    )
    assert outcome["verdict"] == "reproduced"
    assert [row["printed"] for row in outcome["values"]] == [0.9, None]
    assert len(outcome["digests"]) == 4
    monkeypatch.setattr(reproduce, "outcomes", lambda: {"S0-T5.4": outcome})
    assert not reproduce.is_stale("S0-T5.4")
    outcome["probe"]["events"] = "0" * 64
    assert reproduce.is_stale("S0-T5.4")


def test_an_outcome_is_printed_with_its_settings_and_what_it_does_not_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that differ in their last setting can be told apart."""
    from scenarios.cli.commands.experiments.reproduce import _print

    monkeypatch.setenv("COLUMNS", "200")
    outcome = reproduce.outcomes()["S0-T4.1"]
    _print(outcome)
    lines = capsys.readouterr().out.splitlines()
    rows = {line.partition("  ")[0] for line in map(str.strip, lines) if line.strip().startswith("base inversion")}
    # Twelve settings under two readings.
    assert len(rows) == 12
    assert any(" ".join(line.split()) == "settings printed measured [flat] measured [per layer]" for line in lines)
    assert lines[-1].startswith("not said by these runs: PSNR depends")


def test_readings_are_columns() -> None:
    """Also if they are told by different keys; a cell of no reading, or without a place of its own, makes it one."""

    def value(norm: float, **settings: Any) -> dict[str, Any]:
        place = "update.0.norm" if settings["base"] == "leader-mnist-gradient" else "privacy.clip.norm"
        named = {name.replace("noise_", "privacy.noise.calibrate.noise_"): part for name, part in settings.items()}
        return {"settings": {**named, place: norm}, "printed": 0.4, "mean": norm, "low": None, "high": None}

    readings: list[dict[str, Any]] = [
        {"base": "adpdfl-leader-mnist", "noise_reading": "eq_5_3"},
        {"base": "adpdfl-leader-mnist", "noise_reading": "theorem_8"},
        {"base": "leader-mnist-gradient"},
    ]
    values = [value(norm, **settings) for settings in readings for norm in (1, 2)][:-1]
    heads, rows = value_table({"id": "S0-T5.1", "values": values})
    assert heads == ["measured [update, (5.3)]", "measured [update, Theorem 8]", "measured [gradient, (5.3)]"]
    assert rows == [["norm 1", "0.4", "1", "1", "1"], ["norm 2", "0.4", "2", "2", "-"]]
    for odd in (value(1, base="tiny"), values[0] | {"settings": {**values[0]["settings"], "base": "tiny"}}):
        assert value_table({"id": "S0-T5.1", "values": [*values, odd]})[0] == ["measured"]


@pytest.mark.extra
@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("PEERVEIL_DATA"), reason="needs PEERVEIL_DATA")
@pytest.mark.parametrize("name", reproduce.outcomes())
def test_recorded_verdicts_are_of_todays_code_or_marked_as_stale(name: str) -> None:
    """Recomputes the one-round probe; `peerveil reproduce --stale` writes the marks."""
    assert reproduce.is_stale(name) == bool(reproduce.outcomes()[name].get("stale"))


def test_the_plain_controls_differ_from_the_catalog_in_privacy_alone() -> None:
    """The bases of Table 5.4."""
    folder = Path(str(rules.__wrapped__.__code__.co_filename)).parent / "rules" / "bases"
    for kind in ("leader", "gossip"):
        plain, private = load_scenario(folder / f"{kind}-mnist-plain.yaml"), load_scenario(f"adpdfl-{kind}-mnist")
        assert plain.privacy is None
        for key in ("data", "model", "training", "protocol", "network", "anonymity", "rounds", "clients", "seed"):
            assert getattr(plain, key) == getattr(private, key), key


def test_the_best_value_of_an_axis() -> None:
    """Inside the range, moving with another axis, and not far from a setting; the least may be best."""
    loss = {"p": [0.9, 0.91, 0.89], "q": [0.5, 0.52, 0.51], "r": [0.7, 0.71, 0.73]}
    inside = {"kind": "interior", "over": "x", "least": True, "among": ["p", "q", "r"]}
    assert [part.holds for part in judge_parts([inside], lambda _: measured(loss))] == [True, True]
    largest = {**inside, "least": False}
    assert [part.holds for part in judge_parts([largest], lambda _: measured(loss))] == [False, False]
    near = {"kind": "near_best", "least": True, "setting": {"x": "r"}, "of": {}, "over": "x", "among": ["p", "q"]}
    assert only({**near, "value": 0.3}, loss).holds is True
    assert only({**near, "value": 0.1}, loss).holds is False
    ordered = {"kind": "order", "greater": {"x": "r"}, "less": {"x": "q"}}
    assert only({**ordered, "by": 0.1}, loss).holds is True
    assert only({**ordered, "by": 0.3}, loss).holds is False


@pytest.mark.parametrize(("late", "holds"), [("high", True), ("low", False)])
def test_the_best_value_moves_with_another_axis(late: str, holds: bool) -> None:
    """Each seed has its own best; the later one must belong to the setting that the rule names."""
    best = {"low": 2 if late == "low" else 0, "high": 2 if late == "high" else 1}
    cells = [
        Measured({"x": x, "e": e}, seed, 1.0 if x == best[e] else 0.0)
        for x in (0, 1, 2)
        for e in ("low", "high")
        for seed in (1, 2, 3)
    ]
    rule = {"kind": "shift", "over": "x", "among": [0, 1, 2], "low": {"e": "low"}, "high": {"e": "high"}}
    (part,) = judge_parts([rule], lambda _: cells)
    assert part.holds is holds


def test_the_reading_that_fits_best_decides() -> None:
    """A claim that holds under one reading is reproduced; parts without a reading always count."""
    good, bad, open_ = Part("a", True, "", None, "one"), Part("a", False, "", None, "two"), Part("a", None, "")
    assert judge([good, bad]).word == "reproduced"
    assert judge([good, bad, Part("b", False, "")]).word == "not reproduced"
    assert judge([good, bad, open_]).word == "inconclusive"
    assert judge([bad, open_]).word == "not reproduced"


def test_a_figure_may_lie_in_a_list() -> None:
    """Attacks' results are lists; a place that is not there is no value."""
    summary = {"attacks": [{"results": [{"psnr_db": 20.0, "prior_psnr_db": 10.0}]}]}
    assert reproduce.figure_value(summary, "attacks.0.results.0.psnr_db / attacks.0.results.0.prior_psnr_db") == 2.0
    assert reproduce.figure_value(summary, "attacks.1.results.0.psnr_db") is None


def test_lines_are_drawn_over_an_axis_of_numbers(tmp_path: Path) -> None:
    """Three numbers make a line; words, or a base without the axis, make rows. The same values give the same file."""

    def value(x: Any, base: str = "a") -> dict[str, Any]:
        settings = {"base": base, "a.x": x} if x is not None else {"base": base}
        return {"settings": settings, "mean": 0.5, "low": 0.4, "high": 0.6, "printed": 0.45}

    assert line_axis([value(1), value(2), value(4)]) == "a.x"
    assert line_axis([value(1), value(2)]) is None
    assert line_axis([value(1), value(2), value("iid")]) is None
    assert line_axis([value(1), value(2), value(4), value(None, "b")]) is None
    # Each value with another base: every line would be a point.
    assert line_axis([value(1, "a"), value(2, "b"), value(4, "c")]) is None
    for name, xs in (("lines", (1, 2, 40)), ("rows", ("iid", "shards"))):
        outcome = {"values": [value(x) for x in xs], "figure": "accuracy"}
        draw(outcome, tmp_path / "one.svg")
        draw(outcome, tmp_path / "two.svg")
        assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes(), name


def test_no_two_lines_of_a_plot_look_alike(tmp_path: Path) -> None:
    """There are seven colours: the eighth line has another mark. Crosses are explained only where they are drawn."""

    def looks(lines: int, printed: float | None) -> tuple[int, str]:
        settings = [{"base": f"line {line}", "a.x": x} for line in range(lines) for x in (1, 2, 3)]
        values = [{"settings": one, "mean": 0.5, "low": 0.4, "high": 0.6, "printed": printed} for one in settings]
        draw({"values": values, "figure": "accuracy"}, tmp_path / "plot.svg")
        text = (tmp_path / "plot.svg").read_text()
        return len(set(re.findall(r'href="#(m\w+)"[^>]*style="fill: (#\w+)', text))), text

    assert looks(8, None)[0] > looks(7, None)[0]
    assert "crosses: printed" not in looks(2, None)[1]
    assert "crosses: printed" in looks(2, 0.45)[1]


def test_a_refutation_by_formula_outweighs_a_run() -> None:
    """A run's verdict contains the statements of its formula; without a formula it stays as it is."""
    measured_so = judge([Part("measured", True, "")])
    both = reproduce.with_formula("S4-TIII", measured_so)
    assert both.word == "refuted"
    assert both.because
    assert [part.statement for part in both.parts][-1] == "measured"
    assert reproduce.with_formula("S0-T3.1", measured_so).word == "not reproduced"
    assert reproduce.with_formula("S0-T5.4", measured_so) == measured_so


def test_files_about_results_lie_by_paper_and_chapter() -> None:
    """No folder gets too full to look through."""
    assert folder_of("S0-T5.4") == "S0-chapter-5"
    assert folder_of("S4-TIII") == "S4"
    for name in rules():
        assert (Path(reproduce.__file__).parent / "rules" / folder_of(name) / f"{name}.yaml").is_file()
