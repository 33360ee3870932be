"""What is made of a finished sweep: pivots and exports."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from scenarios.cli.main import main
from tests.scenarios.sweeps.conftest import SMALL

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of eight cells: two sigmas, two sizes of cohort, two seeds."""
    base = tmp_path_factory.mktemp("sweep")
    (base / "small.yaml").write_text(SMALL)
    places = ["--store", str(base / "cells"), "--out", str(base / "sweep")]
    assert main(["sweep", str(base / "small.yaml"), "--on", "serial", "--quiet", *places]) == 0
    return base / "sweep"


def test_a_report_has_the_pages_of_all_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Made once, again where results are newer, not at all if not wanted; a damaged run does not stop the others."""
    cells = sorted(path for path in (folder.parent / "cells").iterdir() if not path.name.startswith("."))
    pages = [cell / "report.html" for cell in cells]

    def made(*options: str) -> str:
        capsys.readouterr()
        assert main(["report", str(folder), *options]) == 0
        return capsys.readouterr().out.partition("report.html")[2].strip()

    assert made("--no-cell-pages") == ""
    assert not any(page.exists() for page in pages)
    assert "(no page)" in (folder / "report.html").read_text()
    whole = (cells[0] / "summary.json").read_bytes()
    (cells[0] / "summary.json").write_bytes(b"[]")
    assert made() == ", and pages of 7 runs in their folders"
    assert [page.exists() for page in pages] == [False, *[True] * 7]
    (cells[0] / "summary.json").write_bytes(whole)
    os.utime(pages[1], (1, 1))
    assert made() == ", and pages of 2 runs in their folders"
    assert made() == ""
    assert "(no page)" not in (folder / "report.html").read_text()


def test_pages_for_which_there_is_no_room_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message with the cure; the sweep's own page is made."""
    for page in (folder.parent / "cells").glob("*/report.html"):
        page.unlink()
    (folder / "report.html").unlink(missing_ok=True)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    assert main(["report", str(folder)]) == 2
    assert "--no-cell-pages" in capsys.readouterr().err
    assert (folder / "report.html").exists()
    assert not list((folder.parent / "cells").glob("*/report.html"))


def test_what_is_printed_can_be_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many axes the seed of every cell is there, and no word of the final table is broken at 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    axes = "protocol.train_per_round: [3, 4], network.loss: [0, 0.1], data.samples: [240, 300], data.test_samples: [80]"
    Path("wide.yaml").write_text(f"name: a\nbases: [tiny]\nsettings: {{learning: none}}\naxes: {{{axes}}}\nseeds: 2")
    assert main(["sweep", "wide.yaml", "--on", "serial"]) == 0
    words = capsys.readouterr().out.split()
    assert {"train_per_round,", "samples", "seeds", "epsilon", "simulated", "client,"} <= set(words)
    assert main(["sweep", "wide.yaml", "--status"]) == 0
    assert capsys.readouterr().out.count("seed=2") == 8


def test_a_pivot_has_the_means_of_the_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Compared with numpy over runs.parquet; what is averaged over is said."""
    rows = pq.read_table(folder / "runs.parquet").to_pylist()
    capsys.readouterr()
    assert main(["table", str(folder), "--rows", "sigma", "--columns", "train_per_round", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["cells"]) == 4
    for cell in told["cells"]:
        mine = [
            row["accuracy"]
            for row in rows
            if str(row["privacy.noise.sigma"]) == cell["row"][0]
            and str(row["protocol.train_per_round"]) == cell["column"][0]
        ]
        assert cell["mean"] == pytest.approx(np.mean(mine))
        assert cell["n"] == 2
    assert main(["table", str(folder), "--rows", "sigma", "--figure", "client_median"]) == 0
    out = capsys.readouterr().out
    assert "Each cell is also over all values of protocol.train_per_round." in out
    assert out.startswith("| sigma | bytes per client, median |")


@pytest.mark.parametrize("kind", ["csv", "latex"])
def test_pivots_come_in_the_formats_of_papers(folder: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """csv for programs, LaTeX for papers."""
    assert main(["table", str(folder), "--format", kind]) == 0
    out = capsys.readouterr().out
    if kind == "csv":
        read = list(csv.DictReader(out.splitlines()))
        assert len(read) == 4
        assert float(read[0]["low"]) <= float(read[0]["mean"]) <= float(read[0]["high"])
    else:
        assert out.count("\\\\") == 3
        assert "\\begin{tabular}{lrr}" in out


def test_wrong_names_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Axis, figure, and options of sweeps for a run."""
    assert main(["table", str(folder), "--rows", "simga"]) == 2
    assert "--rows = simga: no axis is called so" in capsys.readouterr().err
    assert main(["table", str(folder), "--figure", "acuracy"]) == 2
    assert "did you mean `accuracy`" in capsys.readouterr().err
    run = next((folder.parent / "cells").glob("*--*"))
    assert main(["table", str(run), "--columns", "sigma"]) == 2
    assert "pivot a sweep" in capsys.readouterr().err


def test_csv_keeps_numbers_and_leaves_out_what_a_base_does_not_have() -> None:
    """-0.5 is a number for every program; text that begins like a formula is quoted."""
    from scenarios.cli.commands.results.table import _pivot_csv
    from scenarios.sweeps.pivot import Pivot

    cells: dict[tuple[str, ...], dict[tuple[str, ...], list[float | None]]] = {
        ("-0.5",): {(): [0.1]},
        ("-",): {(): [0.2]},
        ("=A1",): {(): [0.3]},
    }
    lines = _pivot_csv(Pivot("accuracy", ["skew"], [], [], cells), 3).splitlines()
    assert [line.partition(",")[0] for line in lines] == ["skew", "-0.5", "", "'=A1"]


def test_csv_has_the_traffic_that_competitions_ask_for(folder: Path, tmp_path: Path) -> None:
    """Its bytes add up to those of the summary; a second export gives the same bytes."""
    assert main(["export", str(folder), "--to", "csv", "-o", str(tmp_path)]) == 0
    files = sorted(path for path in tmp_path.rglob("*.csv"))
    assert len(files) == 1 + 3 * 8
    run = next(path for path in (folder.parent / "cells").glob("*--*"))
    sent = json.loads((run / "summary.json").read_text())["bytes"]["sent"]
    with (tmp_path / run.name / "traffic.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["round", "sender", "receiver", "bytes"]
    assert sum(int(row["bytes"]) for row in rows) == sent
    before = {path: path.read_bytes() for path in files}
    assert main(["export", str(folder), "--to", "csv", "-o", str(tmp_path)]) == 0
    assert {path: path.read_bytes() for path in files} == before


@pytest.mark.extra
def test_tensorboard_reads_what_was_exported(folder: Path, tmp_path: Path) -> None:
    """Through TensorBoard's own reader; exported twice, nothing is there twice."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = next((folder.parent / "cells").glob("*--*"))
    for _ in range(2):
        assert main(["export", str(run), "--to", "tensorboard", "-o", str(tmp_path)]) == 0
    found = EventAccumulator(str(tmp_path / run.name))
    found.Reload()
    rounds = pq.read_table(run / "rounds.parquet").to_pylist()
    series = found.Scalars("rounds/accuracy_after_mean")
    assert [event.value for event in series] == pytest.approx([row["accuracy_after_mean"] for row in rounds])
    assert len(found.Scalars("headline/accuracy")) == 1


@pytest.mark.extra
def test_mlflow_has_each_run_once(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second export writes nothing; figures and settings are those of the run."""
    pytest.importorskip("mlflow")
    for written in (8, 0):
        capsys.readouterr()
        assert main(["export", str(folder), "--to", "mlflow", "-o", str(tmp_path / "ml"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["written"] == written
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=(tmp_path / "ml").absolute().as_uri())
    (experiment,) = client.search_experiments(filter_string="name = 'peerveil'")
    runs = client.search_runs([experiment.experiment_id])
    assert len(runs) == 8
    accuracies = sorted(row["accuracy"] for row in pq.read_table(folder / "runs.parquet").to_pylist())
    assert sorted(run.data.metrics["accuracy"] for run in runs) == pytest.approx(accuracies)
    assert {run.data.params["privacy.noise.sigma"] for run in runs} == {"0.01", "0.1"}
