"""Every entry of every table is a strategy as the style asks: frozen, documented, and buildable from its defaults."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import pytest

from nodes.datasets.client_split import SPLITS
from nodes.datasets.registry import DATASETS
from nodes.faults.availability import AVAILABILITIES
from nodes.learning.model_kinds.models import MODELS
from nodes.learning.model_kinds.published_models import PUBLISHED_MODELS
from nodes.learning.objectives import OBJECTIVES
from nodes.protocols import PROTOCOLS
from nodes.protocols.graphs import GRAPHS
from nodes.protocols.redraws import REDRAWS
from p2p.config.distributions import DISTRIBUTIONS
from p2p.transport.sharing import SHARINGS
from privacy.calibration.strategies import CALIBRATIONS
from privacy.mechanisms.clip_and_noise import CLIPS, NOISES

TABLES: dict[str, dict[str, type]] = {
    "availability": AVAILABILITIES,
    "data": DATASETS,
    "model": MODELS | PUBLISHED_MODELS,
    "objective": OBJECTIVES,
    "split": SPLITS,
    "protocol": PROTOCOLS,
    "distribution": DISTRIBUTIONS,
    "sharing": SHARINGS,
    "calibration": CALIBRATIONS,
    "clip": CLIPS,
    "noise": NOISES,
    "graph": GRAPHS,
    "redraw": REDRAWS,
}
NEED_A_CHOICE = {AVAILABILITIES["churn"], NOISES["gaussian"]}
"""Of two keys exactly one must be given."""
ENTRIES = pytest.mark.parametrize(
    "strategy",
    [pytest.param(entry, id=f"{table}-{kind}") for table, entries in TABLES.items() for kind, entry in entries.items()],
)


@ENTRIES
def test_a_strategy_is_a_frozen_value(strategy: Any) -> None:
    """Its fields are the scenario's keys, given by name; they never change later."""
    assert dataclasses.is_dataclass(strategy)
    assert vars(strategy)["__dataclass_params__"].frozen
    assert all(field.kw_only for field in dataclasses.fields(strategy))
    assert "__slots__" in vars(strategy)


@ENTRIES
def test_every_key_is_documented(strategy: Any) -> None:
    """`peerveil new` and `schema` print these lines; keys of a base class are documented there."""
    told = "\n".join(inspect.getdoc(base) or "" for base in strategy.__mro__[:-1])
    keys = [field for field in dataclasses.fields(strategy) if field.metadata.get("key", True)]
    for field in keys:
        assert re.search(rf"^\s+{field.name}( \(.*\))?: \S", told, re.MULTILINE), field.name


@ENTRIES
def test_a_strategy_says_in_one_line_what_it_is(strategy: Any) -> None:
    """The first line is a sentence."""
    lines = (strategy.__doc__ or "").splitlines()
    assert lines
    assert lines[0].rstrip().endswith((".", ":", ")")), lines[0]
    assert not lines[0].startswith(strategy.__name__ + "("), "the text that dataclass makes up"


@ENTRIES
def test_equal_fields_make_equal_strategies(strategy: Any) -> None:
    """Values compare by their fields, so that a scenario dumped and loaded is the same one."""
    required = [
        field.name
        for field in dataclasses.fields(strategy)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if required or strategy in NEED_A_CHOICE:
        pytest.skip("has no default of its own")
    assert strategy() == strategy()
    assert hash(strategy()) == hash(strategy())
