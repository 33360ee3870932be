"""Machine code of the event core: linked once, kept by version, announced when it is made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from p2p.transport.core import compiled
from tests.p2p.small_network import SmallNetwork

ROOT = Path(__file__).parents[3]
COMPILED = pytest.mark.skipif(compiled.is_interpreted(), reason="nothing is compiled here")


def run(sources: Path, cache: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs Python on these sources with this cache, and no other."""
    environment = {"PYTHONPATH": str(sources), "PEERVEIL_CACHE": str(cache), "PATH": os.environ["PATH"]}
    # `-c` and `-m` look into the working folder first, hence `cwd`.
    return subprocess.run(
        [sys.executable, *command], cwd=sources, env=environment, capture_output=True, text=True, check=True
    )


@COMPILED
def test_a_process_links_the_core_once() -> None:
    """An engine is never freed, and a worker of a sweep builds hundreds of worlds."""
    SmallNetwork()
    before = len(compiled._loaded)
    SmallNetwork()
    assert len(compiled._loaded) == before == 1


@COMPILED
@pytest.mark.slow
def test_a_change_in_any_kernel_is_another_version(tmp_path: Path) -> None:
    """Kernels call kernels of other files, so the machine code is kept under a hash of all of them."""
    shutil.copytree(ROOT / "p2p", tmp_path / "p2p", ignore=shutil.ignore_patterns("__pycache__"))
    ask = ("-c", "from p2p.transport.core.compiled import cache_folder; print(cache_folder())")
    folders = [run(tmp_path, tmp_path, *ask).stdout]
    for name in ("max_min.py", "layout.py"):
        with (tmp_path / "p2p" / "transport" / "core" / name).open("a") as file:
            file.write("# changed\n")
        folders.append(run(tmp_path, tmp_path, *ask).stdout)
    assert len(set(folders)) == 3


@COMPILED
@pytest.mark.extra
def test_compiling_is_said_in_one_line_and_only_once(tmp_path: Path) -> None:
    """It takes some seconds, so a user wants to know; the next process loads the machine code and says nothing."""
    first, second = (run(ROOT, tmp_path, "-m", "p2p.transport") for _ in range(2))
    assert first.stderr == "compiling the event core (once per version, some seconds) ...\n"
    assert first.stdout == second.stdout == second.stderr == ""
