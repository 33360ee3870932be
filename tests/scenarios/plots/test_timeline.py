"""Traces that viewers can open: slices nest, pairs match, arrows end, limits hold. And the pictures."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.config.errors import UserError
from p2p.log.log import Log
from scenarios.cli.commands.results.timeline import parse_numbers
from scenarios.cli.main import main
from scenarios.metrics.communication.roles import Roles
from scenarios.plots.trace.chrome_trace import chrome_trace, trace_text
from scenarios.plots.trace.transfers import bytes_in_flight
from scenarios.report.data.run_data import RunData
from scenarios.run_folder.reader import StoredRun


def _account(log: Log, clients: int = 6, faults: tuple[tuple[float, float, str, str], ...] = ()) -> RunData:
    summary = {"scenario": "story", "seed": 7, "headline": {}}
    return RunData(StoredRun(Path("run"), summary, "", {}), summary, log, Roles(clients), (), faults)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_slices_nest_and_pairs_match(random_log: Callable[..., Log], seed: int) -> None:
    """On every thread slices lie inside each other or apart; every `b` has its `e`, every `s` its `f`."""
    log = random_log(seed)
    log.span(0, 1, "send", 0.5, 20.0)
    log.span(0, 1, "aggregate", 0.2, 1.5)
    events = chrome_trace(_account(log))["traceEvents"]
    assert [event["ts"] for event in events if "ts" in event] == sorted(
        event["ts"] for event in events if "ts" in event
    )
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for slices in threads.values():
        for start, end in slices:
            assert not any(start < other_start < end < other_end for other_start, other_end in slices)
    for first, last in (("b", "e"), ("s", "f")):
        ids = [Counter((event["cat"], event["id"]) for event in events if event["ph"] == ph) for ph in (first, last)]
        assert ids[0] == ids[1]
        assert set(ids[0].values()) <= {1}


def test_every_arrow_holds_on_to_a_slice(random_log: Callable[..., Log]) -> None:
    """Both ends of a flow lie inside a slice of their thread, else viewers drop it."""
    events = chrome_trace(_account(random_log(4)))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    for event in (event for event in events if event["ph"] in "sf"):
        own = [one for one in slices if (one["pid"], one["tid"]) == (event["pid"], event["tid"])]
        assert any(one["ts"] <= event["ts"] <= one["ts"] + one["dur"] for one in own)


def test_the_trace_names_counts_and_marks(random_log: Callable[..., Log]) -> None:
    """Threads have names, counters accuracy and bytes, instants for dropouts and faults; JSON throughout."""
    trace = chrome_trace(_account(random_log(2), faults=((1.0, 2.0, "crash", "3"),)))
    parsed = json.loads(trace_text(trace))
    assert parsed["traceEvents"] == trace["traceEvents"]
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert {"client 0", "proxy", "rounds"} <= names
    assert {event["name"] for event in trace["traceEvents"] if event["ph"] == "C"} == {"accuracy", "bytes in flight"}
    marks = {event["name"] for event in trace["traceEvents"] if event["ph"] == "i"}
    assert {"dropout: late", "absence: offline", "fault begins: crash 3", "fault ends: crash 3"} <= marks


def test_limits_hold_and_are_told(random_log: Callable[..., Log]) -> None:
    """At most so many nodes and events, with a note; without limits everything."""
    run_data = _account(random_log(3, clients=40, messages=3000), clients=40)
    small = chrome_trace(run_data, most_tracks=10, most_events=800)
    nodes = {event["tid"] for event in small["traceEvents"] if event["ph"] == "X" and event["pid"] == 1}
    assert len(nodes) <= 10
    assert len([event for event in small["traceEvents"] if event["ph"] != "C"]) <= 800
    assert len(small["otherData"]["notes"]) == 2
    whole = chrome_trace(run_data, most_tracks=None, most_events=None)
    assert whole["otherData"]["notes"] == []
    chosen = chrome_trace(run_data, rounds=[2], nodes=np.array([1, 2]))
    assert {event["tid"] for event in chosen["traceEvents"] if event["ph"] == "X" and event["pid"] == 1} <= {1, 2}
    assert [event["name"] for event in chosen["traceEvents"] if event["pid"] == 2 and event["ph"] == "X"] == ["round 2"]


def test_bytes_in_flight_by_hand(add_message: Callable[..., int]) -> None:
    """Two overlapping messages: up, up, down, down to nothing."""
    log = Log()
    add_message(log, sent_s=0.0, arrived_s=2.0, size_bytes=100)
    add_message(log, sent_s=1.0, arrived_s=3.0, size_bytes=50)
    times_us, flying = bytes_in_flight(_account(log), None)
    assert times_us.tolist() == [0, 1_000_000, 2_000_000, 3_000_000]
    assert flying.tolist() == [100, 150, 50, 0]


def test_numbers_are_parsed() -> None:
    """Ranges and lists of what there is; nonsense and nothing are errors."""
    assert parse_numbers("--rounds", "1-3,9,7", list(range(1, 9))) == [1, 2, 3, 7]
    for text in ("", "a", "-1", "3-", "99", "1" * 30):
        with pytest.raises(UserError, match="--rounds"):
            parse_numbers("--rounds", text, [1, 2, 3])


@pytest.fixture
def folder(tmp_path: Path, random_log: Callable[..., Log], scenario: SimpleNamespace) -> Path:
    """A run folder on disk."""
    from scenarios.metrics.headline.run_facts import RunFacts
    from scenarios.run_folder.summary import summarise
    from scenarios.run_folder.writer import RunFolder

    log = random_log(6)
    facts: dict[str, Any] = {"scenario": scenario, "log": log, "rounds_completed": 3, "stopped_because": "done"}
    facts |= {"simulated_s": 30.0, "wall_s": 1.0, "privacy": {}, "linkability": {}}
    made = RunFolder.create(tmp_path / "run", "story", 7)
    made.begin("name: story\nclients: 6\n", {"format": 1})
    made.finish(log, summarise(RunFacts(**facts)))
    return made.path


@pytest.mark.slow
def test_pictures_are_written_and_repeatable(folder: Path, tmp_path: Path) -> None:
    """svg, png, pdf of both kinds; the same run gives the same bytes; another ending is refused."""
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    for command, option in (("topology", "--round"), ("timeline", "--rounds")):
        for ending, start in starts.items():
            first, second = tmp_path / f"1.{ending}", tmp_path / f"2.{ending}"
            for out in (first, second):
                assert main([command, str(folder), option, "2", "-o", str(out)]) == 0
            assert first.read_bytes().startswith(start)
            assert first.read_bytes() == second.read_bytes()
        assert main([command, str(folder), "-o", str(tmp_path / "x.gif")]) == 2
        assert main([command, str(folder), option, "99", "-o", str(tmp_path / "x.svg")]) == 2


def test_traces_are_written_plain_and_packed(folder: Path, tmp_path: Path) -> None:
    """`.json` and `.json.gz` hold the same."""
    for name in ("t.json", "t.json.gz"):
        assert main(["timeline", str(folder), "-o", str(tmp_path / name)]) == 0
    plain = (tmp_path / "t.json").read_bytes()
    assert gzip.decompress((tmp_path / "t.json.gz").read_bytes()) == plain
    assert json.loads(plain)["traceEvents"]
