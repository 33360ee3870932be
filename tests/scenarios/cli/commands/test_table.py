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
from scenarios.cli.commands.table import comma_separated, latex, markdown, unit_of
from scenarios.cli.main import main
from scenarios.metrics.run_facts import RunFacts
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
    assert row == "| accuracy, collected model | 0.600 ± 1.271 | 0.900 |"
    assert any("95% interval" in line for line in lines)


def test_latex_is_escaped(summaries: list[dict[str, Any]]) -> None:
    """Special characters are commands, the interval is mathematics."""
    made = latex(summaries)
    assert r"=a\_b|c\% \\" in made
    assert r"0.600 $\pm$ 1.271" in made
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
