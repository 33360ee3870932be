"""What is known without pydantic is what pydantic would say; the rest is left to it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union

import pytest
from annotated_types import Ge, Interval, Len, MultipleOf
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.config.choices import Choice
from p2p.config.distributions import Drawn, InUnitOfField
from p2p.config.file_paths import ExistingFile
from p2p.config.units import Fraction, Seconds, Unit
from scenarios.loading.plain_values_fast import UNDECIDED, parse_if_plain
from scenarios.loading.plain_values_strict import read_strictly
from scenarios.loading.writing.field_docs import bare, is_structured, item_type, keys_of, marker, members
from scenarios.schema import Scenario


def leaves_of(strategy: type, seen: set[type]) -> Iterator[Any]:
    """The types of all plain values below a section."""
    if strategy not in seen:
        seen.add(strategy)
        for key in keys_of(strategy):
            yield from leaves(key.annotation, seen)


def leaves(annotation: Any, seen: set[type]) -> Iterator[Any]:
    """Those of one key, taken apart as the reader does."""
    table = marker(annotation, Choice) or marker(annotation, Drawn)
    item = item_type(annotation)
    if table:
        for strategy in table.table.values():
            yield from leaves_of(strategy, seen)
    elif len(members(annotation)) > 1:
        yield from alternatives(annotation, seen)
    elif item is not None and is_structured(item):
        yield from leaves(item, seen)
    elif is_structured(annotation):
        yield from leaves_of(bare(annotation), seen)
    elif not marker(annotation, InUnitOfField) and not marker(annotation, ExistingFile):
        yield annotation


def alternatives(annotation: Any, seen: set[type]) -> Iterator[Any]:
    """Structured members each, plain ones together."""
    options = [option for option in members(annotation) if option is not type(None)]
    plain = tuple(option for option in options if not is_structured(option))
    for option in options:
        yield from leaves(option, seen) if is_structured(option) else ()
    if len(plain) == 1:
        yield from leaves(plain[0], seen)
    elif plain:
        yield Union[plain]  # noqa: UP007 - built at run time


LEAVES = list({repr(leaf): leaf for leaf in leaves_of(Scenario, set())}.values())
ODD = [
    int | float,
    float | str | bool,
    Literal[1, "1", True],
    tuple[int, str],
    tuple[()],
    list[int],
    dict[str, int],
    Annotated[int, MultipleOf(3)],
    Annotated[float, Unit("s"), Ge(1)],
    Annotated[tuple[Seconds, ...], Len(1, 2)],
    Annotated[int | str, Len(1, 3)],
    Annotated[Fraction, Interval(gt=0, lt=1)],
]
WORDS = sorted({word for leaf in LEAVES for word in getattr(bare(leaf), "__args__", ()) if isinstance(word, str)})
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, 1, 2, 3, 2**53, 2**53 + 1, -(2**63), 2**64 + 1, 10**30, 10**400])
    | st.floats()
    | st.sampled_from([0.0, -0.0, 1.0, 0.1, 5e-324, 1.7976931348623157e308, math.inf, math.nan])
    | st.text(max_size=5)
    | st.sampled_from([*WORDS, "", "\ud800", "\0", "a\nb", "\U0001f600", "x" * 81, "20 ms", "10 %", "1", "0-3"])
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.lists(st.lists(SCALARS, max_size=2), max_size=2)


@pytest.mark.slow
@given(annotation=st.sampled_from([*LEAVES, *ODD]), value=VALUES)
@settings(max_examples=1500, deadline=None)
def test_what_is_sure_is_what_pydantic_says(annotation: Any, value: Any) -> None:
    """To the last bit and type: `repr` tells 1 from 1.0 and from true, and 0.0 from -0.0."""
    found = parse_if_plain(annotation, value)
    if found is not UNDECIDED:
        read, complaints = read_strictly(annotation, value)
        assert complaints == []
        assert repr(found) == repr(read)


@pytest.mark.parametrize(
    ("annotation", "value", "read"),
    [
        (int, 3, 3),
        (float, 3, 3.0),
        (Annotated[int, Ge(1)] | Literal["all"], "all", "all"),
        (Annotated[float, Interval(gt=0, le=1)], 1, 1.0),
        (tuple[int | str, ...], [1, "0-3"], (1, "0-3")),
        (Seconds, "20 ms", 0.02),
        (Annotated[str, Len(1, 80)], "größer", "größer"),
    ],
)
def test_common_values_are_sure(annotation: Any, value: Any, read: Any) -> None:
    """Those of a sound scenario, so that reading one needs no pydantic."""
    assert repr(parse_if_plain(annotation, value)) == repr(read)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, True),
        (int, 1.0),
        (float, 2**53 + 1),
        (float, math.inf),
        (str, "\ud800"),
        (int | float, 1),
        (Literal[True], 1),
        (Annotated[int, Ge(1)], 0),
        (Annotated[int, Ge("a")], 0),
        (Annotated[int, MultipleOf(3)], 3),
        (tuple[int, int], [1]),
        (Seconds, "20 apples"),
    ],
)
def test_the_rest_is_left_to_pydantic(annotation: Any, value: Any) -> None:
    """What is wrong, what two members of a union take, and rules that are not known."""
    assert parse_if_plain(annotation, value) is UNDECIDED
