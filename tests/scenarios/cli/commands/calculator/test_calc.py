"""`peerveil calc` on the command line."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p2p.config.errors import UserError
from privacy.calc import CALC
from scenarios.cli import arguments
from scenarios.cli.commands.calculator.calc import run
from scenarios.cli.commands.calculator.calc_cases import Tolerance, compare_case, read_cases
from scenarios.cli.commands.calculator.calc_inputs import compute

CASES = json.loads((Path(__file__).parents[4] / "privacy" / "reference_cases.json").read_text())["cases"]
CHEAP = [case for case in CASES if case["kind"] not in {"dp_fedavg_noise_multiplier", "max_rounds_poisson"}]
T8 = "topology=gossip M=100 m_tcs=80 m_e=40 sigma=0.75 epsilon=8 delta=1e-5"

SHARE = ["round=3", "sender=7", "receiver=12", "share_index=0", "count=2"]


def calc(*words: str) -> int:
    """The command with these words."""
    parser = argparse.ArgumentParser()
    arguments.calc(parser)
    return run(parser.parse_args(list(words)))


def problems(*words: str) -> list[str]:
    """What the command refuses."""
    with pytest.raises(UserError) as caught:
        calc(*words)
    return caught.value.problems


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_reference_case(case: dict[str, Any]) -> None:
    """Every field of every case of the specification is within its tolerance."""
    assert list(compare_case(case)) == []


def test_prints_json_with_the_expected_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """One kind from words: JSON on standard output, exit 0."""
    assert calc("t8_max_rounds", *T8.split()) == 0
    assert json.loads(capsys.readouterr().out) == {"T_max": 64}


def test_reads_lists_null_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Lists, null and hexadecimal text are read as such."""
    assert calc("asgp_weights", "n=[600, 600, 600]", "L=[1.2, 0.8, 0.4]") == 0
    assert json.loads(capsys.readouterr().out)["weights"][2] == pytest.approx(0.25)
    digits = "".join(f"{byte:02d}" for byte in range(32))
    assert calc("niss_seed_vector", f"seed_hex={digits}", *SHARE) == 0
    assert calc("t8_max_rounds", *T8.replace("gossip", "pseudo_central").replace("m_e=40", "m_e=null").split()) == 0


def test_infinity_is_a_word_and_comes_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    """Perfectly cancelling noise: mu is `inf`, and the reason is told."""
    assert calc("niss_joint_view", "m=3", "v=1", "unit_variance=1", "s=[1, 1, 1]") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["mu"] == "inf"
    assert "without noise" in printed["warnings"][0]


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["t8_sigm"], "KIND = t8_sigm: unknown kind; did you mean `t8_sigma`?"),
        ([], "KIND: required"),
        (["gaussian_sigma", "epsilon=1", "delta=2"], "delta = 2: must be < 1"),
        (["gaussian_sigma", "epsilon=-1", "delta=1e-5"], "epsilon = -1: must be > 0"),
        (["gaussian_sigma", "epsilon=.nan", "delta=1e-5"], "epsilon = nan: must be a finite number"),
        (["gaussian_sigma", "epsilon=1"], "delta: required key is missing; add `delta=...`"),
        (
            ["gaussian_sigma", "epsilon=1", "delta=1e-5", "sensitivty=1"],
            "sensitivty: unknown key; did you mean `sensitivity`?",
        ),
        (["gaussian_sigma", "epsilon=true", "delta=1e-5"], "epsilon = true: must be a number"),
        (["gaussian_sigma", "epsilon", "delta=1e-5"], "epsilon: must be key=value"),
        (["gaussian_sigma", "epsilon=1", "epsilon=2", "delta=1e-5"], "epsilon=2: given twice"),
        (["gaussian_sigma", "epsilon=[1", "delta=1e-5"], "epsilon = [1: is not valid YAML"),
        (["t8_max_rounds", *T8.replace("sigma=0.75", "sigma=-1").split()], "sigma = -1: must be > 0"),
        (["t8_max_rounds", *T8.replace("m_e=40", "m_e=80").split()], "m_e = 80: must be below m_tcs = 80"),
        (["t8_max_rounds", *T8.replace("m_tcs=80", "m_tcs=120").split()], "m_tcs = 120: must be at most M = 100"),
        (["t8_max_rounds", *T8.replace("m_e=40", "m_reading=M").split()], "m_e: required key is missing"),
        (["t8_max_rounds", *T8.replace("gossip", "ring").split()], "topology = ring: must be `gossip` or"),
        (["niss_seed_vector", "seed_hex=zz", *SHARE], "seed_hex = zz: must be 64 hexadecimal digits"),
        (["--cases", "/nowhere/at/all.json"], "--cases = /nowhere/at/all.json: cannot be read"),
    ],
)
def test_nonsense_is_refused_with_path_and_rule(words: list[str], start: str) -> None:
    """Each mistake is told as `key = value: rule; cure`."""
    assert any(line.startswith(start) for line in problems(*words)), problems(*words)


def test_all_problems_come_at_once() -> None:
    """Three mistakes, three lines."""
    assert len(problems("gaussian_sigma", "epsilon=0", "delta=1", "foo=3")) == 3


def test_list_explains_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    """One line per kind, or JSON with the inputs."""
    assert calc("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(CALC)
    assert calc("--list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["rdp_to_dp"]["inputs"] == ["alpha", "rdp", "delta"]


def test_cases_that_agree_and_cases_that_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0 and a count; after a change exit 1 and a table that names case, field, both numbers and tolerance."""
    chosen = [case for case in CASES if case["kind"] in {"rdp_to_dp", "asgp_weights", "t8_max_rounds"}]
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"cases": chosen}))
    assert calc("--cases", str(path)) == 0
    assert capsys.readouterr().out == f"{len(chosen)} cases, 0 differ\n"
    changed = json.loads(path.read_text())
    changed["cases"][0]["expected"] = {"T_max": 85, "nothing": 1.0}
    path.write_text(json.dumps(changed))
    assert calc("--cases", str(path)) == 1
    head, first, second, count = capsys.readouterr().out.splitlines()
    assert head.split() == ["case", "field", "expected", "got", "allowed"]
    assert first.split() == ["t8_max_rounds-01", "T_max", "85", "86", "abs", "0"]
    assert second.split()[:4] == ["t8_max_rounds-01", "nothing", "1.0", "null"]
    assert count == f"{len(chosen)} cases, 1 differ"
    assert calc("--cases", str(path), "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["differences"]) == 2


@pytest.mark.parametrize("text", ["", "[1]", '{"cases": 3}', '{"cases": [{"kind": "x"}]}', "[" * 100_000])
def test_files_that_are_no_cases_are_refused(tmp_path: Path, text: str) -> None:
    """Not JSON, or not of the form: one clear error."""
    path = tmp_path / "cases.json"
    path.write_text(text)
    with pytest.raises(UserError, match="--cases"):
        read_cases(path)


def test_a_case_that_cannot_be_computed_differs() -> None:
    """An unknown kind or a refused input is a difference, not the end of the comparison."""
    unknown = {"id": "a", "kind": "nothing", "inputs": {}, "expected": {}}
    refused = {"id": "b", "kind": "gaussian_sigma", "inputs": {"epsilon": -1}, "expected": {"classic": 1.0}}
    assert [next(compare_case(case)).field for case in (unknown, refused)] == ["inputs", "inputs"]


def test_tolerances_as_the_cases_mean_them() -> None:
    """Integers are exact unless their field is named; a named field wins; text and truth are exact."""
    general = Tolerance.of("x", {"rel": 0.1})
    assert general.admits(1.0, 1.05)
    assert not general.admits(1.0, 1.2)
    assert not general.admits(10, 11)
    assert Tolerance.of("x", {"x_abs": 2, "rel": 0.0}).admits(10, 12)
    assert general.admits([1.0, [2.0]], [1.0, [2.1]])
    assert not general.admits([1.0], [1.0, 1.0])
    assert general.admits("inf", "inf")
    assert not general.admits(1.0, "inf")
    assert not general.admits(True, 1)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_input_gives_numbers_or_a_clear_refusal(data: st.DataObject) -> None:
    """Reference inputs with anything put in one place: never another exception, always printable."""
    case = data.draw(st.sampled_from(CHEAP))
    key = data.draw(st.sampled_from(sorted(case["inputs"])))
    strange: list[Any] = [
        0,
        -1,
        1,
        2,
        0.5,
        1e-300,
        1e300,
        None,
        "x",
        "",
        [],
        {},
        True,
        float("nan"),
        float("inf"),
        [[]],
    ]
    inputs = {**case["inputs"], key: data.draw(st.sampled_from(strange))}
    problems = [": "]
    try:
        json.dumps(compute(case["kind"], inputs))
    except UserError as error:
        problems = error.problems
    assert problems
    assert all(": " in line or ";" in line for line in problems)
