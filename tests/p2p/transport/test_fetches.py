"""Orders to fetch the first model are followed in the core by a rule, while the receiver's process waits for orders."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import pytest
import simpy

from p2p.clock import Rank
from p2p.transport.core.layout import BY_RULE
from p2p.transport.impairments import Chance
from p2p.transport.inbox import Inbox
from p2p.transport.messages import TOPICS, Answers, Batch, Delivery, FetchTerms, FirstModels, Message, Note
from tests.p2p.small_network import SmallNetwork

Rows = Callable[..., list[dict[str, Any]]]
PROXY, SERVER = 0, 5


class Hand:
    """Six nodes 0.1 s from each other; node 0 orders, node 5 sends the model, and the others may fetch it."""

    def __init__(self, **more: Any) -> None:
        self.post = post = SmallNetwork(6, up=np.inf, down=np.inf, **more)
        post.network.contents.make_with(TOPICS["done"], lambda delivery: f"report {-delivery.batch}")
        post.inboxes = [Inbox(post.network, node, self.opener(node)) for node in range(6)]
        for node, inbox in enumerate(post.inboxes):
            post.network.attach(node, lambda message: "", inbox)
        self.reported: list[str] = []
        self.resumed: list[tuple[float, int, int]] = []
        self.over: list[tuple[float, int]] = []
        self.taken: list[FirstModels] = []

    def opener(self, node: int) -> Callable[[Sequence[Delivery]], None]:
        """What opens the messages of a node: orders go to its process, unless the rule has followed them."""

        def open_deliveries(deliveries: Sequence[Delivery]) -> None:
            for delivery in deliveries:
                content = self.post.network.contents.as_arrived(delivery)
                if delivery.topic == TOPICS["orders"] and not delivery.flags & BY_RULE:
                    self.post.inboxes[node].put("orders", content)
                elif delivery.topic == TOPICS["done"]:
                    self.reported.append(content)

        return open_deliveries

    def wait_for_orders(self, node: int, from_s: float = 0.0, until_s: float | None = None) -> None:
        """Starts a process that is busy until `from_s` and then waits for orders, again and again."""
        post = self.post

        def process() -> Generator[simpy.Event, Any, None]:
            if from_s:
                yield post.inboxes[node].sleep(from_s)
            while True:
                orders = yield post.inboxes[node].expect("orders", 1, until_s)
                self.resumed.append((round(post.clock.now, 9), node, len(orders)))

        post.clock.process(process())

    def order(self, *nodes: int, life: int = 0, closes_s: float = 3.0, lasts_s: float = 1.0, number: int = 1) -> None:
        """Orders nodes to fetch the first model, now."""
        batch = Batch(PROXY, list(nodes), "control", number, 50, 20, ["order"] * len(nodes), topic=TOPICS["orders"])
        batch.separate, batch.fetch_lives = True, [life] * len(nodes)
        terms = FetchTerms(SERVER, PROXY, closes_s, lasts_s, Note(TOPICS["done"], 30, 10), 7, self.end, self.take)
        self.post.network.hand_out(batch, terms)

    def end(self, node: int) -> None:
        """Notes a node whose time is up, as a client would: it ends the fetch."""
        self.over.append((round(self.post.clock.now, 9), node))
        self.post.network.end_fetch(node)

    def take(self, models: FirstModels) -> None:
        """Notes models that were read together."""
        self.taken.append(models)

    def send_model(self, *nodes: int, sender: int = SERVER, number: int = 1) -> None:
        """Sends the model, now."""
        self.post.network.send(Batch(sender, list(nodes), "bootstrap", number, 100, 20, ["model"] * len(nodes)))

    def at(self, time_s: float, then: Callable[[], None]) -> None:
        """Does something later."""
        self.post.clock.call_at(time_s, Rank.FAULT, 0, then)

    def reports(self, rows: list[dict[str, Any]]) -> list[tuple[float, int, int]]:
        """The reports that reached the proxy: when they were sent, by whom, their size."""
        return [(round(row["sent_s"], 9), row["sender"], row["size_bytes"]) for row in rows if row["receiver"] == PROXY]


def test_a_node_reports_when_its_model_arrives_and_its_process_sleeps_on(message_rows: Rows) -> None:
    """Order at 0.1 s, model at 0.6 s. The process waits for orders up to 0.9 s, but the proxy knows it now."""
    hand = Hand()
    hand.wait_for_orders(2, until_s=0.9)
    hand.order(2)
    hand.at(0.5, lambda: hand.send_model(2))
    hand.post.clock.run(until=5.0)
    assert hand.reports(message_rows(hand.post.log)) == [(0.6, 2, 30)]
    assert (hand.reported, hand.resumed, hand.over) == (["report 7"], [], [])


def test_models_are_read_together_when_the_round_has_drained() -> None:
    """With what a client needs: when each order and each model came."""
    hand = Hand()
    for node in (1, 2, 3, 4):
        hand.wait_for_orders(node)
    hand.order(1, 2, 3, 4)
    hand.at(0.5, lambda: hand.send_model(1, 2, 3, 4))
    # Node 4 has something else to read, between order and model, so it reads all by itself.
    hand.at(0.3, lambda: hand.post.send(1, [4], kind="bootstrap", round_number=2))
    hand.post.network.sessions.open(4, 2)
    hand.at(0.6, lambda: hand.post.network.when_drained(1, lambda: None))
    hand.post.clock.run(until=5.0)
    (models,) = hand.taken
    assert models.nodes.tolist() == [1, 2, 3]
    assert models.ordered_s.tolist() == [0.1] * 3
    assert models.arrived_s.tolist() == [0.6] * 3
    assert [contents[0] for contents in models.contents] == ["model"] * 3
    assert not any(hand.post.network.inbox_counts[node] for node in (1, 2, 3))


def test_a_node_that_fetches_answers_calls_afterwards(message_rows: Rows) -> None:
    """The call arrives at 0.3 s, the model at 0.6 s; the answer follows the report, and tells of the model."""
    hand = Hand()
    hand.post.network.set_rule(2, -1, 9)
    hand.wait_for_orders(2)
    hand.order(2)
    answered: list[int] = []
    call = Batch(PROXY, [2], "control", 2, 50, 20, ["call"])

    def content(answer: Any) -> str:
        answered.append(answer.model_round)
        return "answer"

    hand.at(0.2, lambda: hand.post.network.call(call, Answers(content, 70, 30, 2)))
    hand.at(0.5, lambda: hand.send_model(2))
    hand.post.clock.run(until=5.0)
    assert hand.reports(message_rows(hand.post.log)) == [(0.6, 2, 30), (0.6, 2, 70)]
    assert answered == [0]


def test_other_orders_wait_until_the_fetch_is_over() -> None:
    """They arrive at 0.3 s and wake the process at 0.6 s, when the model is there."""
    hand = Hand()
    hand.wait_for_orders(2)
    hand.order(2)
    order = Batch(PROXY, [2], "control", 2, 50, 20, ["other order"], topic=TOPICS["orders"])
    hand.at(0.2, lambda: hand.post.network.send(order))
    hand.at(0.5, lambda: hand.send_model(2))
    hand.post.clock.run(until=5.0)
    assert [(at_s, node) for at_s, node, _ in hand.resumed] == [(0.6, 2)]


@pytest.mark.parametrize(("closes_s", "lasts_s", "over_s"), [(3.0, 1.0, 3.0), (0.5, 1.0, 1.1)])
def test_time_runs_from_the_receipt_of_the_order(closes_s: float, lasts_s: float, over_s: float) -> None:
    """It is up when the round closes, or `lasts_s` after the receipt if that is later; the proxy knows."""
    hand = Hand()
    hand.wait_for_orders(2)
    hand.order(2, closes_s=closes_s, lasts_s=lasts_s)
    hand.post.clock.run(until=5.0)
    assert hand.over == [(over_s, 2)]
    assert hand.post.network.promised_s(1) == over_s


def test_a_model_exactly_at_the_deadline_counts(message_rows: Rows) -> None:
    """Arrivals come before deadlines of the same instant."""
    hand = Hand()
    hand.wait_for_orders(2)
    hand.order(2, closes_s=0.5, lasts_s=1.0)
    hand.at(1.0, lambda: hand.send_model(2))
    hand.post.clock.run(until=5.0)
    assert hand.over == []
    assert hand.reports(message_rows(hand.post.log)) == [(1.1, 2, 30)]


@pytest.mark.parametrize("what", ["late", "earlier life", "busy"])
def test_an_order_that_the_rule_may_not_follow_wakes_the_process(what: str, message_rows: Rows) -> None:
    """It comes after the round has closed, is meant for an earlier life, or finds its receiver busy."""
    hand = Hand()
    hand.wait_for_orders(2, from_s=0.2 if what == "busy" else 0.0)
    hand.order(2, life=1 if what == "earlier life" else 0, closes_s=0.05 if what == "late" else 3.0)
    hand.at(0.5, lambda: hand.send_model(2))
    hand.post.clock.run(until=5.0)
    assert hand.resumed == [(0.2 if what == "busy" else 0.1, 2, 1)]
    assert hand.reports(message_rows(hand.post.log)) == []


def test_a_damaged_model_is_judged_by_its_receiver_at_its_arrival(message_rows: Rows) -> None:
    """As is one from a node that was not to send it; the fetch goes on."""
    hand = Hand()
    seen: list[tuple[float, int]] = []

    def judge(message: Message) -> str:
        seen.append((hand.post.clock.now, message.sender))
        return "corrupt"

    hand.post.network.attach(2, judge, hand.post.inboxes[2])
    hand.wait_for_orders(2)
    hand.order(2)
    everywhere = np.ones(6, dtype=bool)
    damage = Chance("corrupt", "damage", 1.0, everywhere)
    hand.at(0.3, lambda: hand.post.network.impair(damage))
    hand.at(0.4, lambda: hand.send_model(2))
    hand.at(0.45, lambda: hand.post.network.repair(damage))
    hand.at(0.5, lambda: hand.send_model(2, sender=4))
    hand.post.clock.run(until=2.9)
    assert [(round(at_s, 9), sender) for at_s, sender in seen] == [(0.5, SERVER), (0.6, 4)]
    assert hand.reports(message_rows(hand.post.log)) == []
    assert hand.over == []


def test_a_crash_ends_a_fetch(message_rows: Rows) -> None:
    """Neither report nor deadline follow, also if the node is back before the model comes."""
    hand = Hand()
    hand.wait_for_orders(2)
    hand.order(2)

    def crash() -> None:
        hand.post.network.take_down(2)
        hand.post.inboxes[2].close()
        hand.post.network.bring_up(2)

    hand.at(0.3, crash)
    hand.at(0.5, lambda: hand.send_model(2))
    hand.post.clock.run(until=5.0)
    assert hand.reports(message_rows(hand.post.log)) == []
    assert hand.over == []


def test_a_deadline_ends_the_fetch_that_it_belongs_to_only() -> None:
    """The first fetch ended with a crash; the second has until 5 s."""
    hand = Hand()
    hand.wait_for_orders(2)
    hand.order(2, closes_s=3.0)

    def crash() -> None:
        hand.post.network.take_down(2)
        hand.post.inboxes[2].close()
        hand.post.network.bring_up(2)
        hand.wait_for_orders(2)

    hand.at(0.3, crash)
    hand.at(0.4, lambda: hand.order(2, life=1, closes_s=5.0))
    hand.post.clock.run(until=9.0)
    assert hand.over == [(5.0, 2)]


def test_a_lost_order_is_sent_again_and_followed(message_rows: Rows) -> None:
    """With jitter as well: the report's delay is drawn like any other."""
    hand = Hand(loss=0.6, seed=3, tries=8)
    for node in (1, 2, 3, 4):
        hand.wait_for_orders(node)
    hand.order(1, 2, 3, 4, closes_s=60.0)
    hand.at(20.0, lambda: hand.send_model(1, 2, 3, 4))
    hand.post.clock.run(until=59.0)
    rows = message_rows(hand.post.log)
    assert any(row["outcome"] == "lost" and row["sender"] == PROXY for row in rows)
    models = {row["receiver"]: row["arrived_s"] for row in rows if row["kind"] == "bootstrap" and row["arrived_s"] > 0}
    assert {node: at_s for at_s, node, _ in hand.reports(rows)[::-1]} == pytest.approx(models)


def test_an_order_is_late_by_its_own_terms() -> None:
    """It closed at 0.05 s and comes at 0.1 s; a hand-out to another node, open until 3 s, does not open it again."""
    hand = Hand()
    hand.wait_for_orders(2)
    hand.order(2, closes_s=0.05)
    hand.at(0.06, lambda: hand.order(3, closes_s=3.0))
    hand.post.clock.run(until=5.0)
    assert hand.resumed == [(0.1, 2, 1)]
    assert hand.over == []


def test_only_what_the_rule_has_taken_is_read_together() -> None:
    """Node 1 is busy when its order comes; node 2 got two orders and no model; node 3 fetches in another round."""
    hand = Hand()
    hand.wait_for_orders(1, from_s=9.0)
    for node in (2, 3, 4):
        hand.wait_for_orders(node)
    hand.order(1, 2, 4)
    hand.post.network.sessions.open(1, 1)  # so that the model lies in its inbox beside the order
    hand.order(3, number=2)
    hand.at(0.5, lambda: hand.send_model(1, 4))
    hand.at(0.5, lambda: hand.send_model(3, number=2))
    hand.at(3.5, lambda: hand.order(2, closes_s=9.0))
    hand.at(3.7, lambda: hand.post.network.when_drained(1, lambda: None))
    hand.post.clock.run(until=3.8)
    assert [models.nodes.tolist() for models in hand.taken] == [[4]]


def test_a_round_promises_the_longest_time_that_it_gave() -> None:
    """A later hand-out with an earlier end takes nothing back."""
    hand = Hand()
    for node in (1, 2):
        hand.wait_for_orders(node)
    hand.order(1, closes_s=9.0)
    hand.at(0.5, lambda: hand.order(2, closes_s=3.0))
    hand.post.clock.run(until=1.0)
    assert hand.post.network.promised_s(1) == 9.0
