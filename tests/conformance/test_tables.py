"""The tables of a run tell one story: random worlds, checked from outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenarios.build import Simulation
from scenarios.run_folder.arrow_tables import log_to_arrow
from tests.outside_checks import Tables, violations
from tests.random_worlds import TIMES, troubled_worlds

Prepare = Callable[..., Simulation]


def tables_of(simulation: Simulation) -> Tables:
    """The tables as they would be in the run folder."""
    rows = {name: arrow.to_pylist() for name, arrow in log_to_arrow(simulation.log).items()}
    return Tables(rows, simulation.scenario.clients, simulation.topology)


@pytest.mark.slow
@pytest.mark.soak
@settings(max_examples=300 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(troubled_worlds(), troubled_worlds(["rotating_leader"])))
def test_tables_tell_one_story_under_every_fault(prepare: Prepare, world: list[str]) -> None:
    """Whatever goes wrong: one leader, one model, one training, and figures that follow from the rows."""
    simulation = prepare(*world)
    simulation.run()
    assert violations(tables_of(simulation)) == []
