"""The wheel works on its own: command, catalog, and our packages rather than namesakes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("p2p", "nodes", "topologies", "privacy", "scenarios", "peerveil")


def test_our_packages_win_over_namesakes() -> None:
    """All six come from one parent and carry our docstring; public distributions of these names exist."""
    modules = [importlib.import_module(name) for name in PACKAGES]
    assert len({Path(str(module.__file__)).parents[1] for module in modules}) == 1
    for module, name in zip(modules, PACKAGES, strict=True):
        first = (ROOT / name / "__init__.py").read_text(encoding="utf-8").split('"""')[1]
        assert module.__doc__ == first


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_the_catalog_and_no_tests(wheel: Path) -> None:
    """Every scenario file of the tree is inside; tests and benchmarks stay out."""
    names = zipfile.ZipFile(wheel).namelist()
    shipped = {Path(name).name for name in names if name.startswith("scenarios/catalog/")}
    assert shipped >= {path.name for path in (ROOT / "scenarios" / "catalog").glob("*.yaml")}
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


@pytest.mark.slow
def test_the_installed_command_works(wheel: Path, tmp_path: Path) -> None:
    """Installed elsewhere, run from elsewhere: `peerveil list` shows the catalog."""
    target = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    environment = os.environ | {"PYTHONPATH": str(target)}
    where = [sys.executable, "-c", "import scenarios; print(scenarios.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(target)
    command = [sys.executable, str(target / "bin" / "peerveil"), "list"]
    listed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    for name in ("adpdfl-gossip", "adpdfl-leader", "gossip-plain", "leader-plain", "fedavg", "dp-fedavg", "tiny"):
        assert name in listed.stdout
