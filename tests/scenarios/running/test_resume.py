"""A run that was killed or interrupted goes on, and ends as if nothing had happened."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from nodes.messaging.endpoint import Endpoint
from p2p.config.errors import UserError
from privacy.sealing.keys import KeyPair
from scenarios.cli.main import main
from scenarios.loading.load import dump_scenario, parse_scenario
from scenarios.run_folder.reader import open_run
from scenarios.running.checkpoint import FILE, Checkpoint, read_checkpoint, write_checkpoint
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario
from tests.random_worlds import OBJECTIVES

pytestmark = pytest.mark.slow

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
OBJECTIVE = ("objective={kind: fednore_both, lam: 0.3}", "training.batch_size=all")
DISCOUNTED = ("rounds=8", "schedule={kind: crd, beta: 0.9}")
NOISY = ("rounds=8", "schedule={kind: crd, beta: 0.9, driven_by: {kind: noisy_losses, sigma: 5}}")
SERVER = "protocol={kind: central, train_per_round: 5, deadline: 12 s}"
MOMENTUM = (SERVER, "aggregate={weights: loss_and_records, momentum: 0.5, step_size: 0.9, noise: {sigma: 0.05}}")
MEMORY = ("privacy=none", "update=[clip_own_median, {kind: gaussian, multiplier: 0.5, per_record: true}]")
MASKED = ("privacy=none", "update=[{kind: mask, rate: 0.4, by: last_aggregate}, clip, {kind: snlc, sigma: 0.1}]")
LONG = 60
"""So many rounds that a signal comes in their midst."""
VARIANTS = pytest.mark.parametrize(
    "overrides",
    [
        (),
        (LEADER, CRASHES),
        ("learning=none",),
        (LEADER, CRASHES, "anonymity.sealed=false"),
        (MODELS, *OBJECTIVE),
        (LEADER, CRASHES, *DISCOUNTED),
        NOISY,
        MEMORY,
        (LEADER, CRASHES, "anonymity.sealed=true", *MASKED),
        MOMENTUM,
        (LEADER, "rounds=6", "faults=[]", "aggregate={momentum: 0.7, step_size: 0.9}", *MASKED),
    ],
    ids=[
        "gossip",
        "leader",
        "no learning",
        "unsealed leader",
        "models",
        "discounted rounds",
        "noisy losses",
        "own medians",
        "masks",
        "momentum",
        "momentum of leaders",
    ],
)


@pytest.fixture(autouse=True)
def _each_round_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.running.journal.REST", 0)


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


@VARIANTS
def test_an_interrupted_run_goes_on(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    """Interrupted after its first round, resumed, interrupted again: the same summary, tables and files."""
    run(tmp_path / "whole", *overrides)
    assert run(tmp_path / "run", *overrides, stop_after=1)["stopped_because"] == "interrupted"
    again = run(tmp_path / "run", *overrides, stop_after=3, resume=True)
    assert (again["stopped_because"], again["rounds_completed"], again["resumed"]) == ("interrupted", 3, 1)
    assert run(tmp_path / "run", *overrides, resume=True)["resumed"] == 2
    assert lasting(tmp_path / "run") == lasting(tmp_path / "whole")
    assert files(tmp_path / "run") == files(tmp_path / "whole")
    one, other = open_run(tmp_path / "run"), open_run(tmp_path / "whole")
    for name in ("messages", "rounds", "dropouts", "privacy"):
        assert one.table(name).equals(other.table(name))


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


@pytest.mark.parametrize(
    ("overrides", "round_number", "number"),
    [
        ((), 3, signal.SIGKILL),
        ((LEADER, CRASHES), 2, signal.SIGKILL),
        ((LEADER,), 0, signal.SIGKILL),
        ((), 2, signal.SIGINT),
    ],
    ids=["gossip", "leader", "before the first round ends", "control-c"],
)
def test_a_killed_process_goes_on(
    tmp_path: Path, overrides: tuple[str, ...], round_number: int, number: signal.Signals
) -> None:
    """kill -9 or Ctrl-C in the middle of a longer run; `--resume` ends it with the digests of an uninterrupted one."""
    path, rounds = tmp_path / "scenario.yaml", LONG
    for rounds in (LONG, 8 * LONG, 64 * LONG):
        whole = scenario(*overrides, f"rounds={rounds}", "availability=always")
        path.write_text(dump_scenario(whole), encoding="utf-8")
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        code, told = end_in_round(path, tmp_path / "run", round_number, number)
        # On a busy machine a short run may have ended before this process had its turn: then a longer one.
        if code != 0:
            break
    assert code == (130 if number == signal.SIGINT else -signal.SIGKILL), told
    assert (tmp_path / "run" / FILE).exists()
    command = ["run", str(path), "--threads", "1", "--quiet", "--out"]
    assert main([*command, str(tmp_path / "run"), "--resume"]) == 0
    assert main([*command, str(tmp_path / "whole")]) == 0
    last = open_run(tmp_path / "run").summary
    assert last is not None
    assert (last["resumed"], last["rounds_completed"]) == (1, rounds)
    assert lasting(tmp_path / "run") == lasting(tmp_path / "whole")


def test_a_finished_run_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, a message, and no file touched."""
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    run(tmp_path / "run", "learning=none")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()}
    options = ["--set", "learning=none", "--out", str(tmp_path / "run"), "--resume"]
    assert main(["run", str(path), *options]) == 0
    assert "has finished; nothing is left to do" in capsys.readouterr().err
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()} == before


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_a_run_that_begins_anew_is_told(tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also when quiet: the folder may be mistyped. Standard output stays clean."""
    command = ["run", "tiny", "--set", "learning=none", "--out", str(tmp_path / "run"), option]
    assert main([*command, "--resume"]) == 0
    told = capsys.readouterr()
    assert told.err == "nothing to resume; the run begins\n"
    assert "resume; " not in told.out
    assert main([*command, "--resume"]) == 0
    assert capsys.readouterr().err == "", "what was found and goes on as asked is not told when quiet"


def test_another_scenario_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first key that differs is named; exit code 2; the folder stays as it was."""
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    run(tmp_path / "run", "learning=none", stop_after=1)
    options = ["--set", "learning=none", "--out", str(tmp_path / "run"), "--resume"]
    assert main(["run", str(path), *options, "--set", "protocol.exchange_with=2", "--set", "rounds=5"]) == 2
    assert "rounds = 5: the run in" in capsys.readouterr().err
    assert main(["run", str(path), *options, "--set", "protocol.exchange_with=2"]) == 2
    assert "protocol.exchange_with = 2: the run in" in capsys.readouterr().err
    assert main(["run", str(path), *options]) == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(UserError, match="holds no run to resume"):
        run(tmp_path / "other", resume=True)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    """One changed byte, wherever it is, a part cut off, or another format: a message, never a wrong result."""
    run(tmp_path / "run", stop_after=2)
    path = tmp_path / "run" / FILE
    good = path.read_bytes()
    for place in np.linspace(0, len(good) - 1, 60).astype(int).tolist():
        path.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        with pytest.raises(UserError, match=r"--resume = .*state.safetensors: (is damaged|has format)"):
            run(tmp_path / "run", resume=True)
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(UserError, match="is damaged"):
        run(tmp_path / "run", resume=True)
    path.write_bytes(good.replace(b'{\\"format\\": 1', b'{\\"format\\": 0'))
    with pytest.raises(UserError, match=r"has format 0; this peerveil resumes format 1; use the version that"):
        run(tmp_path / "run", resume=True)
    path.write_bytes(good)
    assert run(tmp_path / "run", resume=True)["rounds_completed"] == 4


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    """One of another scenario, or one whose events were others."""
    for name, seed in (("run", 3), ("other", 5)):
        run(tmp_path / name, f"seed={seed}", "learning=none", "availability=always", stop_after=2)
    mine, other = (read_checkpoint(tmp_path / name) for name in ("run", "other"))
    assert mine is not None
    assert other is not None
    write_checkpoint(tmp_path / "run", other)
    with pytest.raises(UserError, match="belongs to another scenario or plug-in"):
        run(tmp_path / "run", "learning=none", "availability=always", resume=True)
    chain = np.concatenate([mine.chain[:1], other.chain[1:]])
    write_checkpoint(tmp_path / "run", Checkpoint(scenario_sha256=mine.scenario_sha256, round_number=2, chain=chain))
    with pytest.raises(UserError, match=r"replay differs from the interrupted run in round 2: other version"):
        run(tmp_path / "run", "learning=none", "availability=always", resume=True)


def test_a_run_that_still_goes_is_not_resumed(tmp_path: Path) -> None:
    """Two processes never write to one folder."""
    told: list[str] = []

    def meddle(row: Mapping[str, Any]) -> None:
        try:
            run(tmp_path / "run", "learning=none", resume=True)
        except UserError as error:
            told.append(str(error))

    run_scenario(scenario("learning=none", "rounds=1"), tmp_path / "run", listeners=[meddle])
    assert len(told) == 1
    told.clear()

    def resume_the_same(row: Mapping[str, Any]) -> None:
        with pytest.raises(UserError, match="another process is writing to it"):
            run(tmp_path / "two", "learning=none", resume=True)

    run_scenario(scenario("learning=none"), tmp_path / "two", listeners=[resume_the_same])


def test_no_key_seals_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of a run, or of its resumed parts, has sealed two messages of one name."""
    sealed: list[tuple[bytes, int, int, bytes]] = []
    claim = KeyPair.claim

    def note(self: KeyPair, code: int, sequence: int, receiver: bytes = b"") -> None:
        sealed.append((self.public, code, sequence, receiver))
        claim(self, code, sequence, receiver)

    monkeypatch.setattr(KeyPair, "claim", note)
    run(tmp_path / "run", stop_after=2)
    first = len(sealed)
    run(tmp_path / "run", stop_after=3, resume=True)
    run(tmp_path / "run", resume=True)
    assert len(sealed) > 2 * first
    assert len(set(sealed)) == len(sealed)


def test_a_run_that_had_hardly_begun(tmp_path: Path) -> None:
    """Killed before its scenario was written, or before there was a folder, it simply begins."""
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / "checkpoint" / "lock").touch()
    for name in ("run", "new"):
        assert "resumed" not in run(tmp_path / name, "learning=none", resume=True)
    assert lasting(tmp_path / "run") == lasting(tmp_path / "new")


def test_an_interrupt_of_the_replay_loses_nothing(tmp_path: Path) -> None:
    """Not even the parts: the folder still opens with all rounds that had ended."""
    run(tmp_path / "run", "learning=none", stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", "learning=none", stop_after=1, resume=True)
    opened = open_run(tmp_path / "run")
    assert [row["round"] for row in opened.log.rounds] == [1, 2, 3]
    assert run(tmp_path / "run", "learning=none", resume=True)["resumed"] == 2


def test_the_newest_unfinished_run_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `--out`: seeds that are done stay, the interrupted one goes on, one that never began begins."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.yaml"
    calm = ("learning=none", "availability=always", "faults=[]")
    path.write_text(dump_scenario(scenario(*calm)), encoding="utf-8")
    run_scenario(scenario(*calm), None)
    with monkeypatch.context() as patch:
        patch.setattr(Endpoint, "enter", _interrupt)
        assert main(["run", str(path), "--seed", "5", "--quiet"]) == 130
    run_scenario(scenario(*calm, "seed=4"), None, listeners=[Stop(2)])
    assert main(["run", str(path), "--seeds", "4", "--resume", "--quiet"]) == 0
    assert files(tmp_path / "runs") == {"resumed-3", "resumed-4", "resumed-5", "resumed-6"}
    summaries = [open_run(tmp_path / "runs" / f"resumed-{seed}").summary or {} for seed in (3, 4, 5, 6)]
    assert [summary.get("resumed") for summary in summaries] == [None, 1, 1, None]
    assert all(summary["stopped_because"] != "interrupted" for summary in summaries)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


WEIGHED = ("aggregate={weights: loss_and_records, step_size: 0.8, noise: {multiplier: 0.05, on: sum}}",)
FAULTS = st.sampled_from(
    [
        "{kind: corrupt, probability: 0.2}",
        "{kind: duplicate, probability: 0.2}",
        "{kind: reorder, probability: 0.3}",
        "{kind: slow, fraction: 0.4, factor: 8}",
        "{kind: crash, who: 0-2, start: 12 s, lasts: 15 s}",
        "{kind: crash, fraction: 0.4, round: 2, phase: train, lasts: 10 s}",
        "{kind: crash, who: proxy, start: 20 s, lasts: 5 s}",
        "{kind: partition, between: [0-3, 4-5], start: 10 s, end: 40 s}",
        "{kind: intruder, every: 1 s}",
    ]
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    protocol=st.sampled_from(["", LEADER, "protocol={kind: central, train_per_round: 5, deadline: 12 s}"]),
    faults=st.lists(FAULTS, max_size=3, unique=True),
    sealed=st.sampled_from(["true", "sizes", "false"]),
    seed=st.integers(0, 10**6),
    stop_after=st.integers(1, 3),
    objective=OBJECTIVES,
    parts=st.sampled_from([(), ("schedule={kind: crd, beta: 1, driven_by: {kind: noisy_losses}}",), WEIGHED]),
)
def test_any_run_goes_on(
    tmp_path_factory: pytest.TempPathFactory,
    protocol: str,
    faults: list[str],
    sealed: str,
    seed: int,
    stop_after: int,
    objective: str,
    parts: tuple[str, ...],
) -> None:
    """Whatever goes wrong in it, wherever it was interrupted."""
    folder = tmp_path_factory.mktemp("runs")
    told = [f"faults=[{', '.join(faults)}]", f"anonymity.sealed={sealed}", f"seed={seed}", "rounds=3", "clients=6"]
    told += [protocol] if protocol else ["protocol.train_per_round=5"]
    told += [f"objective={objective}", *parts]
    run(folder / "whole", *told)
    run(folder / "run", *told, stop_after=stop_after)
    run(folder / "run", *told, resume=True)
    assert lasting(folder / "run") == lasting(folder / "whole")
