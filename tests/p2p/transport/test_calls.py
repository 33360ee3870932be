"""Calls are answered in the core by the receiver's rule, as soon as its process waits for orders."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Literal

import numpy as np
import pytest
import simpy

from p2p.clock import Rank
from p2p.transport.core.layout import JOINS, NO_MODEL, SPENT
from p2p.transport.impairments import Chance
from p2p.transport.messages import Answers, Batch, CallAnswer
from tests.p2p.small_network import SmallNetwork

Rows = Callable[..., list[dict[str, Any]]]
CALLER = 0


def network(**more: Any) -> SmallNetwork:
    """Six nodes 0.1 s from each other, whose links hold nothing back; node 0 calls."""
    post = SmallNetwork(6, up=np.inf, down=np.inf, **more)
    for node in range(1, 6):
        post.network.set_rule(node, 3, 9)
    return post


def wait_for_orders(post: SmallNetwork, node: int, from_s: float = 0.0) -> None:
    """Starts a process that is busy until `from_s` and then waits for orders."""

    def process() -> Generator[simpy.Event, Any, None]:
        if from_s:
            yield post.inboxes[node].sleep(from_s)
        while True:
            yield post.inboxes[node].expect("orders", 1)

    post.clock.process(process())


def call(post: SmallNetwork, receivers: list[int], *, round_number: int = 1, before: Any = None) -> list[CallAnswer]:
    """Calls nodes now; the list fills when the caller's inbox is read."""
    answers: list[CallAnswer] = []

    def content(answer: CallAnswer) -> str:
        answers.append(answer)
        return "answer"

    calls = Batch(CALLER, receivers, "control", round_number, 50, 20, ["call"] * len(receivers))
    post.network.call(calls, Answers(content, 70, 30, 2), before)
    return answers


def sent_back(rows: list[dict[str, Any]]) -> list[tuple[float, int, int, str]]:
    """The answers: when they were sent, by whom, their size and outcome."""
    return [
        (round(row["sent_s"], 9), row["sender"], row["size_bytes"], row["outcome"])
        for row in rows
        if row["receiver"] == CALLER
    ]


def test_an_idle_node_answers_at_the_arrival_of_the_call(message_rows: Rows) -> None:
    """Two ordinary rows; the content says what the rule was, and since how many crashes the node is up."""
    post = network()
    wait_for_orders(post, 2)
    answers = call(post, [2])
    post.clock.run(until=5.0)
    rows = message_rows(post.log)
    assert [(row["sender"], row["size_bytes"], row["overhead_bytes"]) for row in rows] == [(0, 50, 20), (2, 70, 30)]
    assert sent_back(rows) == [(0.1, 2, 70, "delivered")]
    assert answers == [CallAnswer(1, 2, JOINS, 3, 0)]
    assert post.network.called_s(2) == 0.1
    assert post.network.answered_round(2) == 1


def test_a_refusal_is_longer_and_says_why(message_rows: Rows) -> None:
    """Without a model, or in a round after the last that the budget allows."""
    post = network()
    for node, rule in ((1, (-1, 9)), (2, (5, 6)), (3, (5, 7))):
        post.network.set_rule(node, *rule)
        wait_for_orders(post, node)
    answers = call(post, [1, 2, 3], round_number=7)
    post.clock.run(until=5.0)
    assert [size for _, _, size, _ in sent_back(message_rows(post.log))] == [72, 72, 70]
    assert [(answer.refuses, answer.model_round) for answer in answers] == [(NO_MODEL, -1), (SPENT, 5), (JOINS, 5)]


def test_a_busy_node_answers_the_latest_call_when_it_waits_again(message_rows: Rows) -> None:
    """Two calls arrive while its process is busy; the call itself is delivered on arrival."""
    post = network()
    wait_for_orders(post, 2, from_s=4.0)
    call(post, [2], round_number=1)
    post.clock.call_at(1.0, Rank.START, 0, lambda: call(post, [2], round_number=2))
    post.clock.run(until=9.0)
    rows = message_rows(post.log)
    assert [row["arrived_s"] for row in rows[:2]] == [0.1, 1.1]
    assert [(row["round"], row["sent_s"]) for row in rows if row["receiver"] == CALLER] == [(2, 4.0)]


def test_a_caller_that_was_replaced_is_answered_at_its_stand_in(message_rows: Rows) -> None:
    """Node 2 is busy when node 0 calls; node 5 takes over before the answer."""
    post = network()
    wait_for_orders(post, 2, from_s=4.0)
    call(post, [2])
    post.clock.call_at(1.0, Rank.FAULT, 0, lambda: post.network.redirect(CALLER, 5))
    post.clock.run(until=9.0)
    answers = message_rows(post.log, sender=2)
    assert [(row["receiver"], row["destination"], row["arrived_s"]) for row in answers] == [(5, 5, 4.1)]


def test_a_crash_forgets_the_call(message_rows: Rows) -> None:
    """The next life answers only what reaches it."""
    post = network()
    call(post, [2])
    post.clock.call_at(1.0, Rank.FAULT, 2, lambda: post.network.take_down(2))
    post.clock.call_at(2.0, Rank.FAULT, 2, lambda: post.network.bring_up(2))
    post.clock.call_at(3.0, Rank.START, 2, lambda: wait_for_orders(post, 2))
    answers: list[list[CallAnswer]] = []
    post.clock.call_at(5.0, Rank.START, 0, lambda: answers.append(call(post, [2])))
    post.clock.run(until=9.0)
    rows = message_rows(post.log)
    assert [time_s for time_s, *_ in sent_back(rows)] == [5.1]
    assert [answer.life for answer in answers[0]] == [1]


@pytest.mark.parametrize(("kind", "reason", "answers"), [("duplicate", "replay", 1), ("corrupt", "corrupt", 0)])
def test_copies_and_damaged_calls_are_refused(
    kind: Literal["duplicate", "corrupt"], reason: str, answers: int, message_rows: Rows
) -> None:
    """A copy is not answered again, a damaged call not at all."""
    post = network()
    wait_for_orders(post, 2)
    post.network.impair(Chance(kind, kind, 1.0, np.arange(6) == CALLER))
    call(post, [2])
    post.clock.run(until=5.0)
    rows = message_rows(post.log)
    assert [row["reason"] for row in rows if row["outcome"] == "rejected"] == [reason]
    assert len(sent_back(rows)) == answers


def test_a_lost_answer_is_sent_again(message_rows: Rows) -> None:
    """Like any other message, with its own draws."""
    post = network(loss=0.5, tries=20, timeout_s=1.0, seed=5)
    for node in range(1, 6):
        wait_for_orders(post, node)
    answers = call(post, [1, 2, 3, 4, 5])
    post.clock.run(until=60.0)
    rows = message_rows(post.log)
    assert sorted(answer.node for answer in answers) == [1, 2, 3, 4, 5]
    assert any(row["attempt"] > 1 and row["receiver"] == CALLER for row in rows)


def test_what_is_asked_before_an_answer_may_take_the_node_down(message_rows: Rows) -> None:
    """A fault that waits for the invitation strikes before the answer is sent."""
    post, asked = network(), list[tuple[float, int, int]]()

    def before(node: int, round_number: int) -> None:
        asked.append((post.clock.now, node, round_number))
        if node == 2:
            post.network.take_down(node)

    for node in (1, 2):
        wait_for_orders(post, node)
    call(post, [1, 2], before=before)
    post.clock.run(until=5.0)
    assert asked == [(0.1, 1, 1), (0.1, 2, 1)]
    assert [sender for _, sender, *_ in sent_back(message_rows(post.log))] == [1]


def test_a_call_that_was_overtaken_is_outdated(message_rows: Rows) -> None:
    """A busy node keeps the newest call by the order of hand-over, not of arrival."""
    post = network()
    wait_for_orders(post, 2, from_s=20.0)
    detour = Chance("reorder", "late", 1.0, np.arange(6) == CALLER, delay_s=10.0)
    post.network.impair(detour)
    call(post, [2], round_number=5)
    post.network.repair(detour)
    call(post, [2], round_number=6)
    post.clock.run(until=30.0)
    rows = message_rows(post.log)
    assert rows[0]["arrived_s"] > rows[1]["arrived_s"]
    assert [row["round"] for row in rows if row["receiver"] == CALLER] == [6]
    assert [row["outcome"] for row in rows] == ["delivered"] * 3
