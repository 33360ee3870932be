"""`peerveil flows` and `peerveil validate`: given flows in, arrivals out, and every kind of bad input."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.config.errors import UserError
from scenarios.cli import arguments
from scenarios.cli.commands.network_model import flows, validate
from scenarios.cli.commands.network_model.flows_input import parse_case

GOOD: dict[str, Any] = {
    "sharing": "fair",
    "nodes": [{"up": 10, "down": 99}, {"up": 1, "down": 99}],
    "latency_s": 0.5,
    "flows": [{"src": 0, "dst": 1, "bytes": 100, "start_s": 0}, {"src": 0, "dst": 1, "bytes": 50, "start_s": 0}],
}


def command(module: Any, *words: str) -> int:
    parser = argparse.ArgumentParser()
    getattr(arguments, module.__name__.rpartition(".")[2])(parser)
    code: int = module.run(parser.parse_args(words))
    return code


def problems(content: Any) -> list[str]:
    with pytest.raises(UserError) as caught:
        parse_case(content if isinstance(content, bytes) else json.dumps(content).encode(), "case.json")
    assert caught.value.source == "case.json"
    return caught.value.problems


@pytest.mark.parametrize(
    ("sharing", "arrived"), [("fair", [15.5, 10.5]), ("fifo", [10.5, 15.5]), ("ideal", [10.5, 5.5])]
)
def test_arrivals_in_the_order_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sharing: str, arrived: list[float]
) -> None:
    """One JSON object with one number per flow."""
    (tmp_path / "case.json").write_text(json.dumps(GOOD | {"sharing": sharing}))
    assert command(flows, str(tmp_path / "case.json")) == 0
    assert json.loads(capsys.readouterr().out) == {"arrived_s": arrived}


def test_latencies_by_pair_unlimited_links_and_a_grid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From standard input; the start at 0.3 waits for the grid of 1 s."""
    case = {
        "sharing": "fair",
        "grid_s": 1,
        "nodes": [{"up": 10, "down": "inf"}, {"up": "inf", "down": "inf"}],
        "latency_s": [[0, 3], [4, 0]],
        "flows": [{"src": 0, "dst": 1, "bytes": 20, "start_s": 0.3}, {"src": 1, "dst": 0, "bytes": 9}],
    }
    monkeypatch.setattr(sys, "stdin", argparse.Namespace(buffer=io.BytesIO(json.dumps(case).encode())))
    assert command(flows, "-") == 0
    assert json.loads(capsys.readouterr().out) == {"arrived_s": [6.0, 4.0]}


def test_no_flows_no_arrivals() -> None:
    """An empty list is a list."""
    assert parse_case(b'{"nodes": [], "flows": []}', "x").arrived_s().tolist() == []


def test_all_problems_are_told_at_once() -> None:
    """Rates, nodes, sizes, times, keys, sharing: each with its path, value and rule."""
    told = problems(
        {
            "sharing": "tcp",
            "nodes": [{"up": -1, "down": 5}, {"up": 5}, {"up": "fast", "down": True, "dwon": 1}],
            "latency_s": [[0, 1], [1, 0]],
            "grid_s": 0,
            "flows": [
                {"src": 7, "dst": 0, "bytes": 1, "start_s": -1},
                {"src": 0, "dst": 1.5, "bytes": -3, "start_s": 0},
                {"dst": 1, "bytes": None, "start_s": 0},
                "flow",
            ],
            "flow": [],
        }
    )
    assert told == [
        "flow: unknown key; did you mean `flows`?",
        "sharing = tcp: must be one of ideal, fifo, fair",
        "nodes.1.down: required key is missing; add `down`",
        "nodes.2.dwon: unknown key; did you mean `down`?",
        "nodes.0.up = -1: must be a number >= 0, or `inf`",
        "nodes.2.up = fast: must be a number >= 0, or `inf`",
        "nodes.2.down = true: must be a number >= 0, or `inf`",
        "latency_s = [[0, 1], [1, 0]]: must be a number, or 3 lists of 3 numbers, one for each pair of nodes",
        "flows.0.src = 7: unknown node; nodes are 0 to 2",
        "flows.0.start_s = -1: must be a number >= 0, and finite",
        "flows.1.dst = 1.5: unknown node; nodes are 0 to 2",
        "flows.1.bytes = -3: must be a number >= 0, and finite",
        "flows.2.src: required key is missing; add `src`",
        "flows.2.bytes = none: must be a number >= 0, and finite",
        "flows.3 = flow: must be an object with the keys src, dst, bytes, start_s",
        "grid_s = 0: is for `fair` sharing; leave it out",
        "grid_s = 0: must be > 0; leave it out to be exact",
    ]


def test_not_a_number_is_refused_wherever_it_stands() -> None:
    """NaN is no rate, latency, size or time; infinity is a rate only."""
    text = json.dumps(GOOD).replace("99", "NaN").replace("0.5", "NaN").replace("100", "Infinity")
    told = problems(text.encode())
    assert [line.split(":")[0] for line in told] == [
        "nodes.0.down = nan",
        "nodes.1.down = nan",
        "latency_s = nan",
        "flows.0.bytes = inf",
    ]


def test_bytes_need_bandwidth() -> None:
    """Zero at either end, with bytes to send, would wait for ever."""
    nodes = [{"up": 0, "down": 1}, {"up": 1, "down": 0}]
    assert problems(GOOD | {"nodes": nodes, "flows": GOOD["flows"][:1]}) == [
        "flows.0.bytes = 100.0: would never arrive, since nodes.0.up is 0; raise it, or send 0 bytes",
        "flows.0.bytes = 100.0: would never arrive, since nodes.1.down is 0; raise it, or send 0 bytes",
    ]
    empty = [{"src": 0, "dst": 1, "bytes": 0, "start_s": 0}]
    case = GOOD | {"nodes": nodes, "flows": empty}
    assert parse_case(json.dumps(case).encode(), "x").arrived_s().tolist() == [0.5]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"nodes": [\n  {"up": 1,}', "line 2 column 12: not JSON"),
        (b"", "line 1 column 1: not JSON"),
        (b'{\n "a": "\xff"}', "line 2 column 8: not UTF-8"),
        (b"[" * 200_000, "not usable JSON"),
        (b'{"nodes": ' + b"9" * 5000 + b"}", "not usable JSON"),
        (b"[1]", "the file = [1]: must be an object"),
        (b'{"nodes": 3, "flows": {}}', "nodes = 3: must be a list"),
        (b'{"nodes": [{"up": 1' + b"0" * 400 + b', "down": 1}], "flows": []}', "nodes.0.up = a very large number"),
    ],
)
def test_bad_files_say_where(raw: bytes, message: str) -> None:
    """Syntax by line and column, the rest by path."""
    assert problems(raw)[0].startswith(message)


def test_a_thousand_wrong_flows_are_told_by_the_first() -> None:
    """The message stays readable."""
    told = problems(GOOD | {"flows": [{"src": 9, "dst": 0, "bytes": 1, "start_s": 0}] * 1000})
    assert len(told) == 51
    assert told[-1] == "... and 950 more problems of this kind"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """Never a traceback."""
    with pytest.raises(UserError, match="cannot be read"):
        command(flows, str(tmp_path / "none.json"))
    with pytest.raises(UserError, match="cannot be read"):
        command(flows, str(tmp_path))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda x: (
        st.lists(x)
        | st.dictionaries(
            st.sampled_from(["nodes", "flows", "up", "down", "src", "dst", "bytes", "start_s", "latency_s", "sharing"]),
            x,
        )
    ),
)
AMOUNTS = st.integers(1, 100) | st.floats(0.1, 1e6)
RIGHT = st.fixed_dictionaries(
    {
        "sharing": st.sampled_from(["ideal", "fifo", "fair"]),
        "nodes": st.just([{"up": 10, "down": 1e3}, {"up": 1e3, "down": 7}]),
        "flows": st.lists(
            st.fixed_dictionaries({"src": st.just(0), "dst": st.just(1), "bytes": AMOUNTS, "start_s": AMOUNTS}),
            min_size=1,
            max_size=4,
        ),
    },
    optional={"latency_s": AMOUNTS},
)


@pytest.mark.slow
@settings(deadline=None)
@given(ANYTHING | RIGHT)
def test_whatever_stands_in_the_file_it_is_read_or_refused(content: Any) -> None:
    """No other error than the user's; what is read has a time for each flow, not before its start."""
    try:
        case = parse_case(json.dumps(content).encode(), "x")
    except UserError as error:
        problems = error.problems
    else:
        assert len(case.arrived_s()) == len(case.flows.start_s)
        assert (case.arrived_s() >= case.flows.start_s).all()
        return
    assert problems
    assert all(line.isprintable() for line in problems)


def test_every_closed_form_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    """A row per flow, and exit code 0."""
    assert command(validate, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == sum(len(case.flows) for case in validate.CASES)
    assert max(row["difference"] for row in rows) <= 1e-9
    assert command(validate) == 0
    assert "all agree" in capsys.readouterr().out


def test_a_difference_is_an_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A case off by a millionth fails."""
    wrong = validate.Case("wrong", "ideal", [(10, 1), (1, 10)], 0, [(0, 1, 20, 0)], [2.000002])
    monkeypatch.setattr(validate, "CASES", (wrong,))
    assert command(validate) == 1
    assert "SOME DO NOT AGREE" in capsys.readouterr().out


@pytest.mark.slow
def test_the_commands_import_nothing_heavy() -> None:
    """So that the table of commands can name them."""
    code = (
        "import sys, scenarios.cli.commands.network_model.flows, scenarios.cli.commands.network_model.validate;"
        "print({'numpy', 'scipy', 'torch'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
