"""The numbers of a paper, in three forms."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from p2p.log.log import Log
from scenarios.cli.commands.results.latex_table import Style, siunitx_text
from scenarios.cli.commands.results.table import comma_separated, latex, markdown, with_distinct_names
from scenarios.cli.main import main
from scenarios.metrics.comparison import cell_text, unit_of
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.run_folder.summary import summarise
from scenarios.run_folder.writer import RunFolder


@pytest.fixture
def summaries(random_log: Callable[..., Log], scenario: SimpleNamespace) -> list[dict[str, Any]]:
    """Two seeds of one scenario and one of another with an awkward name."""
    return [
        _summary(random_log(seed), SimpleNamespace(**{**vars(scenario), "name": name, "seed": seed}), accuracy)
        for name, seed, accuracy in (("plain", 1, 0.5), ("plain", 2, 0.7), ("=a_b|c%", 1, 0.9))
    ]


def _summary(log: Log, story: Any, accuracy: float) -> dict[str, Any]:
    facts = RunFacts(
        scenario=story,
        log=log,
        rounds_completed=3,
        stopped_because="all rounds done",
        simulated_s=30.0,
        wall_s=1.0,
        privacy={"published": 8.0, "rigorous": {"local": "inf"}},
        linkability={"address": None, "content": None, "chance": None},
        collected_accuracy=accuracy,
    )
    return summarise(facts)


def test_markdown_has_a_column_per_scenario(summaries: list[dict[str, Any]]) -> None:
    """Mean and interval over seeds; names cannot break the table."""
    lines = markdown(summaries).splitlines()
    assert lines[0] == "|  | plain | =a\\_b\\|c% |"
    row = next(line for line in lines if line.startswith("| accuracy, collected"))
    assert row == "| accuracy, collected model | 0.600 (0.000 to 1.000) | 0.900 |"
    assert any("95% interval" in line for line in lines)


def test_latex_is_escaped(summaries: list[dict[str, Any]]) -> None:
    """Special characters are commands, the interval is mathematics."""
    made = latex(summaries)
    assert r"=a\_b|c\% \\" in made
    assert r"0.600 (0.000 to 1.000)" in made
    assert r"$\varepsilon$ published & 8 $\pm$ 0 & 8 \\" in made
    rows = made.split(r"\toprule")[1].split(r"\bottomrule")[0].replace(r"\midrule", "").split("\n")
    assert {row.count("&") for row in rows if row} == {2}
    assert all(row.endswith(r" \\") for row in rows if row)


def test_csv_keeps_every_digit(summaries: list[dict[str, Any]]) -> None:
    """One row per scenario and figure, numbers as they are, names that a spreadsheet will not compute."""
    rows = list(csv.DictReader(io.StringIO(comma_separated(summaries))))
    found = {(row["scenario"], row["figure"]): row for row in rows}
    assert float(found["plain", "accuracy"]["mean"]) == pytest.approx(0.6, abs=1e-15)
    assert float(found["plain", "bytes"]["mean"]) == (summaries[0]["bytes"]["sent"] + summaries[1]["bytes"]["sent"]) / 2
    assert found["'=a_b|c%", "accuracy"]["n"] == "1"
    assert found["plain", "accuracy"]["seeds"] == "1 2"


def test_units_follow_the_figures() -> None:
    """Bytes are bytes, seconds are seconds."""
    assert [unit_of(key) for key in ("bytes", "simulated_s", "accuracy", "rounds")] == ["bytes", "s", "share", "1"]


def test_the_command_prints_or_writes(
    tmp_path: Path, summaries: list[dict[str, Any]], random_log: Callable[..., Log], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--format`, `--out` and `--json`."""
    folder = RunFolder.create(tmp_path / "run", "plain", 1)
    folder.begin("name: plain\n", {"format": 1})
    folder.finish(random_log(1), summaries[0])
    assert main(["table", str(folder.path)]) == 0
    assert "| accuracy, collected model | 0.500 |" in capsys.readouterr().out
    assert main(["table", str(folder.path), "--format", "latex", "-o", str(tmp_path / "t.tex")]) == 0
    assert "\\begin{tabular}" in (tmp_path / "t.tex").read_text()
    assert main(["table", str(folder.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenarios"]["plain"]["seeds"] == [1]


def test_a_table_for_a_paper(summaries: list[dict[str, Any]]) -> None:
    """Chosen rows in their order, caption and label, numbers by siunitx."""
    style = Style("Cost of 100% & more", "tab:co_st}", siunitx=True)
    made = latex(summaries, ["bytes", "accuracy", "local"], style)
    assert (
        made.index(r"\begin{table}") < made.index(r"\caption{Cost of 100\% \& more}") < made.index(r"\label{tab:cost}")
    )
    rows = made.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert rows[0].startswith(r"bytes sent & \qty{")
    assert rows[1] == r"accuracy, collected model & \num{0.600} (\num{0.000} to \num{1.000}) & \num{0.900} \\"
    assert rows[2] == r"$\varepsilon$ rigorous, local & $\infty$ & $\infty$ \\"
    assert made.rstrip().endswith(r"\end{table}")


def test_rows_of_zeros_are_left_out(summaries: list[dict[str, Any]]) -> None:
    """Unless they are asked for."""
    labels = [line.split(" | ")[0] for line in markdown(summaries).splitlines()]
    assert not any(label.startswith("| bytes of relays") for label in labels)
    assert "| bytes of relays | 0 B ± 0 B | 0 B |" in markdown(summaries, ["relay_bytes"])


def test_intervals_stay_within_what_a_figure_can_be() -> None:
    """An accuracy of 0.98 ± 0.05 ends at 1; one of 0.5 ± 0.05 is symmetric."""
    cell = {"mean": 0.98, "low": 0.93, "high": 1.0, "n": 3, "of": 3}
    assert cell_text("accuracy", cell) == "0.980 (0.930 to 1.000)"
    assert cell_text("accuracy", {**cell, "mean": 0.5, "low": 0.45, "high": 0.55}) == "0.500 ± 0.050"
    assert (
        siunitx_text("bytes", {**cell, "mean": 2.5e6, "low": 2.4e6, "high": 2.6e6}) == r"\qty{2.5 \pm 0.1}{\mega\byte}"
    )
    assert siunitx_text("link_content", {**cell, "mean": 0.34, "low": None}) == r"\qty{34}{\percent}"
    assert siunitx_text("accuracy", {**cell, "mean": None}) == "--"


def test_wrong_rows_and_formats_are_told(
    tmp_path: Path, summaries: list[dict[str, Any]], random_log: Callable[..., Log], capsys: pytest.CaptureFixture[str]
) -> None:
    """One message each."""
    folder = RunFolder.create(tmp_path / "run", "plain", 1)
    folder.begin("name: plain\n", {"format": 1})
    folder.finish(random_log(1), summaries[0])
    assert main(["table", str(folder.path), "--rows", "acuracy"]) == 2
    assert "did you mean `accuracy`?" in capsys.readouterr().err
    assert main(["table", str(folder.path), "--caption", "x"]) == 2
    assert "add --format latex" in capsys.readouterr().err


def test_runs_of_one_name_and_seed_are_told_apart(summaries: list[dict[str, Any]]) -> None:
    """By their folders, as alternatives of `compare` are; seeds of one scenario stay one column."""
    twins = [summaries[0], summaries[0], summaries[1]]
    named = with_distinct_names([Path("runs/gossip"), Path("runs/central"), Path("runs/other")], twins)
    assert [one["scenario"] for one in named] == ["plain (gossip)", "plain (central)", "plain"]
    assert with_distinct_names([Path("a"), Path("b")], summaries[:2]) == summaries[:2]
