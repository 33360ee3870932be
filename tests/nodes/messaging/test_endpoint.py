"""Every refusal happens for real, is counted with its reason, and never stops the run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from nodes.messaging.control_messages import Peer
from p2p.clock import Rank
from p2p.log import records
from p2p.log.records import NO_NODE
from p2p.random_streams import stream
from p2p.transport.impairments import Partition
from p2p.transport.messages import Batch, Message
from privacy.sealing.envelopes import Envelope
from privacy.sealing.keys import KeyPair
from privacy.sealing.sealers import tamper
from scenarios.composition.simulation import Simulation

Prepare = Callable[..., Simulation]
Rows = Callable[..., list[dict[str, Any]]]
RING = ("clients=5", "data.samples=100", "protocol.train_per_round=5", "protocol.exchange_with=1", "rounds=3")
pytestmark = pytest.mark.slow
SEALED = pytest.mark.parametrize("sealed", ["true", "sizes"])
FORGED = 77
"""The sequence number of forged messages, so that they are found again."""


class Forger:
    """Knows all keys (the simulation's are drawn from its seed) and writes messages in any node's name."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation, self.world = simulation, simulation.world

    def keys(self, node: int, round_number: int) -> KeyPair:
        """A member's keys of a round, drawn again."""
        return self.world.sealer.draw_keys(self.world.seed, node, round_number)

    def seal(self, sender: int, receiver: int, round_number: int, kind: str = "update") -> Envelope:
        """A message that is properly sealed with the sender's keys."""
        addresses = self.simulation.records[round_number].addresses
        public = self.keys(receiver, round_number).public
        payload = self.simulation.learning.first_model().payload()
        keys = self.keys(sender, round_number)
        to = (addresses[receiver], public)
        return self.world.sealer.seal_one(kind, round_number, FORGED, keys, addresses[sender], to, payload)

    def successor(self, node: int, round_number: int) -> int:
        """Whom a member sends to in the ring of that round."""
        graphs = self.simulation.log.graphs
        row = (graphs["round"] == round_number) & (graphs["sender"] == node)
        return int(graphs["receiver"][row][0])

    def post(self, envelope: Envelope, sender: int, receiver: int, round_number: int) -> None:
        """Puts an envelope on the wire, past the sender's own endpoint."""
        sizes = (envelope.size_bytes, envelope.overhead_bytes)
        self.world.network.send(Batch(sender, [receiver], "correction", round_number, *sizes, [envelope]))


def training_s(prepare: Prepare, round_number: int, *overrides: str) -> float:
    """An instant at which all members of a round hold their assignment and still train."""
    simulation = prepare(*RING, *overrides)
    simulation.run()
    table = simulation.log.spans
    rows = (table["round"] == round_number) & (table["name"] == records.SPAN["train"])
    start_s, end_s = float(table["start_s"][rows].max()), float(table["end_s"][rows].min())
    assert start_s < end_s
    return (start_s + end_s) / 2


def run_with(prepare: Prepare, sealed: str, round_number: int, act: Callable[[Forger], None]) -> Simulation:
    """Runs the ring with `act` in the middle of a round's training; all rounds must end as if nothing had been."""
    seal = f"anonymity.sealed={sealed}"
    at_s = training_s(prepare, round_number, seal)
    simulation = prepare(*RING, seal)
    simulation.clock.call_at(at_s, Rank.START, 0, lambda: act(Forger(simulation)))
    simulation.run()
    assert simulation.proxy.outcome.rounds_completed == 3
    assert [row["updates_used"] for row in simulation.log.rounds] == [5, 5, 5]
    return simulation


def refusals(simulation: Simulation, message_rows: Rows) -> list[str]:
    """The reasons for which forged messages (booked as kind `correction`) were refused."""
    return [row["reason"] if row["outcome"] == "rejected" else row["outcome"] for row in message_rows(simulation.log)
            if row["kind"] == "correction"]  # fmt: skip


@SEALED
def test_an_address_that_no_node_has(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """The router finds no one behind it."""

    def act(forger: Forger) -> None:
        lost = forger.seal(0, 1, 1)._replace(receiver=b"?" * 32)
        forger.simulation.clients[0].endpoint.send_envelopes([lost], "correction", 1)

    simulation = run_with(prepare, sealed, 1, act)
    assert refusals(simulation, message_rows) == ["unknown_address"]
    assert message_rows(simulation.log, kind="correction")[0]["receiver"] == NO_NODE


@SEALED
def test_a_sender_that_does_not_exist(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """A message from an address that was never handed out."""

    def act(forger: Forger) -> None:
        forger.post(forger.seal(0, 1, 1)._replace(sender=b"?" * 32), 0, 1, 1)

    assert refusals(run_with(prepare, sealed, 1, act), message_rows) == ["unknown_address"]


@SEALED
def test_a_message_for_another(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """It came to the wrong node: the address is not its own."""

    def act(forger: Forger) -> None:
        forger.post(forger.seal(0, 1, 1), 0, 2, 1)

    assert refusals(run_with(prepare, sealed, 1, act), message_rows) == ["unknown_address"]


@SEALED
def test_a_message_of_an_old_round(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """Authentic once, too old now."""
    kept: list[tuple[Envelope, int]] = []

    def keep(forger: Forger) -> None:
        receiver = forger.successor(0, 1)
        kept.append((forger.seal(0, receiver, 1), receiver))

    def act(forger: Forger) -> None:
        envelope, receiver = kept[0]
        forger.post(envelope, 0, receiver, 2)

    run_with(prepare, sealed, 1, keep)
    assert refusals(run_with(prepare, sealed, 2, act), message_rows) == ["stale_round"]


@SEALED
def test_the_same_message_twice(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """A member's own update is intercepted and sent again while the round lasts."""
    seal = f"anonymity.sealed={sealed}"
    slow = "compute={kind: uniform, low: 4 samples/s, high: 40 samples/s}"
    simulation = prepare(*RING, seal, slow)
    forger = Forger(simulation)
    seen: list[int] = []
    simulation.world.network.listen(partial(repeat, forger, seen))
    for number in range(1, 500):
        # The wire is read every tenth of a second: an interception comes soon after the first.
        simulation.clock.call_at(number / 10, Rank.START, 10**6, simulation.world.network.read_wire)
    simulation.run()
    assert len(seen) == 3
    assert refusals(simulation, message_rows) == ["replay"] * 3
    assert simulation.proxy.outcome.rounds_completed == 3
    assert [row["updates_used"] for row in simulation.log.rounds] == [5, 5, 5]


def repeat(forger: Forger, seen: list[int], message: Message) -> None:
    """Sends the first update of every round a second time, right after it has passed."""
    if message.kind == "update" and message.round_number not in seen:
        seen.append(message.round_number)
        forger.post(message.content, message.sender, message.receiver, message.round_number)


@SEALED
def test_a_damaged_message(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """One bit flipped anywhere: never accepted, and corrupt if the header still names an open path."""

    def act(forger: Forger) -> None:
        receiver = forger.successor(0, 1)
        for attempt in range(20):
            forger.post(tamper(forger.seal(0, receiver, 1), stream(attempt, "bit")), 0, receiver, 1)

    found = refusals(run_with(prepare, sealed, 1, act), message_rows)
    assert len(found) == 20
    assert set(found) <= {"corrupt", "unknown_address", "stale_round"}
    assert found.count("corrupt") >= 8


@SEALED
def test_a_member_that_is_no_neighbour(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """Sealed with its own proper keys, from a member of the round that the graph does not allow; or another kind."""

    def act(forger: Forger) -> None:
        neighbour = forger.successor(0, 1)
        stranger = next(node for node in range(1, 5) if node != neighbour)
        forger.post(forger.seal(0, stranger, 1), 0, stranger, 1)
        forger.post(forger.seal(0, neighbour, 1, kind="model"), 0, neighbour, 1)

    assert refusals(run_with(prepare, sealed, 1, act), message_rows) == ["not_neighbour"] * 2


@pytest.mark.parametrize("reads_log", [False, True])
def test_a_message_is_judged_by_the_plan_at_its_arrival(prepare: Prepare, message_rows: Rows, reads_log: bool) -> None:
    """A member that is no neighbour yet: a newer plan does not admit what has arrived, read or unread until then."""
    at_s = training_s(prepare, 1)
    simulation = prepare(*RING)
    forger = Forger(simulation)

    def send() -> None:
        receiver = next(node for node in range(1, 5) if node != forger.successor(0, 1))
        forger.post(forger.seal(0, receiver, 1), 0, receiver, 1)
        simulation.clock.call_at(at_s + 0.3, Rank.START, 0, partial(plan_anew, receiver))

    def plan_anew(receiver: int) -> None:
        if reads_log:
            len(simulation.log.messages)
        endpoint = simulation.clients[receiver].endpoint
        held = endpoint.session(1)
        assert held is not None
        peer = Peer(simulation.records[1].addresses[0], forger.keys(0, 1).public)
        expected = {"update": [*held.assignment.expect_from["update"], peer]}
        endpoint.enter(held.assignment._replace(epoch=held.assignment.epoch + 1, expect_from=expected))

    simulation.clock.call_at(at_s, Rank.START, 0, send)
    simulation.run()
    assert refusals(simulation, message_rows) == ["not_neighbour"]


@SEALED
def test_orders_come_from_the_proxy_only(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """A client that plays proxy is not listened to."""

    def act(forger: Forger) -> None:
        forger.world.network.send(Batch(0, [1], "control", 1, 100, 82, ["train for me"]))

    simulation = run_with(prepare, sealed, 1, act)
    assert [row["reason"] for row in message_rows(simulation.log, outcome="rejected")] == ["not_neighbour"]


@SEALED
def test_no_member_has_two_votes(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """A neighbour that seals two updates of one round is heard once, and crowds no other out."""
    ring = (*RING, "protocol.exchange_with=2", f"anonymity.sealed={sealed}")
    at_s = training_s(prepare, 1, *ring)
    simulation = prepare(*ring)

    def act() -> None:
        forger = Forger(simulation)
        receiver = forger.successor(0, 1)
        forger.post(forger.seal(0, receiver, 1), 0, receiver, 1)

    simulation.clock.call_at(at_s, Rank.START, 0, act)
    simulation.run()
    table = simulation.log.aggregations
    rows = list(zip(*(table[name].tolist() for name in ("round", "aggregator", "contributor")), strict=True))
    assert len(rows) == len(set(rows)) == 3 * 5 * 3
    assert [row["reason"] for row in message_rows(simulation.log, outcome="rejected")] == ["replay"]


@SEALED
def test_a_stranger_has_no_address(prepare: Prepare, sealed: str) -> None:
    """Only registered nodes get one, and each round's addresses are new."""
    simulation = prepare(*RING, f"anonymity.sealed={sealed}")
    simulation.run()
    addresses = [simulation.records[number].addresses for number in (1, 2, 3)]
    assert all(sorted(table) == [0, 1, 2, 3, 4] for table in addresses)
    assert len({address for table in addresses for address in table.values()}) == 15
    assert all(len(address) == 32 for table in addresses for address in table.values())


def test_unsealed_messages_are_checked_for_their_path(prepare: Prepare, message_rows: Rows) -> None:
    """`sealed: false` proves nothing about a sender; what the graph does not allow is refused all the same."""

    def act(forger: Forger) -> None:
        receiver = forger.successor(0, 1)
        stranger = next(node for node in range(1, 5) if node != receiver)
        forger.post(forger.seal(0, stranger, 1), 0, stranger, 1)

    assert refusals(run_with(prepare, "false", 1, act), message_rows) == ["not_neighbour"]


@pytest.mark.parametrize("sealed", ["true", "sizes", "false"])
def test_a_message_may_overtake_its_assignment(prepare: Prepare, message_rows: Rows, sealed: str) -> None:
    """On slow downlinks the first model is there before the order to expect it: it is kept, then read."""
    simulation = prepare("network.downlink=100 B/s", f"anonymity.sealed={sealed}", "data.features=1")
    simulation.run()
    first = message_rows(simulation.log, kind="bootstrap")
    orders = [row for row in message_rows(simulation.log, kind="control", round=0, sender=3) if row["receiver"] != 6]
    assert [row["arrived_s"] for row in first] < [row["arrived_s"] for row in orders]
    assert [(row["outcome"], row["used"]) for row in first] == [("delivered", True)] * 3
    assert simulation.proxy.outcome.rounds_completed == 1


def test_a_message_without_its_assignment_is_refused_after_ten_seconds(prepare: Prepare, message_rows: Rows) -> None:
    """Client 0 joins and its assignment (sent at 1.11 s) is lost; two updates for it arrive at 2.638 s all the same."""
    simulation, seen = prepare("network.retransmit={tries: 1}"), {}
    network = simulation.world.network
    node = np.arange(len(network.links.up))
    cut = Partition(node == simulation.world.proxy, node == 0, both=False)
    simulation.clock.call_at(1.1, Rank.FAULT, 0, lambda: network.impair(cut))
    simulation.clock.call_at(1.2, Rank.FAULT, 0, lambda: network.repair(cut))

    def look() -> None:
        rows = message_rows(simulation.log, kind="update", receiver=0)
        seen[simulation.clock.now] = [(row["outcome"], row["reason"], round(row["arrived_s"], 9)) for row in rows]

    for at_s in (12.637, 12.639):
        simulation.clock.call_at(at_s, Rank.START, 0, look)
    simulation.run()
    assert seen == {
        12.637: [("in_flight", "", 2.638)] * 2,
        12.639: [("rejected", "unknown_address", 2.638)] * 2,
    }


@pytest.mark.parametrize("protocol", ["gossip", "rotating_leader"])
def test_counting_seals_gives_the_same_message_log_as_sealing(
    prepare: Prepare, message_rows: Rows, protocol: str
) -> None:
    """`sizes` and `true` differ in arithmetic only."""
    chosen = f"protocol={{kind: {protocol}, train_per_round: 3}}"
    more = ["protocol.exchange_with=2"] if protocol == "gossip" else []
    logs = []
    for sealed in ("true", "sizes"):
        simulation = prepare("clients=4", "data.samples=80", "rounds=2", chosen, *more, f"anonymity.sealed={sealed}")
        simulation.run()
        logs.append(repr(message_rows(simulation.log)))
    assert logs[0] == logs[1]


def test_a_member_with_other_keys_than_its_plan_knows_is_refused(prepare: Prepare, message_rows: Rows) -> None:
    """Its message is one of the plan's, from its address, to the right receiver; only the keys are not."""
    at_s = training_s(prepare, 1, "anonymity.sealed=sizes")
    simulation = prepare(*RING, "anonymity.sealed=sizes")

    def change_keys() -> None:
        held = simulation.clients[0].endpoint.session(1)
        assert held is not None
        held.keys = Forger(simulation).keys(0, 99)
        held.update(held.assignment._replace(epoch=1))

    simulation.clock.call_at(at_s, Rank.START, 0, change_keys)
    simulation.run()
    updates = message_rows(simulation.log, round=1, kind="update")
    # What is sent to it is sealed for the keys that the plan knows.
    assert all((row["outcome"] == "rejected") == (0 in (row["sender"], row["receiver"])) for row in updates)


def test_a_message_of_a_round_that_was_left_is_refused_at_once(prepare: Prepare, message_rows: Rows) -> None:
    """All its messages have ended, and the next invitation has not come: it is not early."""
    slow = "network.proxy_uplink=200 B/s"
    quiet = prepare(*RING, slow)
    quiet.run()
    drained_s = max(row["arrived_s"] for row in message_rows(quiet.log, round=1))
    answered_s = min(row["sent_s"] for row in message_rows(quiet.log, round=2) if row["sender"] < 5)
    assert drained_s + 0.3 < answered_s
    simulation = prepare(*RING, slow)

    def act() -> None:
        forger = Forger(simulation)
        forger.post(forger.seal(0, forger.successor(0, 1), 1), 0, forger.successor(0, 1), 1)

    simulation.clock.call_at(drained_s + 0.05, Rank.START, 0, act)
    told: list[str] = []
    soon_s = drained_s + 0.5
    simulation.clock.call_at(soon_s, Rank.START, 0, lambda: told.extend(refusals(simulation, message_rows)))
    simulation.run()
    assert told == ["unknown_address"]


OVERTAKES = (
    *("clients=3", "data.samples=60", "seed=2732", "rounds=1", "anonymity.sealed=true"),
    "protocol={kind: gossip, train_per_round: 3, deadline: 20 s, selection: first_come, send_at: barrier, "
    "invite_timeout: 60 s, grace: 0 s, min_updates: 2, exchange_with: 2}",
    *("network.sharing=ideal", "network.uplink=1 MB/s", "network.downlink=1 MB/s", "network.loss=0.2"),
    *("network.latency={kind: uniform, low: 10 ms, high: 400 ms}", "network.retransmit={tries: 5, timeout: 2 s}"),
    "compute={kind: lognormal, median: 20 samples/s, sigma: 0.5}",
    "faults=[{kind: crash, who: proxy, start: 8 s, end: 38 s}, {kind: intruder, every: 500 ms, start: 8 s, end: 38 s}]",
    "proxy={standby: true, takeover: 3 s}",
    "update=[{kind: clip_coordinates, bound: 0.1}, {kind: gaussian, multiplier: 2, scale: own_norm, per_record: true}]",
)
"""A world in which the server's order for the collection is lost at first, and the model comes before it."""


def test_a_message_that_overtakes_its_order_is_kept_for_whoever_has_answered(
    prepare: Prepare, message_rows: Rows
) -> None:
    """The model that is collected is the client's own message, not a copy of it that an intruder sends later."""
    simulation = prepare(*OVERTAKES)
    simulation.run()
    rows = message_rows(simulation.log, kind="collect")
    assert [(row["sender"] < 3, row["outcome"], row["reason"]) for row in rows] == [
        (True, "delivered", ""),
        (False, "rejected", "replay"),
    ]
