"""The layers hold, and asking for help costs no heavy import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "scipy", "sklearn", "pyarrow", "dp_accounting", "cryptography", "networkx", "rich", "pandas"}


@pytest.mark.slow
def test_import_contracts_are_kept() -> None:
    """Those of pyproject.toml: outer layers import inner ones, never back."""
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [linter, "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def imported_by(*argv: str) -> set[str]:
    """The modules that a command has imported when it ends; it must end well."""
    code = (
        "import sys; from scenarios.cli.main import main; code = main(sys.argv[1:]);"
        "print(*sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *argv], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv",
    [["--help"], ["list"], ["schema"], ["check", "tiny"], ["check", "adpdfl-gossip", "adpdfl-leader-mnist"]],
    ids=lambda argv: " ".join(argv),
)
def test_asking_imports_nothing_heavy(argv: list[str]) -> None:
    """Help, catalog, schema and validation answer at once."""
    assert imported_by(*argv) & HEAVY == set()


@pytest.mark.slow
def test_help_reads_no_scenario() -> None:
    """Its text is in the modules of the command line."""
    assert imported_by("--help") & {"numpy", "yaml", "scenarios.schema"} == set()


@pytest.mark.slow
def test_checking_loads_settings_and_not_what_they_set_up() -> None:
    """Among it what simulates, what draws random numbers, and what carries out an attack."""
    attacks = {"privacy.attacks.attack", "privacy.attacks.observations", "privacy.attacks.linkage", "statistics"}
    needless = {"pydantic", "simpy", "numba", "llvmlite", "numpy.random", "hashlib", "scenarios.attacking.positions"}
    assert imported_by("check", "tiny") & (needless | attacks) == set()


def test_the_tests_are_no_packages() -> None:
    """`tests/p2p/__init__.py` would hide the real `p2p`."""
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_packages_say_what_they_are_and_nothing_else() -> None:
    """An `__init__.py` holds a docstring, and maybe the table of its folder."""
    for folder in ("p2p", "nodes", "topologies", "privacy", "scenarios"):
        text = (ROOT / folder / "__init__.py").read_text(encoding="utf-8")
        assert text.startswith('"""')
        assert "import" not in text.split('"""')[2]
