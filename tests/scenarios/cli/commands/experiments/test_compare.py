"""A few alternatives side by side, and the two sentences that they end with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2p.log.log import Log
from scenarios.cli.commands.experiments.compare import split_values
from scenarios.cli.main import main
from scenarios.metrics.communication.per_round_traffic import traffic_per_round
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.communication.update_receivers import UpdateReceivers, update_receivers
from scenarios.metrics.decision import decide

SMALL = ("--set", "rounds=2", "--set", "learning=none", "--set", "model={kind: bytes, size: 100 kB}")


def summary(
    up: float, worst: float, seconds: float, accuracy: float | None, epsilon: Any, lost: int = 0
) -> dict[str, Any]:
    """The figures that a decision reads."""
    way = {"median": up, "worst": worst, "worst_is": {"node": 3, "round": 2, "role": "leader"}}
    head = {
        "per_round": {"up": way, "down": way, "seconds": seconds},
        "rounds_lost": lost,
        "accuracy": {"collected": accuracy},
        "epsilon": {"rigorous_local": epsilon},
    }
    return {"headline": head, "rounds_completed": 4, "diagnosis": [{"problem": "slow", "cure": "wait"}]}


def test_each_alternative_is_taken_for_what_it_is_best_in() -> None:
    """Cheap against accurate; what decides is the figure that differs by the largest ratio."""
    found = decide({"cheap": [summary(1e3, 1e6, 10, 0.7, 5)], "good": [summary(9e3, 1.1e6, 10, 0.8, 5)]})
    assert found.take == (
        "Take cheap for the fewest bytes up for most users, the lightest worst upload, the fewest bytes down and the "
        "lightest worst download; good for the best accuracy."
    )
    assert found.because == "What decides is bytes up, a user and round: 1 kB with cheap, 9 kB with good."
    assert ("rounds lost", "0", "0") in found.rows


def test_the_worst_user_is_named() -> None:
    """Who pays, as what, in which round."""
    found = decide({"a": [summary(1e3, 1e6, 10, 0.7, 5)], "b": [summary(1e3, 2e4, 10, 0.7, 5)]})
    assert (
        "What decides is the worst user's bytes up in a round: 1 MB (client 3, leader of round 2) with a"
        in found.because
    )


def test_a_finite_epsilon_decides_against_an_infinite_one() -> None:
    """`inf` as a string, as summaries have it."""
    found = decide({"a": [summary(1e3, 1e6, 10, 0.7, "inf")], "b": [summary(1e3, 1e6, 10, 0.7, 8.0)]})
    assert found.take.startswith("Take b for the strongest proof against those who receive updates; in no figure")
    assert found.because == "What decides is epsilon, receivers of updates: inf with a, 8 with b."


def test_an_epsilon_too_large_to_protect_is_no_reason() -> None:
    """Neither 7e4 nor 7e5 keeps a secret: the smaller one is not recommended, and does not decide."""
    found = decide({"a": [summary(1e3, 1e6, 10, 0.7, 7e4)], "b": [summary(1e3, 1e6, 10, 0.7, 7e5)]})
    assert found.take == "Take a or b: no figure tells them apart."
    assert found.because.startswith("Nothing decides it")
    assert ("epsilon, receivers of updates", "7e4", "7e5") in found.rows


def test_two_may_be_the_best() -> None:
    """Leader and server end with the same model: both are taken for it, and it decides before the bytes do."""
    found = decide(
        {
            "gossip": [summary(9e3, 1e5, 10, 0.2, 5)],
            "leader": [summary(1e3, 1e6, 10, 0.6, 5)],
            "server": [summary(1e3, 1e3, 10, 0.6, 5)],
        }
    )
    assert "leader or server for the fewest bytes up for most users" in found.take
    assert "the best accuracy" in found.take.split("leader or server for ")[1]
    assert found.because.startswith(
        "What decides is accuracy: 0.200 with gossip, 0.600 with leader, 0.600 with server;"
    )
    assert "; then the worst user's bytes up in a round: 100 kB" in found.because


def test_whom_users_must_trust() -> None:
    """Told by who got updates; a proof that means something is not called nothing."""
    runs = {
        "gossip": [summary(1e3, 1e6, 10, 0.7, 3.0)],
        "leader": [summary(1e3, 1e6, 10, 0.7, 7e5)],
        "server": [summary(1e3, 1e6, 10, 0.7, 7e5)],
    }
    receivers = {
        "gossip": UpdateReceivers(10.0, 0.25, 2, "peer"),
        "leader": UpdateReceivers(1.0, 0.4, 5, "leader"),
        "server": UpdateReceivers(1.0, 1.0, 63, "server"),
    }
    assert decide(runs, receivers).trust == (
        "Users must trust: with gossip, the peers they send to (10 get each update; client 2 got 25% of all); with "
        "leader, each round's leader, a member that gets all its updates (client 5 got 40% of all); with server, the "
        "server, which gets every update. Nothing useful is proved against them with leader and server: they can read "
        "what an update tells. The proxy knows who is who in any case."
    )
    assert decide(runs).trust == ""
    proved = {"leader": [summary(1e3, 1e6, 10, 0.7, 2.0)], "server": [summary(1e3, 1e6, 10, 0.7, 2.0)]}
    told = decide(proved, {name: receivers[name] for name in proved}).trust
    assert told.endswith("gets every update. The proxy knows who is who in any case.")


def test_receivers_by_hand(add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]]) -> None:
    """Client 0's update reaches 1 and 2, that of client 1 reaches 2 by two tries; what is lost reaches no one."""
    log = Log(rounds=[round_record(1, 0.0, 1.0)])
    assert update_receivers(log, Roles(3)) is None
    for sender, receiver, outcome in ((0, 1, ""), (0, 2, ""), (1, 2, ""), (1, 2, "rejected"), (2, 0, "lost")):
        more = {"outcome": outcome, "reason": "random" if outcome == "lost" else "replay"} if outcome else {}
        add_message(log, round=1, sender=sender, receiver=receiver, size_bytes=9, **more)
    found = update_receivers(log, Roles(3))
    assert found == UpdateReceivers(each=1.5, most_share=1.0, most=2, role="peer")
    add_message(log, round=1, sender=2, receiver=6, size_bytes=9)
    assert update_receivers(log, Roles(3)) == UpdateReceivers(each=1.0, most_share=2 / 3, most=2, role="peer")


def test_one_that_loses_its_rounds_is_not_taken() -> None:
    """However cheap it is."""
    found = decide({"a": [summary(1, 1, 1, 0.7, 5, lost=3)], "b": [summary(1e3, 1e6, 10, 0.7, 5)]})
    assert found.take.startswith("Take b: no figure tells them apart; not a, which lost its rounds.")


def test_equals_and_missing_figures() -> None:
    """Within two per cent is equal; a figure that one lacks decides nothing."""
    found = decide({"a": [summary(1e3, 1e6, 10, None, 5)], "b": [summary(1.01e3, 1e6, 10, 0.5, 5)]})
    assert found.take == "Take a or b: no figure tells them apart."
    assert found.because == "Nothing decides it: they cost and give the same."


def test_figures_over_seeds_are_means() -> None:
    """Of a run without the figure there is no mean."""
    runs = [summary(1e3, 1e6, 10, 0.7, 5), summary(3e3, 1e6, 10, None, 5)]
    found = decide({"a": runs, "b": runs})
    assert ("bytes up, a user and round", "2 kB", "2 kB") in found.rows
    assert not [row for row in found.rows if row[0] == "accuracy"]


def test_traffic_per_round_by_hand(
    add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]]
) -> None:
    """Client 0 sends 100 in round 1 and 300 in round 2; set-up does not count; a lost message arrives nowhere."""
    log = Log(rounds=[round_record(1, 0.0, 1.0), round_record(2, 1.0, 2.0, leader=0)])
    add_message(log, round=0, sender=0, receiver=1, size_bytes=999)
    add_message(log, round=1, sender=0, receiver=1, size_bytes=100)
    add_message(log, round=2, sender=0, receiver=1, size_bytes=200)
    add_message(log, round=2, sender=0, receiver=2, size_bytes=100, outcome="lost", reason="random")
    found = traffic_per_round(log, 3)
    assert found["up"] == {"median": 0.0, "worst": 300, "worst_is": {"node": 0, "round": 2, "role": "leader"}}
    assert found["down"] == {"median": 0.0, "worst": 200, "worst_is": {"node": 1, "round": 2, "role": "member"}}


@pytest.mark.parametrize("seed", range(5))
def test_traffic_per_round_by_brute_force(random_log: Callable[..., Log], seed: int) -> None:
    """Counted message by message."""
    log = random_log(seed)
    rounds = [record["round"] for record in log.rounds]
    sums = np.zeros((6, max(rounds) + 1), dtype=np.int64)
    table = log.messages
    for row in range(len(table)):
        if table["round"][row] in rounds and table["sender"][row] < 6:
            sums[table["sender"][row], table["round"][row]] += table["size_bytes"][row]
    found = traffic_per_round(log, 6)["up"]
    assert found["worst"] == sums.max()
    assert found["median"] == np.median(sums.sum(axis=1)) / len(rounds)


def test_values_are_split_outside_of_brackets() -> None:
    """A value may be a mapping or a list."""
    assert split_values("{kind: gossip, exchange_with: 5},central, [1, 2]") == [
        "{kind: gossip, exchange_with: 5}",
        "central",
        "[1, 2]",
    ]


@pytest.mark.slow
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Three protocols from a scenario of one: a table, where the runs are, and two sentences at the end."""
    monkeypatch.setenv("COLUMNS", "100")
    out = tmp_path / "out"
    words = ["compare", "leader-plain", "--protocols", "gossip,rotating_leader,central", *SMALL, "--out", str(out)]
    assert main([*words, "--set", "clients=12", "--set", "protocol.train_per_round=8"]) == 0
    shown = capsys.readouterr()
    assert "gossip: each member exchanges with 7 others" in shown.err
    lines = [line for line in shown.out.splitlines() if line.strip()]
    trust = shown.out.partition("Users must trust: ")[2].replace("\n", " ")
    assert trust.startswith("with gossip, the peers they send to (7 get each update; client ")
    assert "with rotating_leader, each round's leader" in trust
    assert "with central, the server, which gets every update." in trust
    assert lines.index(next(line for line in lines if line.startswith("Take "))) > len(lines) - 9
    assert any(line.startswith("Take ") for line in lines)
    assert "What decides is" in shown.out
    assert sorted(path.name for path in out.iterdir()) == ["central", "gossip", "rotating_leader"]
    # Equal worlds: one seed, and the same clients train in each.
    seeds = {json.loads((path / "summary.json").read_text())["seed"] for path in out.iterdir()}
    assert len(seeds) == 1


@pytest.mark.slow
def test_another_axis_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Losses of nothing and of a third, as JSON."""
    words = ["compare", "tiny", "--over", "network.loss=0,0.3", *SMALL, "--out", str(tmp_path / "out"), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["axis"], found["alternatives"]) == ("network.loss", ["0", "0.3"])
    assert len(found["decision"]) == 2
    assert found["runs"]["0.3"]["messages"]["lost"] > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "needs one axis"),
        (["--protocols", "gossip"], "--protocols = gossip: must be two protocols or more"),
        (["--over", "network.loss=0"], "--over = network.loss=0: must be a key with two values or more"),
        (["--protocols", "gossip,gossip"], "at most 8 different values"),
        (["--over", "network.loss=0,2"], "network.loss = 2: must be <= 1"),
        (["--protocols", "gossip,leader"], "did you mean `rotating_leader`?"),
    ],
)
def test_wrong_axes(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One message, exit code 2."""
    assert main(["compare", "tiny", *words]) == 2
    assert told in capsys.readouterr().err
