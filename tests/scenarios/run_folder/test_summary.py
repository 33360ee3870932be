"""Summaries: totals add up, the keys are there, and JSON can hold them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.log.log import Log
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.run_folder.json_text import plain, to_json
from scenarios.run_folder.summary import summarise

PROMISED = [
    *("headline", "format", "scenario", "seed", "rounds_completed", "stopped_because", "simulated_s", "wall_s"),
    *("accuracy", "messages", "bytes", "absences", "missing", "dropouts", "privacy", "linkability", "digest"),
    "events_depend_on_learning",
]


def _facts(scenario: SimpleNamespace, log: Log, **changes: Any) -> RunFacts:
    given_: dict[str, Any] = {
        "scenario": scenario,
        "log": log,
        "rounds_completed": 3,
        "stopped_because": "all rounds done",
        "simulated_s": np.float64(30.0),
        "wall_s": 1.5,
        "client_accuracy": np.array([0.5, 0.75], dtype=np.float32),
        "collected_accuracy": np.float32(0.75),
        "collected_loss": float("nan"),
        "privacy": {"published": {"epsilon": 8.0}, "rigorous": {"local": math.inf, "unit": "client"}},
        "linkability": {"address": 0.0, "content": 0.7, "chance": 0.01},
    }
    return RunFacts(**(given_ | changes))


def test_promised_keys(scenario: SimpleNamespace, random_log: Callable[..., Log]) -> None:
    """Every promised key is there, the headline first."""
    summary = summarise(_facts(scenario, random_log(1)))
    assert next(iter(summary)) == "headline"
    assert [key for key in PROMISED if key not in summary] == []
    assert summary["format"] == 1
    assert summary["accuracy"] == {"max": 0.75, "mean": 0.625, "min": 0.5}
    assert summary["absences"] == {"total": 3, "by_reason": {"budget": 0, "offline": 3, "declined": 0}}
    assert summary["missing"]["by_reason"]["late"] == 3
    assert summary["nodes"]["proxy"] == 6
    assert set(summary["digest"]) == {"events", "learning"}


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_totals_add_up(scenario: SimpleNamespace, random_log: Callable[..., Log], seed: int) -> None:
    """Sent = delivered + lost + rejected + in_flight = the sum by kind, in messages and in bytes."""
    log = random_log(seed)
    summary = summarise(_facts(scenario, log))
    for counts, whole in (("messages", len(log.messages)), ("bytes", log.messages["size_bytes"].sum())):
        kept = summary[counts]
        assert kept["sent"] == whole == sum(kept["by_kind"].values())
        assert kept["sent"] == kept["delivered"] + kept["lost"] + kept["rejected"] + kept["in_flight"]
        assert kept["lost"] == sum(kept["lost_by_reason"].values())
        assert kept["rejected"] == sum(kept["rejected_by_reason"].values())
    assert summary["bytes"]["wasted"] == summary["headline"]["wasted_bytes"] <= summary["bytes"]["sent"]
    for what in ("absences", "missing", "dropouts"):
        assert summary[what]["total"] == sum(summary[what]["by_reason"].values())


def test_waste_is_what_left_before_a_loss_and_what_came_too_late(
    scenario: SimpleNamespace, add_message: Callable[..., int]
) -> None:
    """Control messages are never late; rejected and unfinished messages are counted apart."""
    log = Log()
    add_message(log, size_bytes=1000, outcome="lost", reason="random", left_bytes=300, used=False)
    add_message(log, size_bytes=500, used=False)
    add_message(log, size_bytes=50, kind="control", used=False)
    add_message(log, size_bytes=70, outcome="rejected", reason="replay", used=False)
    add_message(log, size_bytes=20, outcome="in_flight", used=False)
    assert summarise(_facts(scenario, log))["bytes"]["wasted"] == 800


def test_json_has_no_nan(scenario: SimpleNamespace, random_log: Callable[..., Log]) -> None:
    """Infinity is a string, what is not a number is null, numpy is gone, order stays."""
    facts = _facts(scenario, random_log(2), extra={"own": [np.int64(3), (np.nan,), {1: -np.inf}]})
    text = to_json(summarise(facts))

    def refuse(word: str) -> None:
        raise AssertionError(word)

    content = json.loads(text, parse_constant=refuse)
    assert content["privacy"]["rigorous"]["local"] == "inf"
    assert content["headline"]["epsilon"]["rigorous_worst_peer"] == "inf"
    assert content["collected"]["loss"] is None
    assert content["own"] == [3, [None], {"1": "-inf"}]
    assert to_json(content) == text


def test_without_learning(scenario: SimpleNamespace) -> None:
    """A run that learns nothing has null figures, not zeros."""
    log = Log()
    none = {"client_accuracy": None, "collected_accuracy": None, "collected_loss": None}
    summary = plain(summarise(_facts(scenario, log, **none)))
    assert summary["accuracy"] == {"max": None, "mean": None, "min": None}
    assert summary["headline"]["to_target"]["bytes"] is None


def test_accuracy_of_the_last_evaluated_round(
    scenario: SimpleNamespace, round_record: Callable[..., dict[str, Any]]
) -> None:
    """Without a final evaluation the last one counts."""
    none = {f"accuracy_after_{what}": None for what in ("max", "mean", "min")}
    log = Log(rounds=[round_record(1, 0, 1), round_record(2, 1, 2, **none)])
    summary = summarise(_facts(scenario, log, client_accuracy=None))
    assert summary["accuracy"] == {"max": 0.8, "mean": 0.7, "min": 0.6}
