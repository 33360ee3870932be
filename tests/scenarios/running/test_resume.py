"""A run that was interrupted or killed goes on, and its results are those of one that was not."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privacy.sealing.keys import KeyPair
from scenarios.cli.main import main
from scenarios.loading.load import dump_scenario
from scenarios.run_folder.reader import open_run
from scenarios.running.checkpoint import FILE
from tests.random_worlds import OBJECTIVES
from tests.scenarios.running.resumed_runs import (
    CRASHES,
    LEADER,
    LONG,
    MODELS,
    end_in_round,
    files,
    lasting,
    run,
    scenario,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_round_is_written")]
OBJECTIVE = ("objective={kind: fednore_both, lam: 0.3}", "training.batch_size=all")
DISCOUNTED = ("rounds=8", "schedule={kind: crd, beta: 0.9}")
NOISY = ("rounds=8", "schedule={kind: crd, beta: 0.9, driven_by: {kind: noisy_losses, sigma: 5}}")
SERVER = "protocol={kind: central, train_per_round: 5, deadline: 12 s}"
MOMENTUM = (SERVER, "aggregate={weights: loss_and_records, momentum: 0.5, step_size: 0.9, noise: {sigma: 0.05}}")
MEMORY = ("privacy=none", "update=[clip_own_median, {kind: gaussian, multiplier: 0.5, per_record: true}]")
MASKED = ("privacy=none", "update=[{kind: mask, rate: 0.4, by: last_aggregate}, clip, {kind: snlc, sigma: 0.1}]")
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


def test_an_interrupt_of_the_replay_loses_nothing(tmp_path: Path) -> None:
    """Not even the parts: the folder still opens with all rounds that had ended."""
    run(tmp_path / "run", "learning=none", stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", "learning=none", stop_after=1, resume=True)
    opened = open_run(tmp_path / "run")
    assert [row["round"] for row in opened.log.rounds] == [1, 2, 3]
    assert run(tmp_path / "run", "learning=none", resume=True)["resumed"] == 2


WEIGHED = ("aggregate={weights: loss_and_records, step_size: 0.8, noise: {multiplier: 0.05, on: sum}}",)
STAGED = (
    MEMORY,
    ("privacy=none", "update=[{kind: top_k, rate: 0.3}, clip, {kind: asgp, epsilon: 1}]", "anonymity.rehash=chained"),
    ("privacy=none", "update=[clip, {kind: binomial, rotate: true}]", "schedule={kind: budgets, local: {sigma: 2}}"),
    ("privacy=none", "update=[{kind: clip, norm: [1, 2, 3, 1, 2, 3]}, snlc]", "aggregate.weights=loss_and_records"),
)
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
    parts=st.sampled_from([(), ("schedule={kind: crd, beta: 1, driven_by: {kind: noisy_losses}}",), WEIGHED, *STAGED]),
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
