"""A crash on the page: in every round that it falls into, at its node's row, with its label."""

from __future__ import annotations

import base64
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2p.log import records
from scenarios.loading.load import load_scenario
from scenarios.report.data.node_data import dropout_data, load_by_round
from scenarios.report.data.outages import down_rows, events_of_rounds, happened_s, outages
from scenarios.report.data.run_data import RunData, read_run_data
from scenarios.report.data.timeline_data import picture_data
from scenarios.running.run import run_scenario


def made(folder: Path, name: str, *changes: str) -> RunData:
    """A run without learning, read from its folder."""
    run_scenario(load_scenario(name, ["learning=none", *changes]), folder)
    return read_run_data(folder)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """A leader that dies for good in round 3 of 5."""
    return made(tmp_path_factory.mktemp("crash") / "run", "leader-crash", "rounds=5")


@pytest.fixture(scope="module")
def churned(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """Clients that come and go by themselves."""
    churn = "availability={kind: churn, mean_up: 20 s, mean_down: 5 s}"
    return made(
        tmp_path_factory.mktemp("churn") / "run", "leader-plain", "rounds=4", churn, "model={kind: bytes, size: 1 MB}"
    )


def rounds_with_outages(pictures: dict[str, Any]) -> set[int]:
    """The rounds in which the page draws a node as down."""
    packed = pictures["spans"]
    kind = {"u1": np.uint8, "i1": np.int8}[packed["name"]["type"]]
    names = np.frombuffer(base64.b64decode(packed["name"]["data"]), dtype=kind)
    rows = zip(packed["rounds"], pairwise(packed["starts"]), strict=True)
    return {number for number, (low, high) in rows if (names[low:high] == records.SPAN["down"]).any()}


def test_an_outage_makes_no_round_of_its_own(crashed: RunData) -> None:
    """The log names a sixth round for it; the picture has it in rounds 3, 4 and 5, cut to each."""
    rounds = {int(record["round"]): record for record in crashed.log.rounds}
    found = down_rows(crashed)
    (outage,) = [one for one in outages(crashed) if one.crashed]
    mine = found["node"] == outage.node
    assert sorted(found["round"][mine].tolist()) == [3, 4, 5]
    for number, start_s, end_s in zip(*(found[name][mine] for name in ("round", "start_s", "end_s")), strict=True):
        assert rounds[int(number)]["start_s"] <= start_s < end_s <= rounds[int(number)]["end_s"]
    # The collection after the last round has spans of its own, and no node is down in it.
    assert rounds_with_outages(picture_data(crashed)) == {3, 4, 5}


def test_labels_name_the_leader_that_crashes_and_the_one_elected(crashed: RunData) -> None:
    """In round 3, in order of time."""
    (outage,) = [one for one in outages(crashed) if one.crashed]
    leader = next(record["leader"] for record in crashed.log.rounds if record["round"] == 3)
    events = events_of_rounds(crashed)
    assert [(number, text) for number, _, _, text in events] == [
        (3, f"leader {outage.node} crashes"),
        (3, f"{leader} elected"),
    ]
    assert outage.start_s == events[0][2] < events[1][2]


def test_a_dropout_stands_where_it_happened(crashed: RunData, churned: RunData) -> None:
    """A node that goes down drops out then, not when the round closes."""
    for data in (crashed, churned):
        table, at_s = data.log.dropouts, happened_s(data)
        starts = {(one.node, one.start_s) for one in outages(data)}
        gone = np.flatnonzero(
            (table["what"] == records.WHAT["dropout"]) & (table["reason"] == records.DROPOUT_REASON["crashed"])
        )
        assert len(gone)
        moved = [row for row in gone.tolist() if (int(table["node"][row]), float(at_s[row])) in starts]
        assert moved
        assert all(at_s[row] < table["at_s"][row] for row in moved)
        assert (at_s <= table["at_s"].max()).all()


def test_churn_is_going_offline_and_a_fault_is_a_crash(crashed: RunData, churned: RunData) -> None:
    """Words of the page; the tables keep their own."""
    assert "went offline" in dropout_data(churned)["counts"]["dropout"]
    assert "crashed" not in dropout_data(churned)["counts"]["dropout"]
    assert "crashed" in dropout_data(crashed)["counts"]["dropout"]
    assert not [one for one in outages(churned) if one.crashed]


def test_the_load_of_a_round_by_brute_force(churned: RunData) -> None:
    """What the busiest client sent, counted message by message."""
    table = churned.log.messages
    sums: dict[tuple[int, int], int] = {}
    for row in range(len(table)):
        key = int(table["round"][row]), int(table["sender"][row])
        if key[1] < churned.roles.clients:
            sums[key] = sums.get(key, 0) + int(table["size_bytes"][row])
    load: dict[str, Any] = load_by_round(churned.log, churned.roles.clients)
    for number, most, who in zip(load["round"], load["most"], load["who"], strict=True):
        assert most == max(size for (found, _), size in sums.items() if found == number) == sums[number, who]
