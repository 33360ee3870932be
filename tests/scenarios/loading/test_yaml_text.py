"""YAML to plain values, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.loading.writing.dump import to_flow, to_yaml
from scenarios.loading.yaml_text import parse_yaml

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1.0e-5", 1e-5),
        (".5", 0.5),
        ("007", 7),
        ("-3", -3),
        ("no", "no"),
        ("off", "off"),
        ("yes", "yes"),
        ("none", "none"),
        ("true", True),
        ("~", None),
        ("", None),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("0x10", "0x10"),
        ("20 Mbit/s", "20 Mbit/s"),
        (".inf", math.inf),
        ("123456789012345678901", 123456789012345678901.0),
        ("{1: a}", {"1": "a"}),
        ("<<: {a: 1}", {"<<": {"a": 1}}),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: Any) -> None:
    """The traps of YAML 1.1 (sexagesimals, `no`, `1e-5` as text) are closed."""
    parsed = parse_yaml(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a: 1\na: 2", "has the key `a` twice; keep one (line 2, column 1)"),
        ("a: &x 1\nb: *x", "uses an anchor or alias (& or *); write the values out (line 1, column 4)"),
        ("a: !!python/object/apply:os.system [ls]", "uses a YAML tag (!)"),
        ("!!set {a, b}", "uses a YAML tag (!)"),
        ("a: [1, 2", "is not valid YAML"),
        ("a: b: c", "is not valid YAML"),
        ("--- 1\n--- 2", "is not valid YAML"),
        ("? [a, b]\n: 1", "has a list or mapping as a key"),
        ("[" * 100 + "]" * 100, "is nested more than 40 levels deep"),
        ("[" * 100_000, "is n"),
        ("a: \x00", "has characters that YAML does not allow"),
        ("a: \x1b[0m", "has characters that YAML does not allow"),
        ("x" * 600_000, "is longer than 500000 characters"),
        ("\t- a", "is not valid YAML"),
    ],
)
def test_hostile_or_broken_text_is_refused(text: str, rule: str) -> None:
    """Each with the reason and, where there is one, the place."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        parse_yaml(text)
    assert rule in str(caught.value)


def test_a_bomb_of_aliases_is_refused_quickly() -> None:
    """The billion laughs never expand."""
    lines = ["a0: &a0 [lol]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(ValueError, match="anchor or alias"):
        parse_yaml("\n".join(lines))


@given(st.text(max_size=60))
def test_any_text_gives_a_value_or_a_reason(text: str) -> None:
    """Nothing but ValueError comes out."""
    reason = "fine"
    try:
        parse_yaml(text)
    except ValueError as error:
        reason = str(error)
    assert reason


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1, max_size=8), PLAIN, max_size=5))
def test_written_values_come_back(data: dict[str, Any]) -> None:
    """What is dumped is read back equal, block by block and on one line."""
    assert parse_yaml(to_yaml(data)) == data
    assert parse_yaml(f"k: {to_flow(data)}") == {"k": data}
