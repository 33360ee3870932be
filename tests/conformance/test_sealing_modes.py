"""`sealed: sizes` refuses the same messages as `sealed: true`, for the same reasons, and counts the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocols import PROTOCOLS
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from scenarios.run_folder.digest import events_digest
from tests.random_worlds import FEW, LOSSES, balance, worlds

pytestmark = pytest.mark.slow
COMMON = """
name: modes
data: {name: synthetic, samples: 400}
model: {kind: linear}
learning: none
"""


@st.composite
def hostile_worlds(draw: st.DrawFn) -> list[str]:
    """A small run in which messages are altered, copied, and sent by intruders who overhear altered ones."""
    chance = st.sampled_from([0.1, 0.5, 1.0])
    faults = [
        f"{{kind: corrupt, probability: {draw(chance)}, start: 0 s, end: 200 s}}",
        f"{{kind: duplicate, probability: {draw(chance)}, start: 0 s, end: 200 s}}",
        f"{{kind: intruder, every: {draw(st.sampled_from([50, 500]))} ms, start: 0 s, end: 200 s}}",
        "{kind: crash, who: 0, start: 3 s, end: 8 s}",
    ]
    chosen = draw(st.lists(st.sampled_from(faults), min_size=1, unique=True))
    return [*draw(worlds(sorted(PROTOCOLS), LOSSES)), f"faults=[{', '.join(chosen)}]"]


def run(world: list[str], sealed: str) -> Simulation:
    """Runs a world in one mode."""
    simulation = build(parse_scenario(COMMON, overrides=["rounds=1", *world, f"anonymity.sealed={sealed}"]))
    simulation.run()
    return simulation


@given(world=hostile_worlds())
@FEW
def test_both_modes_tell_the_same_story(world: list[str]) -> None:
    """Row by row: outcome, reason, size and overhead; hence equal digests."""
    real, counted = (run(world, sealed) for sealed in ("true", "sizes"))
    for column in ("kind", "round", "sender", "receiver", "outcome", "reason", "size_bytes", "overhead_bytes"):
        assert np.array_equal(real.log.messages[column], counted.log.messages[column]), column
    assert events_digest(real.log) == events_digest(counted.log)
    balance(counted)
