"""Damaged run folders: every command shows what is left or says in one message what is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from p2p.random_streams import stream
from scenarios.cli.main import main

pytestmark = pytest.mark.slow
Rng = np.random.Generator
TIMES = 40


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A finished run, one with a leader and privacy, and the prefix of a killed run."""
    base = tmp_path_factory.mktemp("runs")
    more = [
        "protocol={kind: rotating_leader, train_per_round: 4}",
        "privacy={clip: flat, noise: {sigma: 0.1, kind: gaussian}}",
    ]
    for name, settings in (("whole", []), ("leader", more), ("prefix", [])):
        words = [word for setting in settings for word in ("--set", setting)]
        assert main(["run", "tiny", "--quiet", "--out", str(base / name), *words]) == 0
    _make_prefix(base / "prefix")
    return [base / name for name in ("whole", "leader", "prefix")]


def _make_prefix(folder: Path) -> None:
    """Takes back the end of a run: its tables become parts, and the summary goes."""
    (folder / "parts").mkdir()
    for path in folder.glob("*.parquet"):
        path.rename(folder / "parts" / f"{path.stem}-1.parquet")
    (folder / "summary.json").unlink()


def truncate(path: Path, rng: Rng) -> None:
    path.write_bytes(path.read_bytes()[: int(rng.integers(path.stat().st_size + 1))])


def flip(path: Path, rng: Rng) -> None:
    content = bytearray(path.read_bytes() or b"x")
    for place in rng.integers(len(content), size=10):
        content[place] = int(rng.integers(256))
    path.write_bytes(bytes(content))


def swap(path: Path, rng: Rng) -> None:
    others = sorted(other for other in path.parent.iterdir() if other.is_file())
    path.write_bytes(others[int(rng.integers(len(others)))].read_bytes())


def become_a_folder(path: Path, rng: Rng) -> None:
    path.unlink()
    path.mkdir()


def alter(path: Path, rng: Rng) -> None:
    """Another value in a JSON file, another column in a table, garbage elsewhere."""
    if path.suffix == ".json":
        content = json.loads(path.read_text())
        _alter_entry(content, rng)
        path.write_text(json.dumps(content))
    elif path.suffix == ".parquet":
        pq.write_table(_altered(pq.read_table(path), rng), path)
    else:
        path.write_bytes(rng.bytes(50))


def _alter_entry(content: dict[str, Any], rng: Rng) -> None:
    key = sorted(content)[int(rng.integers(len(content)))]
    if isinstance(content[key], dict) and content[key] and rng.random() < 0.6:
        _alter_entry(content[key], rng)
    elif rng.random() < 0.4:
        del content[key]
    else:
        values: list[Any] = [None, [], {}, -1, "inf", "x", True, 1e300, [1]]
        content[key] = values[int(rng.integers(len(values)))]


def _altered(table: pa.Table, rng: Rng) -> pa.Table:
    place, rows = int(rng.integers(table.num_columns)), len(table)
    if rng.random() < 0.3:
        return table.remove_column(place)
    others: list[list[Any]] = [[None], ["zz"], [10**12], [-5], [float("nan")], [float("inf")], [[1]], [True]]
    values = others[int(rng.integers(len(others)))] * rows
    return table.set_column(place, table.column_names[place], pa.array(values))


DAMAGES: list[Callable[[Path, Rng], object]] = [
    truncate,
    flip,
    swap,
    become_a_folder,
    alter,
    alter,
    lambda path, rng: path.unlink(),
    lambda path, rng: path.write_bytes(b""),
]


@pytest.mark.parametrize("number", range(TIMES))
def test_no_damage_ends_in_a_traceback(
    tmp_path: Path, folders: list[Path], capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """Exit code 0 or 2, and what is wrong is said; `main` raises nothing."""
    rng = stream(number, "damage")
    run = tmp_path / "r"
    shutil.copytree(folders[int(rng.integers(len(folders)))], run)
    files = sorted(path for path in run.rglob("*") if path.is_file())
    DAMAGES[int(rng.integers(len(DAMAGES)))](files[int(rng.integers(len(files)))], rng)
    for words in (
        ["report", "--out", str(tmp_path / "x.html")],
        ["cost"],
        ["table"],
        ["timeline", "-o", str(tmp_path / "x.json")],
        ["topology", "-o", str(tmp_path / "x.html")],
    ):
        code = main([words[0], str(run), *words[1:]])
        assert code in (0, 2)
        assert code == 0 or capsys.readouterr().err.strip()


def test_a_resume_of_a_damaged_folder_is_told_or_begins_anew(
    tmp_path: Path, folders: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The run goes on from what is whole, or says what is not."""
    for number, damage in enumerate(DAMAGES):
        run = tmp_path / str(number)
        shutil.copytree(folders[2], run)
        damage(run / "scenario.yaml", stream(number, "resume"))
        assert main(["run", "tiny", "--quiet", "--resume", "--out", str(run)]) in (0, 2)
        capsys.readouterr()


@pytest.mark.parametrize("table", ["messages", "rounds", "privacy"])
def test_a_table_of_a_damaged_prefix_is_refused(
    tmp_path: Path, folders: list[Path], capsys: pytest.CaptureFixture[str], table: str
) -> None:
    """Its figures are computed from the tables, so one of them missing would make them wrong."""
    run = tmp_path / "r"
    shutil.copytree(folders[2], run)
    assert main(["table", str(run)]) == 0
    assert "This run was killed" in capsys.readouterr().err
    (run / "parts" / f"{table}-1.parquet").write_bytes(b"no table")
    assert main(["table", str(run)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{table}.parquet is damaged" in told.err


def test_parts_with_different_columns_are_damage(
    tmp_path: Path, folders: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Merged, the missing values would look like spans without an end."""
    run = tmp_path / "r"
    shutil.copytree(folders[2], run)
    spans = pq.read_table(run / "parts" / "spans-1.parquet")
    pq.write_table(spans.drop_columns(["end_s"]), run / "parts" / "spans-2.parquet")
    assert main(["cost", str(run)]) == 2
    assert "parts of spans do not fit together (they have different columns)" in capsys.readouterr().err


def test_a_table_of_an_earlier_version_is_not_called_damaged(
    tmp_path: Path, folders: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns came in later versions; the error says what wrote the table and what to do."""
    run = tmp_path / "r"
    shutil.copytree(folders[0], run)
    pq.write_table(pq.read_table(run / "privacy.parquet").drop_columns(["trainings"]), run / "privacy.parquet")
    assert main(["cost", str(run)]) == 2
    told = capsys.readouterr().err
    assert "privacy.parquet has no column trainings, so another version of peerveil wrote it" in told
    assert "use that version, or run the scenario again" in told


def test_a_table_of_a_finished_run_says_what_is_damaged(
    tmp_path: Path, folders: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its figures come from the summary and are right."""
    run = tmp_path / "r"
    shutil.copytree(folders[0], run)
    (run / "spans.parquet").unlink()
    assert main(["table", str(run)]) == 0
    assert "spans.parquet is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda path: path.unlink(), "spans.parquet is missing; what it would show is left out."),
        (lambda path: path.write_bytes(b"no table"), "spans.parquet is damaged or of another version (Parquet "),
    ],
)
@pytest.mark.parametrize(
    "command", [["timeline", "-o", "x.svg"], ["timeline", "-o", "x.json"], ["topology", "-o", "x.svg"]]
)
def test_a_picture_of_a_damaged_run_says_what_it_does_not_show(
    tmp_path: Path,
    folders: list[Path],
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], object],
    expected: str,
    command: list[str],
) -> None:
    """It is drawn from what is left; the reason is the reader's, not the name of an exception."""
    run = tmp_path / "r"
    shutil.copytree(folders[0], run)
    name, option, out = command
    words = [name, str(run), option, str(tmp_path / out)]
    assert main(words) == 0
    assert capsys.readouterr().err == ""
    damage(run / "spans.parquet")
    assert main(words) == 0
    told = capsys.readouterr().err
    assert expected in told
    assert "Error" not in told


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("receiver", ["zz"], "the column receiver holds string, not whole numbers"),
        ("sent_s", [float("inf")], "the column sent_s has times that are not finite"),
        ("kind", ["gossip"], "the column kind has the unknown word 'gossip'"),
        ("round", [None], "the column round"),
        ("sender", [-7], "the column sender has numbers from -7 to -7"),
    ],
)
def test_the_column_that_is_wrong_is_named(
    tmp_path: Path,
    folders: list[Path],
    capsys: pytest.CaptureFixture[str],
    column: str,
    values: list[Any],
    expected: str,
) -> None:
    """`cost` needs every table."""
    run = tmp_path / "r"
    shutil.copytree(folders[0], run)
    table = pq.read_table(run / "messages.parquet")
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, pa.array(values * len(table))), run / "messages.parquet")
    assert main(["cost", str(run)]) == 2
    assert expected in capsys.readouterr().err


def test_damage_inside_a_table_is_told(tmp_path: Path, folders: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers that were changed on the disk are not read as other times and sizes: pages have checksums."""
    run = tmp_path / "r"
    shutil.copytree(folders[0], run)
    path = run / "messages.parquet"
    content, whole = path.read_bytes(), pq.read_table(path)
    for place in range(200, len(content) // 2):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        with suppress(OSError):
            if not pq.read_table(path).equals(whole):
                break  # without a look at the checksums nothing is wrong with it
    else:
        pytest.fail("no such damage was found")
    assert main(["cost", str(run)]) == 2
    assert "messages.parquet: is damaged" in capsys.readouterr().err
