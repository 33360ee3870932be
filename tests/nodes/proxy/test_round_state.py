"""The proxy's state of a round: who may commit its model."""

from __future__ import annotations

from nodes.messaging.control_messages import CommitRequest
from nodes.protocols.api import RoundPlan
from nodes.proxy.round_state import RunningRound

REQUEST = CommitRequest(round_number=3, node=7, epoch=1)


def state() -> RunningRound:
    """Round 3 under its second plan, led by node 7."""
    return RunningRound(3, {}, RoundPlan({}, 7), [5, 6, 7], {}, 10.0, 10.0, epoch=1)


def test_the_current_leader_may_commit_and_ask_again() -> None:
    """Its answer may have been lost."""
    running = state()
    assert running.may_commit(REQUEST)
    running.committed = REQUEST
    assert running.may_commit(REQUEST)


def test_no_other_may() -> None:
    """Of another round, an earlier plan, another node, or one that counts as lost."""
    running = state()
    assert not running.may_commit(REQUEST._replace(round_number=2))
    assert not running.may_commit(REQUEST._replace(epoch=0))
    assert not running.may_commit(REQUEST._replace(node=6))
    running.gone.add(7)
    assert not running.may_commit(REQUEST)


def test_a_committed_round_has_its_model() -> None:
    """No second one, whatever plan the round has by then."""
    running = state()
    running.committed = REQUEST._replace(node=5, epoch=0)
    assert not running.may_commit(REQUEST)
