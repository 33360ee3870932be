"""The digest of the source covers what a run imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.sweeps.identity import is_running_source, source_digest

_CODE = """
import json, sys, pathlib, tempfile
from scenarios.sweeps import cell_task
before = set(sys.modules)
from scenarios.loading.load import load_scenario
from scenarios.running.run import run_scenario
for name in ("tiny", "niss-central"):
    scenario = load_scenario(name, ["rounds=1"])
    run_scenario(scenario, pathlib.Path(tempfile.mkdtemp()) / "run", threads=1)
own = ("p2p", "nodes", "privacy", "topologies", "scenarios")
print(json.dumps([m.__file__ for n, m in sys.modules.items() if n.partition(".")[0] in own and m.__file__]))
"""


@pytest.mark.slow
def test_whatever_a_run_imports_is_in_the_digest() -> None:
    """Otherwise a change of it would leave old results in the store as if they were today's."""
    told = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True).stdout
    files = [Path(name) for name in json.loads(told.splitlines()[-1])]
    outside = {f"{path.parent.name}/{path.name}" for path in files if not is_running_source(path)}
    # The sweeping code only carries cells about; of the report, the live page takes what escapes its text.
    assert {name for name in outside if not name.startswith("sweeps/")} <= {
        f"report/{name}.py" for name in ("__init__", "html", "embed")
    }
    assert len(files) > 100


def test_the_digest_is_a_sha256_of_many_files() -> None:
    """And the same when asked twice."""
    assert len(source_digest()) == 64
    assert source_digest() == source_digest()
    root = Path(__file__).parents[3]
    assert is_running_source(root / "p2p" / "clock.py")
    assert not is_running_source(root / "scenarios" / "report" / "html.py")
