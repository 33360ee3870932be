"""The benchmarks run; how fast things are is not a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.figures import BEGIN, END, Figure, markdown, put_into
from benchmarks.jobs import JOBS

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_quick_suite_measures_and_writes(tmp_path: Path) -> None:
    """Some jobs of every sort, at small sizes; nothing but the JSON file is written."""
    file = tmp_path / "figures.json"
    jobs = [part for name in ("deliveries", "peers", "demo") for part in ("--only", name)]
    command = [sys.executable, "-m", "benchmarks", "--quick", *jobs, "--json", str(file)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    told = json.loads(file.read_text())
    jobs_told = " ".join(figure["job"] for figure in told["figures"])
    assert all(name in jobs_told for name in ("deliveries", "peers", "demo"))
    assert all(figure["value"] > 0 for figure in told["figures"])


@pytest.mark.extra
def test_every_job_runs(tmp_path: Path) -> None:
    """At small sizes: `make bench` takes minutes, and a job that has lost what it measures would end it."""
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", str(file)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    assert len(json.loads(file.read_text())["figures"]) > len(JOBS)


def test_a_goal_is_met_on_its_side() -> None:
    """At most, or at least."""
    assert Figure("a", 1.0, "s", 1.0).met
    assert not Figure("a", 1.1, "s", 1.0).met
    assert Figure("a", 1.1, "", 1.0, "at least").met


def test_the_page_keeps_its_text(tmp_path: Path) -> None:
    """Only what stands between the markers is replaced, again and again."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    facts = {"python": "3", "cores": 2, "simpy_timeouts_per_s": 1000}
    for _ in range(2):
        put_into(page, markdown([Figure("a job", 0.5, "s", 1.0)], facts))
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert text.count("a job") == 1
    assert "old" not in text
