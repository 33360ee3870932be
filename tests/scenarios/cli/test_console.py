"""What is printed: plain, in 80 columns, with units."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.log.log import Log
from scenarios.cli.console import print_comparison, print_headline
from scenarios.metrics.comparison import compare, group, interval
from scenarios.metrics.headline.headline import TRANSPORT_ASSUMED
from scenarios.metrics.headline.number_format import (
    accuracy_text,
    bytes_text,
    count_text,
    epsilon_text,
    seconds_text,
    share_text,
)
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.run_folder.summary import summarise
from scenarios.running.progress import RoundDone, progress


@pytest.fixture(scope="session")
def summary(scenario: SimpleNamespace, random_log: Callable[..., Log]) -> Callable[..., dict[str, Any]]:
    """A summary of a run drawn by chance."""

    def make(name: str = "story", seed: int = 7, accuracy: float = 0.7, routing: str = "assumed") -> dict[str, Any]:
        facts = RunFacts(
            scenario=SimpleNamespace(**(vars(scenario) | {"name": name, "seed": seed})),
            log=random_log(seed),
            rounds_completed=3,
            stopped_because="all rounds done",
            simulated_s=30.0,
            wall_s=1.0,
            client_accuracy=np.array([accuracy]),
            collected_accuracy=accuracy,
            routing=routing,
            privacy={
                "published": {"epsilon": 8.0, "formula": "Theorem 8"},
                "rigorous": {"local": 7.6e8, "delta": 1e-5},
            },
            linkability={"address": 0.0, "content": 0.73, "chance": 0.014},
        )
        return summarise(facts)

    return make


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Paper of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    return io.StringIO()


def _lines(file: io.StringIO) -> list[str]:
    lines = file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "\x1b" not in file.getvalue()
    return lines


def test_headline(summary: Callable[..., dict[str, Any]], narrow: io.StringIO) -> None:
    """The final table tells accuracy, price, loss, privacy and what is assumed."""
    print_headline(summary(name="a [b] story"), narrow)
    lines = _lines(narrow)
    assert lines[0] == "a [b] story, seed 7: 3 of 3 rounds, all rounds done"
    text = " ".join(" ".join(lines).split())
    assert "0.700 collected model; clients 0.700 max, 0.700 mean, 0.700 min" in text
    assert "to accuracy 0.7 round 1, 10 s," in text
    assert "published 8; rigorous 7.6e8 receivers of updates (client level, delta 1e-05)" in text
    assert "is not a proven guarantee" in text
    assert "0% by address, 73% by content, 1.4% by chance" in text
    assert TRANSPORT_ASSUMED in text


def test_relayed_transport_is_not_called_assumed(summary: Callable[..., dict[str, Any]], narrow: io.StringIO) -> None:
    """The sentence stands only where it is true."""
    print_headline(summary(routing="relay"), narrow)
    assert TRANSPORT_ASSUMED not in narrow.getvalue()


def test_side_by_side(summary: Callable[..., dict[str, Any]], narrow: io.StringIO) -> None:
    """One seed: plain values, one column per scenario."""
    print_comparison([summary("one", accuracy=0.6), summary("two", accuracy=0.8)], narrow)
    lines = _lines(narrow)
    assert lines[0].split() == ["one", "two"]
    accuracy = next(line for line in lines if "collected" in line)
    assert accuracy.split()[-2:] == ["0.600", "0.800"]
    assert "±" not in narrow.getvalue().replace("mean ± 95%", "")
    assert lines[-1] == TRANSPORT_ASSUMED


def test_over_seeds(summary: Callable[..., dict[str, Any]], narrow: io.StringIO) -> None:
    """Several seeds: mean and interval; differences are paired, so that common luck cancels."""
    runs = [
        summary(name, seed, 0.1 * seed + better) for name, better in (("a", 0.0), ("b", 0.05)) for seed in (1, 2, 3)
    ]
    print_comparison(runs, narrow)
    text = "\n".join(_lines(narrow))
    assert "0.200 (0.000 to 0.448)" in text
    assert "b minus a, paired on 3 seeds" in text
    assert "0.050 ± 0.000  *" in text


def test_many_scenarios_still_fit(summary: Callable[..., dict[str, Any]], narrow: io.StringIO) -> None:
    """More columns than fit are told in several tables, and each scenario stands in one of them."""
    print_comparison([summary(f"scenario-{i}", seed) for i in range(5) for seed in (1, 2)], narrow)
    heads = " ".join(line for line in _lines(narrow) if "minus" not in line)
    assert all(f"scenario-{i}" in heads for i in range(5))


def test_paired_differences_need_common_seeds(summary: Callable[..., dict[str, Any]]) -> None:
    """Runs on different seeds are not subtracted; the same scenario and seed twice are two columns."""
    compared = compare([summary("a", 1), summary("b", 2)])
    assert compared["differences"] == []
    assert list(group([summary("a", 1), summary("a", 1), summary("a", 2)])) == ["a", "a (2)"]


def test_interval_by_hand() -> None:
    """Student's t; a figure that one seed lacks has no mean."""
    told = interval([1.0, 2.0, 3.0])
    assert told["mean"] == 2
    assert told["high"] - 2 == pytest.approx(4.302652729911275 / 3**0.5)
    assert interval([1.0, None]) == {"mean": None, "low": None, "high": None, "n": 1, "of": 2}
    assert interval([float("inf"), 1.0])["mean"] == float("inf")
    assert interval([5.0])["low"] is None


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_bar(round_record: Callable[..., dict[str, Any]]) -> None:
    """On a terminal the bar tells time, accuracy, bytes, dropouts and epsilon."""
    terminal = _Terminal()
    with progress(2, quiet=False, file=terminal) as bar:
        bar.round(RoundDone(round_record(1, 0.0, 75.0), 12_300_000, dropouts=2, epsilon=1.5))
    assert "1/2" in terminal.getvalue()
    assert "75 s simulated" in terminal.getvalue()
    for quiet, file in ((True, _Terminal()), (False, io.StringIO())):
        with progress(2, quiet=quiet, file=file) as silent:
            silent.round(RoundDone(round_record(1, 0.0, 75.0), 1))
        assert file.getvalue() == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((bytes_text(n), s) for n, s in ((0, "0 B"), (999, "999 B"), (12_300_000, "12.3 MB"), (999_700, "1 MB"))),
        *((bytes_text(n), s) for n, s in ((None, "-"), (-1500, "-1.5 kB"), (5e18, "5000 PB"))),
        *((seconds_text(n), s) for n, s in ((0, "0 s"), (0.0351, "35.1 ms"), (4.2, "4.2 s"), (125.0, "2 min 5 s"))),
        *((seconds_text(n), s) for n, s in ((3600, "1 h"), (12_000, "3 h 20 min"), (187_200, "2 d 4 h"), (-2, "-2 s"))),
        *((share_text(n), s) for n, s in ((0.634, "63%"), (0.014, "1.4%"), (0, "0%"), (None, "-"))),
        *(
            (epsilon_text(n), s)
            for n, s in ((8.0, "8"), (7.6e8, "7.6e8"), ("inf", "inf"), (12345, "1.2e4"), (None, "-"))
        ),
        *((count_text(n), s) for n, s in ((2000, "2,000"), (1.5, "1.5"), (None, "-"))),
        (accuracy_text(0.71349), "0.713"),
    ],
)
def test_amounts(text: str, expected: str) -> None:
    """Three digits that count, and a unit."""
    assert text == expected


@given(st.floats(0, 1e12))
def test_every_time_has_a_unit(time_s: float) -> None:
    """No time is printed without a unit or with an exponent."""
    assert "e" not in seconds_text(time_s) or time_s < 1e-5
    assert seconds_text(time_s).split()[-1] in {"ms", "s", "min", "h", "d"}
