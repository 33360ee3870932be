"""Conditions outside the program - Ctrl-C, a full disk, a folder that may not be written - are one line each."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
# Reports when the entry point is imported; from then on the program is responsible for what Ctrl-C does.
STARTED = "import scenarios.cli.entry as entry, sys; print('up', flush=True); sys.exit(entry.run())"


def peerveil(*words: str, limit_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command, perhaps with a limit on the size of files, which stands for a full disk."""
    limit: Callable[[], None] | None = None
    if limit_bytes is not None:
        ends = (limit_bytes, limit_bytes)
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, ends)  # noqa: E731
    command = [sys.executable, "-m", "scenarios", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)


@pytest.mark.parametrize(
    "command", [["list"], ["run", "tiny", "--quiet"], ["calc", "--list"]], ids=lambda words: words[0]
)
@pytest.mark.parametrize("delay_s", [0.0, 0.005, 0.02, 0.05, 0.1, 0.3])
def test_an_interrupt_while_importing_is_no_traceback(tmp_path: Path, command: list[str], delay_s: float) -> None:
    """At any time from the first line on."""
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, *command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(delay_s + 0.002)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    # A short command may have ended before, or be where Python has taken its handlers down already.
    assert process.returncode in (0, 130, -signal.SIGINT)
    assert "Traceback" not in told
    assert process.returncode != 130 or "interrupted" in told


@pytest.mark.parametrize("limit_bytes", [500, 5_000, 60_000])
def test_a_full_disk_is_told(tmp_path: Path, limit_bytes: int) -> None:
    """While the first file, a part or the checkpoint is written; the library's own error is none of the user's."""
    model = "model={kind: mlp, hidden: [300]}"
    done = peerveil("run", "tiny", "--quiet", "--out", str(tmp_path / "r"), "--set", model, limit_bytes=limit_bytes)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.rglob("*.part"))


def test_a_page_or_a_line_that_does_not_fit_is_told(tmp_path: Path) -> None:
    """The report and standard output."""
    run = tmp_path / "r"
    assert peerveil("run", "tiny", "--quiet", "--out", str(run)).returncode == 0
    done = peerveil("report", str(run), limit_bytes=20_000)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "report.html: cannot be written" in done.stderr
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "scenarios", "cost", str(run)]
        written = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (written.returncode, written.stderr) == (2, "No space left on device; free the disk, or check the rights\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    """For a run, and for a report beside an existing run."""
    run = tmp_path / "r"
    assert peerveil("run", "tiny", "--quiet", "--out", str(run)).returncode == 0
    run.chmod(0o500)
    for words in (["report", str(run)], ["run", "tiny", "--quiet", "--out", str(run / "new")]):
        done = peerveil(*words)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that cannot be written to")
def test_a_folder_that_cannot_be_written_to_is_told() -> None:
    """Not even root."""
    done = peerveil("run", "tiny", "--quiet", "--out", "/proc/peerveil-run")
    assert done.returncode == 2
    assert "--out = /proc/peerveil-run" in done.stderr
    assert "Traceback" not in done.stderr
