"""The command line: exit codes, messages, and how little it imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from scenarios.cli import main
from scenarios.loading.catalog import catalog
from scenarios.loading.load import load_scenario

HEAVY = ["torch", "scipy", "sklearn", "pyarrow", "dp_accounting", "networkx", "rich", "pandas", "cryptography"]


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a call."""
    code = main.main(argv)
    out, err = capsys.readouterr()
    return code, out, err


def test_check_says_ok_and_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """One scenario, two lines."""
    code, out, err = run(capsys, "check", "tiny")
    assert (code, err) == (0, "")
    assert out.splitlines() == ["tiny: ok", f"  {load_scenario('tiny').question}"]


def test_check_prints_all_problems_of_all_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Good ones are still said to be good; exit code 2."""
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\nrounds: 0\n")
    code, out, err = run(capsys, "check", str(bad), "tiny", "nowhere")
    assert code == 2
    assert out.startswith("tiny: ok")
    assert err.splitlines()[0] == f"{bad}: 5 problems"
    assert "  rounds = 0: must be >= 1" in err
    assert err.splitlines()[-1].startswith("nowhere: neither a file nor in the catalog")


def test_check_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Machine-readable, same exit code."""
    code, out, _ = run(capsys, "check", "tiny", "tinny", "--json")
    rows = json.loads(out)
    assert code == 2
    assert [row["ok"] for row in rows] == [True, False]
    assert rows[1]["problems"][0].endswith("did you mean `tiny`?")


def test_overrides_and_seed_reach_the_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    """In any order with the names."""
    assert run(capsys, "check", "--set", "rounds=3", "tiny", "--seed", "4", "fedavg")[0] == 0
    code, _, err = run(capsys, "check", "tiny", "--set", "rounds=none")
    assert (code, err) == (2, "tiny: 1 problem\n  rounds = none: must be a whole number\n")


def test_list_shows_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    """Names and questions, for people and for programs."""
    code, out, _ = run(capsys, "list")
    assert code == 0
    assert all(name in out for name in catalog())
    rows = json.loads(run(capsys, "list", "--json")[1])
    assert [row["name"] for row in rows] == list(catalog())
    assert all(row["question"] for row in rows)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["rnu"], "rnu: unknown command; did you mean `run`?"),
        (["check", "tiny", "--sed", "3"], "--sed: unknown option; did you mean `--se"),
        (["topology", "tiny", "--rounds", "3"], "--rounds: unknown option; did you mean `--round`?"),
        (["check"], "peerveil check: the following arguments are required: SCENARIO; see `peerveil check --help`"),
        (["check", "tiny", "--seed", "x"], "argument --seed: invalid int value: 'x'"),
        (["run", "tiny", "--seeds", "0"], "argument --seeds: must be a whole number >= 1"),
        (["check", "x\x1b[0m"], "x\\x1b[0m: neither a file nor in the catalog"),
    ],
)
def test_wrong_calls_end_in_two(capsys: pytest.CaptureFixture[str], argv: list[str], expected: str) -> None:
    """One message on stderr, nothing on stdout."""
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert expected in err


def test_help_needs_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command is in the overview."""
    for argv in ([], ["--help"], ["help"]):
        code, out, _ = run(capsys, *argv)
        assert code == 0
        assert all(f"  {name} " in out for name in main.COMMANDS)
    assert run(capsys, "--version")[1].startswith("peerveil ")
    with pytest.raises(SystemExit) as caught:
        main.main(["check", "--help"])
    assert caught.value.code == 0


def test_every_command_points_to_a_module() -> None:
    """`module:function`, and both exist."""
    for command in main.COMMANDS.values():
        module, function = command.target.split(":")
        assert callable(getattr(import_module(module, main.__package__), function))


def test_interrupts_and_closed_pipes_end_quietly(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is 130."""

    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("scenarios.cli.commands.scenario_files.list_catalog.list_command", interrupt)
    code, out, err = run(capsys, "list")
    assert (code, out, err) == (130, "", "interrupted\n")


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    """`peerveil schema | head -1` says nothing on stderr."""
    shell = f"{sys.executable} -m scenarios schema | head -c 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{", "")


@pytest.mark.slow
@pytest.mark.parametrize("argv", [["--help"], ["check", "adpdfl-gossip"], ["list"], ["schema"]])
def test_quick_commands_import_nothing_heavy(argv: list[str]) -> None:
    """A check takes half a second, not the five of importing torch."""
    assert imported_by(argv).isdisjoint(HEAVY)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "adpdfl-gossip", "adpdfl-leader-mnist"])
def test_a_check_does_without_what_only_a_run_or_a_fault_needs(name: str) -> None:
    """pydantic says what is wrong with a value; simpy (which imports the e-mail package) runs."""
    assert imported_by(["check", name]).isdisjoint({"pydantic", "simpy", "email"})


@pytest.mark.slow
def test_a_run_does_without_what_only_notebooks_need(tmp_path: Path) -> None:
    """pandas takes longer to import than a small run to write its files."""
    argv = ["run", "tiny", "--quiet", "--out", str(tmp_path / "run")]
    assert imported_by(argv).isdisjoint({"pandas", "matplotlib", "plotly", "numba"})


@pytest.mark.parametrize("given", [None, "3"])
def test_a_check_leaves_the_environment_as_it_was(
    given: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It keeps numpy from starting threads only while it is imported, and not if the user wants some."""
    seen: list[str | None] = []
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)

    def watched(name: str, package: str) -> ModuleType:
        seen.append(os.environ.get("OPENBLAS_NUM_THREADS"))
        return import_module(name, package)

    monkeypatch.setattr(main, "import_module", watched)
    assert run(capsys, "check", "tiny")[0] == 0
    assert (seen, os.environ.get("OPENBLAS_NUM_THREADS")) == ([given or "1"], given)


def imported_by(argv: list[str]) -> set[str]:
    """The top-level modules that a command leaves behind."""
    code = f"import sys; from scenarios.cli.main import main; main({argv!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stderr.split()}
