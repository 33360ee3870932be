"""From a scenario to its folder: everything is written, repeats, and survives an interrupt or a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodes.learning.trainer import Learner
from p2p.log import records
from scenarios.build import build
from scenarios.cli.commands.results.cost import cost_of
from scenarios.loading.load import load_scenario
from scenarios.run_folder.reader import open_run
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario

pytestmark = pytest.mark.slow
LEADER = "protocol={kind: rotating_leader, train_per_round: 4}"
CENTRAL = "protocol={kind: central, train_per_round: 4}"
KINDS = pytest.mark.parametrize("protocol", ["", LEADER, CENTRAL], ids=["gossip", "leader", "central"])
FILES = {f"{name}.parquet" for name in ("messages", "spans", "rounds", "dropouts", "graphs", "privacy")}
PROMISED = (
    "headline format scenario seed rounds_completed stopped_because simulated_s wall_s accuracy messages bytes "
    "absences missing dropouts privacy linkability digest events_depend_on_learning"
)


def tiny(*overrides: str) -> Scenario:
    """The catalog's smallest scenario."""
    return load_scenario("tiny", [override for override in overrides if override])


def run(out: Path, *overrides: str, **options: Any) -> Mapping[str, Any]:
    """Runs `tiny` into a folder; the summary."""
    return run_scenario(tiny(*overrides), out, **options)[0]


@KINDS
def test_every_file_and_key_of_the_design(tmp_path: Path, protocol: str) -> None:
    """The folder has all files, the summary all keys, and both say the same as what was returned."""
    returned = run(tmp_path / "run", protocol)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= FILES | {"summary.json", "scenario.yaml", "environment.json", "model.safetensors"}
    assert "parts" not in names
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert set(PROMISED.split()) <= set(summary)
    assert next(iter(summary)) == "headline"
    assert summary["digest"] == returned["digest"]
    assert summary["stopped_because"] == "all rounds done"
    assert summary["rounds_completed"] == 2
    for counts in (summary["messages"], summary["bytes"]):
        assert counts["sent"] == sum(counts[word] for word in ("delivered", "lost", "rejected", "in_flight"))
        assert counts["sent"] == sum(counts["by_kind"].values())


@KINDS
def test_a_run_opens_as_it_was(tmp_path: Path, protocol: str) -> None:
    """Tables read back: rows of both rounds, accuracies between 0 and 1, a row for every release."""
    run(tmp_path / "run", protocol)
    opened = open_run(tmp_path / "run")
    assert [row["round"] for row in opened.log.rounds] == [1, 2]
    assert all(0 <= row["accuracy_after_mean"] <= 1 for row in opened.log.rounds)
    assert len(opened.log.privacy) == 8
    assert opened.scenario["name"] == "tiny"


@KINDS
def test_run_twice_is_the_same_run(tmp_path: Path, protocol: str) -> None:
    """Events and learning, bit for bit; another seed gives others."""
    digests = [run(tmp_path / str(number), protocol)["digest"] for number in range(2)]
    assert digests[0] == digests[1]
    other = run(tmp_path / "other", protocol, "seed=2")["digest"]
    assert other["events"] != digests[0]["events"]
    assert other["learning"] != digests[0]["learning"]


@pytest.mark.parametrize("protocol", ["protocol={kind: gossip, train_per_round: 8, exchange_with: 3}",
                                      "protocol={kind: rotating_leader, train_per_round: 8}"])  # fmt: skip
def test_threads_and_stacks_change_no_event(tmp_path: Path, protocol: str) -> None:
    """The learning figures agree to 1e-4."""
    summaries = []
    for threads, at_once in ((1, 3), (2, 3), (1, 7), (2, 7)):
        out = tmp_path / f"{threads}-{at_once}"
        summaries.append(run(out, "clients=9", "data.samples=180", protocol, threads=threads, at_once=at_once))
    first = summaries[0]
    for other in summaries[1:]:
        assert other["digest"]["events"] == first["digest"]["events"]
        for figure in ("max", "mean", "min"):
            assert other["accuracy"][figure] == pytest.approx(first["accuracy"][figure], abs=1e-4)
        assert other["collected"]["loss"] == pytest.approx(first["collected"]["loss"], abs=1e-4)


def test_protocols_learn_from_the_same_data() -> None:
    """On one seed: the same records, the same first model, the same first training."""
    benches = [build(tiny(protocol)) for protocol in ("", LEADER)]
    learners = [bench.learner for bench in benches]
    trained = []
    for learner in learners:
        assert learner is not None
        first = np.tile(learner.initial(), (6, 1))
        trained.append(learner.train(first, range(6), 1))
    assert (trained[0] == trained[1]).all()


def test_a_warm_up_stays_out_of_the_figures(tmp_path: Path) -> None:
    """Costs are those of the measured rounds; events and learning are the same."""
    whole, measured = run(tmp_path / "all"), run(tmp_path / "some", "evaluation.measure_from=2")
    assert whole["digest"] == measured["digest"]
    kinds = measured["messages"]["by_kind"]
    assert (kinds["bootstrap"], kinds["update"]) == (0, whole["messages"]["by_kind"]["update"] // 2)
    assert measured["bytes"]["sent"] < whole["bytes"]["sent"]


def test_a_lost_leader_has_its_price(tmp_path: Path) -> None:
    """What members sent it is wasted, and what they waited for its model is stalled."""
    protocol = "protocol={kind: rotating_leader, train_per_round: 5, leader_timeout: 5 s}"
    crash = "faults=[{kind: crash, who: leader, round: 1, phase: aggregate}]"
    summary = run(tmp_path / "run", protocol, crash, "learning=none")
    (lost,) = cost_of(open_run(tmp_path / "run"))["dropouts"]
    assert (lost["round"], lost["reason"]) == (1, "crashed")
    assert lost["wasted_bytes"] > 0
    assert 5 < lost["stalled_s"] <= summary["headline"]["stalled_s"]


def test_watching_changes_nothing(tmp_path: Path) -> None:
    """How often accuracy is measured moves neither events nor the final models."""
    often, once = run(tmp_path / "a"), run(tmp_path / "b", "evaluation.every=0")
    assert often["digest"]["events"] == once["digest"]["events"]
    assert often["accuracy"] == once["accuracy"]
    assert often["collected"] == once["collected"]


def test_learning_and_sealing_are_not_events(tmp_path: Path) -> None:
    """Without learning, or counting seals instead of sealing, the same messages go the same ways."""
    real = run(tmp_path / "real")
    silent = run(tmp_path / "silent", "learning=none")
    counted = run(tmp_path / "counted", "anonymity.sealed=sizes")
    assert real["digest"]["events"] == silent["digest"]["events"] == counted["digest"]["events"]
    assert real["digest"]["learning"] == counted["digest"]["learning"]
    assert silent["accuracy"]["mean"] is None


@KINDS
@pytest.mark.parametrize("seed", [10, 11, 12])
def test_learning_survives_losses_and_short_deadlines(tmp_path: Path, protocol: str, seed: int) -> None:
    """Late, lost and missing updates at the very instant of closing: no promise of a vector is broken."""
    rough = ("network.loss=0.6", "rounds=4", "anonymity.sealed=sizes", "protocol.deadline=8 s", "protocol.grace=0 s")
    slow = ("compute={kind: lognormal, median: 40 samples/s, sigma: 1}", "protocol.invite_timeout=60 s")
    summary = run(tmp_path / "run", protocol, *rough, *slow, f"seed={seed}")
    counts = summary["messages"]
    assert counts["sent"] == sum(counts[word] for word in ("delivered", "lost", "rejected", "in_flight"))
    assert counts["lost"] > 0


@KINDS
def test_an_interrupt_while_learning(tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the second training: the first round is on disk, and the summary says why it ended."""
    calls: list[int] = []
    train = Learner.train

    def interrupted(self: Learner, models: Any, nodes: Any, round_number: int, *more: Any) -> Any:
        calls.append(round_number)
        if round_number == 2:
            raise KeyboardInterrupt
        return train(self, models, nodes, round_number, *more)

    monkeypatch.setattr(Learner, "train", interrupted)
    summary = run(tmp_path / "run", protocol)
    assert calls[-1] == 2
    assert summary["stopped_because"] == "interrupted"
    assert summary["rounds_completed"] == 1
    opened = open_run(tmp_path / "run")
    assert [row["round"] for row in opened.log.rounds] == [1]
    assert opened.summary is not None
    assert opened.summary["messages"]["sent"] == len(opened.log.messages)


def test_an_interrupted_run_tells_which_nodes_were_down(tmp_path: Path) -> None:
    """A node that has crashed for good is down until the interrupt."""

    def interrupt(row: Any) -> None:
        if row["round"] == 2:
            raise KeyboardInterrupt

    faults = "faults=[{kind: crash, who: 1, start: 100 ms}]"
    summary = run(tmp_path / "run", faults, "rounds=4", listeners=[interrupt])
    assert summary["stopped_because"] == "interrupted"
    spans = open_run(tmp_path / "run").log.spans
    down = spans["name"] == records.SPAN["down"]
    assert spans["node"][down].tolist() == [1]
    assert spans["start_s"][down].tolist() == [0.1]
    assert spans["end_s"][down].tolist() == pytest.approx([summary["simulated_s"]])


def _listen() -> None:
    """A process started in the background may have been told to ignore Ctrl-C; the run must not inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(out: Path) -> subprocess.Popen[str]:
    """A run of its own process that is in the middle: its first part is on disk, many are to come."""
    changes = ("rounds=500", "evaluation.every=0", "privacy=null", "anonymity.sealed=sizes")
    options = [word for change in changes for word in ("--set", change)]
    command = [sys.executable, "-m", "scenarios", "run", "adpdfl-gossip", "--out", str(out), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_listen)
    until_s = time.monotonic() + 120
    while not list(out.glob("parts/rounds-*.parquet")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until_s
        time.sleep(0.05)
    return process


def test_control_c_leaves_a_prefix(tmp_path: Path) -> None:
    """Exit code 130, no traceback, and a folder that opens."""
    process = start(tmp_path / "run")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "Traceback" not in told
    opened = open_run(tmp_path / "run")
    assert opened.summary is not None
    assert opened.summary["stopped_because"] == "interrupted"
    assert len(opened.log.rounds) == opened.summary["rounds_completed"] >= 1
    assert set(opened.log.messages["round"]) >= {0, 1}


def test_a_kill_leaves_parts(tmp_path: Path) -> None:
    """Nothing could be tidied up, and the rounds that had ended can still be read."""
    process = start(tmp_path / "run")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    opened = open_run(tmp_path / "run")
    assert opened.summary is None
    assert [row["round"] for row in opened.log.rounds] == list(range(1, len(opened.log.rounds) + 1))
    assert len(opened.log.rounds) >= 1
    assert len(opened.log.messages) > 70 * 50


def test_the_error_of_a_time_grid_stands_in_the_summary(tmp_path: Path) -> None:
    """Starts wait for the next point of the grid, never longer than one step."""
    overrides = ["learning=none", "network.sharing={kind: fair, grid: 50 ms}"]
    summary, _ = run_scenario(load_scenario("tiny", overrides), tmp_path / "run")
    assert summary["grid"]["step_s"] == 0.05
    assert 0 < summary["grid"]["latest_start_s"] < 0.05
