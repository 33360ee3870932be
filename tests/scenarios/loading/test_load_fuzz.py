"""Whatever stands in a scenario file, loading gives a Scenario or a UserError, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p2p.config.errors import UserError
from scenarios.loading.catalog import catalog
from scenarios.loading.load import dump_scenario, parse_scenario
from scenarios.loading.writing.dump import to_yaml
from scenarios.loading.yaml_text import parse_yaml

BASES = {name: parse_yaml(catalog()[name].read_text()) for name in ("adpdfl-gossip", "adpdfl-leader", "tiny")}
WORDS = ["gossip", "flat", "none", "kind", "name", "lognormal", "all", "20 Mbit/s", "5 s", "os:system", "1e-5", "split"]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(WORDS)
    | st.sampled_from([0, 1, 2, -1, 70, 1e308, 10**18])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into nested mappings and lists."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in entries for found in [(*path, key), *places(item, (*path, key))]]


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A good scenario with a few values replaced, removed or added."""
    data: dict[str, Any] = copy.deepcopy(BASES[draw(st.sampled_from(sorted(BASES)))])
    for _ in range(draw(st.integers(1, 4))):
        known = places(data)
        if not known:
            break
        path = draw(st.sampled_from(known))
        place: Any = data
        for part in path[:-1]:
            place = place[part]
        change = draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "remove" and isinstance(place, dict):
            del place[path[-1]]
        elif change == "add" and isinstance(place, dict):
            place[draw(st.sampled_from(WORDS) | st.text(max_size=8))] = draw(VALUES)
        else:
            place[path[-1]] = draw(VALUES)
    return data


def check_outcome(text: str, *overrides: str) -> None:
    """It is refused in printable lines, or loads, and survives being written out and read again."""
    try:
        scenario = parse_scenario(text, overrides=overrides)
    except UserError as error:
        problems = error.problems
    else:
        assert parse_scenario(dump_scenario(scenario)) == scenario
        return
    assert problems
    assert all(line.isprintable() and len(line) < 2000 for line in problems)


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_mutated_scenarios_load_or_are_refused(data: dict[str, Any]) -> None:
    """Any value in any place."""
    check_outcome(to_yaml(data))


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_mutilated_text_loads_or_is_refused(data: st.DataObject) -> None:
    """Pieces of a good file cut out, doubled, or replaced by rubbish."""
    text = catalog()["adpdfl-gossip"].read_text()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 200)))
    middle = data.draw(
        st.text(max_size=20) | st.sampled_from(["&a *a", "!!python/name:os", "[" * 60, "\t", "{", ": :", "? "])
    )
    check_outcome(text[:start] + middle + text[end:])


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from([*WORDS, "privacy", "noise", "0", "network"]), max_size=4), VALUES),
        max_size=3,
    )
)
def test_any_override_loads_or_is_refused(changes: list[tuple[list[str], Any]]) -> None:
    """Paths that lead nowhere, and values of any shape."""
    overrides = [f"{'.'.join(path)}={to_yaml({'k': value})[3:].strip()}" for path, value in changes]
    check_outcome(catalog()["adpdfl-gossip"].read_text(), *overrides)
