"""`peerveil new`: what it writes works at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nodes.learning.objectives import OBJECTIVES
from nodes.learning.training import Training
from scenarios.cli.main import main
from scenarios.loading.load import load_scenario, parse_scenario
from scenarios.loading.writing.field_docs import keys_of
from scenarios.loading.writing.starter_file import starter_text
from scenarios.schema import Scenario


def test_the_starter_passes_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Written, checked, and named after its file."""
    target = tmp_path / "mine"
    assert main(["new", str(target)]) == 0
    assert main(["check", f"{target}.yaml"]) == 0
    assert "mine: ok" in capsys.readouterr().out


def test_the_starter_shows_every_key_with_its_default_and_a_reason() -> None:
    """Sections of a scenario, and the keys of each section in it."""
    text = starter_text("mine")
    scenario = parse_scenario(text)
    bare = parse_scenario(
        "{name: mine, question: 'What do I want to know?', rounds: 5, clients: 20, data: digits, model: mlp, "
        "protocol: {kind: gossip, train_per_round: 10, exchange_with: 4}}"
    )
    assert scenario == bare
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all("  # " in line for line in lines)
    for key in keys_of(Scenario):
        assert any(line.startswith(f"{key.name}:") for line in lines)
    for key in keys_of(Training):
        assert any(line.startswith(f"  {key.name}:") for line in lines)


def test_the_starter_names_the_kinds_of_a_bare_name() -> None:
    """A reader finds the other objectives without the schema."""
    (line,) = [line for line in starter_text("mine").splitlines() if line.startswith("objective:")]
    assert line.startswith("objective: cross_entropy ")
    assert line.endswith("; one of " + ", ".join(OBJECTIVES))


def test_the_privacy_example_in_the_starter_loads() -> None:
    """Taking the comment signs away gives the published privacy."""
    head, _, tail = starter_text("mine").partition("privacy: none")
    opened = "\n".join(line.removeprefix("# ") if line.startswith("# ") else line for line in tail.splitlines()[1:])
    privacy = parse_scenario(head + opened).privacy
    assert privacy is not None
    assert privacy.resolved_budget().by == "published"


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is there stays; with --protocol nothing at all is written then."""
    (tmp_path / "mine.py").write_text("precious")
    assert main(["new", str(tmp_path / "mine"), "--protocol"]) == 2
    assert "mine.py: exists already; choose another name" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


@pytest.mark.parametrize("name", ["x" * 90, "no/such/folder/x", "-", "a\x07b"])
def test_bad_names_are_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, and no file."""
    monkeypatch.chdir(tmp_path)
    expected = 0 if name == "-" else 2
    assert main(["new", "--", name]) == expected
    assert len(list(tmp_path.iterdir())) == (1 if expected == 0 else 0)


@pytest.mark.parametrize("name", ["json", "3d", "class", "_x"])
def test_a_protocol_needs_a_free_module_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed modules, keywords and non-names are refused."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", name, "--protocol"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_own_protocol_loads(tmp_path: Path) -> None:
    """Three files; hyphens become underscores in the module."""
    assert main(["new", str(tmp_path / "my-ring"), "--protocol"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my-ring.yaml", "my_ring.py", "test_my_ring.py"]
    scenario = load_scenario(tmp_path / "my-ring.yaml", allow_plugins=True)
    assert type(scenario.protocol).__name__ == "MyRing"


@pytest.mark.slow
def test_an_own_protocol_passes_its_own_test(tmp_path: Path) -> None:
    """The test that comes with it runs the protocol end to end."""
    assert main(["new", str(tmp_path / "own_ring"), "--protocol"]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_own_ring.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
