"""A scenario that is interrupted and resumed, in this process or in one of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open

from scenarios.loading.load import parse_scenario
from scenarios.running.checkpoint import FILE
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario

SCENARIO = """
name: resumed
seed: 3
rounds: 4
clients: 8
data: {name: synthetic, samples: 160, test_samples: 40, features: 6, classes: 3}
model: {kind: linear}
training: {epochs: 1, batch_size: 10, learning_rate: 0.2}
evaluation: {every: 2}
protocol: {kind: gossip, train_per_round: 5, exchange_with: 3, deadline: 20 s}
privacy: {clip: {kind: flat, norm: 1.0}, noise: {kind: gaussian, sigma: 0.05}}
network:
  sharing: fifo
  uplink: {kind: lognormal, median: 200 kbit/s, sigma: 0.8}
  downlink: 1 Mbit/s
  latency: {kind: uniform, low: 20 ms, high: 120 ms}
  loss: 0.05
compute: {kind: lognormal, median: 10 samples/s, sigma: 0.7}
availability: {kind: churn, mean_up: 60 s, mean_down: 8 s}
faults:
  - {kind: corrupt, probability: 0.1}
  - {kind: slow, fraction: 0.3, factor: 8}
"""
LEADER = (
    "protocol={kind: rotating_leader, train_per_round: 5, deadline: 12 s, leader_timeout: 3 s, model_deadline: 12 s}"
)
CRASHES = (
    "faults=[{kind: corrupt, probability: 0.1}, {kind: slow, fraction: 0.3, factor: 6}, "
    "{kind: crash, who: leader, round: 2, phase: aggregate, lasts: 30 s}, "
    "{kind: crash, who: leader, round: 3, phase: broadcast, lasts: 10 s}]"
)
MODELS = (
    "protocol={kind: gossip, train_per_round: 5, graph: hypercube, redraw: {kind: swaps, edges: 2}, "
    "mixing: metropolis, exchange: model, deadline: 20 s}"
)
LONG = 60
"""So many rounds that a signal comes in their midst."""


class Stop:
    """Interrupts a run when a round has closed."""

    def __init__(self, round_number: int) -> None:
        self._round_number = round_number

    def __call__(self, row: Mapping[str, Any]) -> None:
        """Presses Ctrl-C."""
        if row["round"] == self._round_number:
            raise KeyboardInterrupt


def scenario(*overrides: str) -> Scenario:
    """The scenario above."""
    return parse_scenario(SCENARIO, overrides=overrides)


def run(out: Path, *overrides: str, stop_after: int = 0, resume: bool = False) -> dict[str, Any]:
    """Runs it into a folder; the summary."""
    listeners = [Stop(stop_after)] if stop_after else []
    return run_scenario(scenario(*overrides), out, threads=1, resume=resume, listeners=listeners)[0]


def lasting(folder: Path) -> dict[str, Any]:
    """What must be as in an uninterrupted run: everything but how long it took, and how often it was resumed."""
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return {key: value for key, value in summary.items() if key not in ("wall_s", "resumed")}


def files(folder: Path) -> set[str]:
    """What lies in a folder."""
    return {path.name for path in folder.iterdir()}


def words(path: Path, out: Path, *more: str) -> list[str]:
    """A command line."""
    return [sys.executable, "-m", "scenarios", "run", str(path), "--out", str(out), "--threads", "1", *more]


def _listen() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_in_round(path: Path, out: Path, round_number: int, number: signal.Signals) -> tuple[int, str]:
    """Starts a run in a process of its own and sends a signal once a round is in the checkpoint: exit code, stderr."""
    process = subprocess.Popen(
        words(path, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=_listen, text=True
    )
    until_s = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until_s:
        if saved_round(out) >= round_number:
            process.send_signal(number)
            break
        time.sleep(0.002)
    told = process.communicate(timeout=60)[1]
    return process.returncode, told


def saved_round(out: Path) -> int:
    """The last round in the checkpoint of a run that is going."""
    try:
        with safe_open(out / FILE, framework="numpy") as file:
            return int(json.loads(file.metadata()["peerveil"])["round"])
    except (FileNotFoundError, OSError):
        return -1


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt
