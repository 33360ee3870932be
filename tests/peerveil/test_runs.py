"""Runs from Python are the runs of the command line."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import yaml

import peerveil as pv
from scenarios.cli.main import main
from scenarios.loading.catalog import catalog_path

QUIET: dict[str, Any] = {"rounds": 2, "learning": "none"}


@pytest.mark.slow
def test_python_and_command_line_give_one_digest(tmp_path: Path) -> None:
    """The same scenario, keywords for `--set`: the same events, the same learning."""
    mine = pv.run("tiny", rounds=2, network={"loss": 0.1})
    argv = ["run", "tiny", "--set", "rounds=2", "--set", "network.loss=0.1", "--quiet", "--out", str(tmp_path / "run")]
    assert main(argv) == 0
    theirs = pv.load(tmp_path / "run")
    assert mine.summary.digest == theirs.summary.digest
    assert mine.scenario == theirs.scenario


def test_a_scenario_is_a_name_a_path_keys_or_an_object() -> None:
    """All four name the same scenario, with and without changes."""
    path = catalog_path("tiny")
    keys = yaml.safe_load(path.read_text(encoding="utf-8"))
    ways = ["tiny", path, str(path), keys, pv.check("tiny")]
    assert len({repr(pv.check(way, clients=9, protocol={"exchange_with": 3})) for way in ways}) == 1
    assert keys == yaml.safe_load(path.read_text(encoding="utf-8")), "the caller's keys are left as they were"


def test_another_kind_drops_the_keys_of_the_old_one() -> None:
    """As `--set protocol.kind=central` does."""
    changed = pv.check("tiny", protocol={"kind": "central"})
    assert type(changed.protocol).__name__ == "Central"


def test_all_problems_come_in_one_error_with_the_text_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown keys, bad values and wrong types, together."""
    with pytest.raises(pv.UserError) as caught:
        pv.check("tiny", rounds=0, network={"losss": 0.1}, clients="many")
    assert len(caught.value.problems) == 3
    overrides = ["--set", "rounds=0", "--set", "network.losss=0.1", "--set", "clients=many"]
    assert main(["check", "tiny", *overrides]) == 2
    assert capsys.readouterr().err.strip() == str(caught.value)


def test_something_else_is_no_scenario() -> None:
    """A number names the rule, not a traceback of ours."""
    with pytest.raises(pv.UserError, match="must be a name, a path, a mapping"):
        pv.check(3, rounds=2)  # type: ignore[arg-type]
    with pytest.raises(pv.UserError, match="must be a name, a path, a mapping"):
        pv.run(5)  # type: ignore[arg-type]


def test_without_a_folder_the_files_live_as_long_as_the_run() -> None:
    """And not longer."""
    run = pv.run("tiny", **QUIET)
    path = run.path
    assert (path / "summary.json").exists()
    del run
    gc.collect()
    assert not path.exists()


def test_a_run_that_fails_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is removed before the error leaves."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(pv.UserError):
        pv.run("adpdfl-gossip-mnist", data_dir=tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_tables_are_frames_arrow_and_sql(tmp_path: Path) -> None:
    """Three ways to read one table; counts agree with the summary."""
    duckdb = pytest.importorskip("duckdb")
    run = pv.run("tiny", out=tmp_path / "kept", **QUIET)
    sent = run.summary.messages.sent
    assert len(run.messages) == run.arrow("messages").num_rows == sent
    (found,) = run.duckdb().sql("select count(*) from messages").fetchall()
    assert found == (sent,)
    assert isinstance(run.duckdb(), duckdb.DuckDBPyConnection)
    with pytest.raises(pv.UserError, match="unknown table; did you mean `messages`"):
        run.arrow("message")


def test_save_keeps_a_temporary_run(tmp_path: Path) -> None:
    """A copy that can be loaded again; a folder with files is refused."""
    run = pv.run("tiny", **QUIET)
    saved = run.save(tmp_path / "kept")
    assert saved.summary.digest == run.summary.digest
    with pytest.raises(pv.UserError, match="not empty"):
        run.save(tmp_path / "kept")


@pytest.mark.slow
def test_what_a_notebook_shows_is_the_final_table_and_cannot_be_injected(tmp_path: Path) -> None:
    """Hostile names of a foreign folder stay text; the report page is written where asked."""
    run = pv.run("tiny", rounds=1, out=tmp_path / "run")
    summary = tmp_path / "run" / "summary.json"
    summary.write_text(summary.read_text(encoding="utf-8").replace("all rounds done", "<script>alert(1)</script>"))
    shown = pv.load(tmp_path / "run")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "accuracy" in shown
    assert run.model()
    assert run.report(tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_comparisons_hold_the_figures_of_the_command() -> None:
    """Rows by label, columns by scenario, paired differences; bad figures are refused with a hint."""
    runs = [pv.run("tiny", seed=seed, name=name, **QUIET) for name in ("a", "b") for seed in (1, 2)]
    compared = pv.compare(*runs)
    assert list(compared.table.columns) == ["a", "b"]
    assert set(compared.differences["n"]) == {2}
    legend = compared.plot("bytes", "simulated_s").figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    with pytest.raises(pv.UserError, match="unknown figure"):
        compared.plot("byte", "accuracy")
    with pytest.raises(pv.UserError, match="has none"):
        compared.plot("bytes", "accuracy")
    with pytest.raises(pv.UserError, match="at least 2"):
        pv.compare(runs[0])
