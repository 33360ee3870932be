"""The wheel works on its own: command, catalog, and our packages rather than namesakes."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
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


REQUIREMENTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]


def install(python: Path, *what: str) -> None:
    """Installs into an environment, with the pinned versions."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "-c", str(ROOT / "constraints.txt"), *what], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def peerveil(python: Path, folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Runs the installed command from a folder that has nothing to do with the sources."""
    command = [str(python.parent / "peerveil"), *argv]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.extra
def test_a_clean_environment_installs_and_learns(wheel: Path, tmp_path: Path) -> None:
    """`pip install` of the wheel alone brings all that a run with learning needs."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    install(python, str(wheel))
    done = peerveil(python, tmp_path, "run", "tiny", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["accuracy"]["mean"] is not None


def interpreter(version: str) -> str | None:
    """A working Python of that version, on the path or among pyenv's; None if there is none."""
    candidates = [f"python{version}"]
    if shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False).stdout.strip()
        candidates += [str(path) for path in Path(root).glob(f"versions/{version}.*/bin/python")]
    for candidate in filter(shutil.which, candidates):
        if subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


@pytest.mark.extra
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_other_pythons_simulate_without_torch(version: str, wheel: Path, tmp_path: Path) -> None:
    """All but learning works without torch, and its absence is one clear message."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} here")
    subprocess.run([found, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    install(python, *(requirement for requirement in REQUIREMENTS if not requirement.startswith("torch")))
    install(python, "--no-deps", str(wheel))
    flows = tmp_path / "flows.json"
    link = {"up": 1e6, "down": 1e6}
    flow = {"src": 0, "dst": 1, "bytes": 1e6, "start_s": 0.0}
    flows.write_text(json.dumps({"sharing": "fair", "nodes": [link, link], "latency_s": 0.1, "flows": [flow]}))
    for argv in (
        ["check", "tiny", "adpdfl-gossip"],
        ["plan", "adpdfl-gossip"],
        ["calc", "gaussian_sigma", "epsilon=1", "delta=1e-5", "sensitivity=1"],
        ["flows", str(flows)],
        ["run", "tiny", "--set", "learning=none", "--out", "quiet"],
    ):
        done = peerveil(python, tmp_path, *argv)
        assert done.returncode == 0, f"{argv}: {done.stderr}"
    refused = peerveil(python, tmp_path, "run", "tiny")
    assert refused.returncode == 2
    assert "torch is not installed; `pip install torch`" in refused.stderr
    assert "Traceback" not in refused.stderr
