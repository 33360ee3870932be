"""A simulation round by round has the events of a run, and stops where it is left."""

from __future__ import annotations

import numpy as np
import pytest

import peerveil as pv


@pytest.mark.slow
def test_the_rounds_are_those_of_a_run() -> None:
    """The same messages, figures and graph, whether looked at after every round or not."""
    run = pv.run("tiny", rounds=3, network={"loss": 0.1})
    states = []
    for state in pv.simulate("tiny", rounds=3, network={"loss": 0.1}):
        states.append(state.accuracy)
        assert state.graph.number_of_edges() == (run.graphs["round"] == state.number).sum()
        assert state.model(0).dtype == np.float32
    assert states == run.rounds["accuracy_after_mean"].tolist()
    last = state.messages
    assert last["sent_s"].tolist() == run.messages["sent_s"].tolist()
    assert last["outcome"].tolist() == run.messages["outcome"].tolist()


def test_leaving_early_stops_the_run() -> None:
    """No event happens after the round in which the loop was left."""
    states = pv.simulate("tiny", rounds=50, learning="none")
    first = next(states)
    assert first.number == 1
    seen, time_s = len(first.messages), first.time_s
    states.close()  # type: ignore[attr-defined]
    assert (len(first.messages), first.time_s) == (seen, time_s)


def test_problems_are_raised_by_the_call() -> None:
    """Not by the first round, which may be far away."""
    with pytest.raises(pv.UserError, match="rounds = 0"):
        pv.simulate("tiny", rounds=0)


def test_models_need_learning_and_a_client() -> None:
    """Each refusal names the cure."""
    state = next(pv.simulate("tiny", learning="none"))
    with pytest.raises(pv.UserError, match="set `learning` to torch"):
        state.model(0)
    assert state.accuracy is None
    learned = next(pv.simulate("tiny"))
    with pytest.raises(pv.UserError, match="must be from 0 to 5"):
        learned.model(6)
