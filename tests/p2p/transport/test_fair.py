"""Fair sharing in time: stories by hand, crashes and slow links against the textbook, and fairness at any instant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from p2p.clock import Rank
from p2p.log.records import NO_NODE
from p2p.transport.impairments import Partition
from tests.p2p import reference
from tests.p2p.fairness import assert_max_min_fair
from tests.p2p.reference import Change, Flow
from tests.p2p.small_network import SmallNetwork

Rows = Callable[..., list[dict[str, Any]]]


def fair(up: list[float], down: list[float], **more: Any) -> SmallNetwork:
    """A network under fair sharing in which nothing is sent again."""
    return SmallNetwork(len(up), up=up, down=down, sharing="fair", tries=1, **more)


def told(post: SmallNetwork, message_rows: Rows) -> list[tuple[float, float, str]]:
    """When each message left and arrived, and what held it."""
    return [(row["left_s"], row["arrived_s"], row["bottleneck"]) for row in message_rows(post.log)]


def test_latency_comes_after_the_last_byte(message_rows: Rows) -> None:
    """10 B/s shared: 50 and 100 bytes leave at 10 and 15 s, and arrive half a second later."""
    post = fair([10, 1, 1], [99, 99, 99], latency_s=0.5)
    post.send(0, [1, 2], [100, 50])
    post.clock.run()
    assert told(post, message_rows) == [(15.0, 15.5, "uplink"), (10.0, 10.5, "uplink")]


def test_a_lost_message_uses_the_uplink_alone(message_rows: Rows) -> None:
    """The receiver's 10 B/s are all for the other."""
    post = fair([10, 10, 1], [9, 9, 10], latency_s=0.5)
    post.network.impair(Partition(np.arange(3) == 0, np.arange(3) == 2))
    post.send(0, [2], 100)
    post.send(1, [2], 100)
    post.clock.run()
    assert [(row["left_s"], row["outcome"]) for row in message_rows(post.log)] == [(10.0, "lost"), (10.0, "delivered")]


def test_no_bytes_and_unlimited_links_take_no_time(message_rows: Rows) -> None:
    """They leave when they start; latency alone holds them."""
    post = fair([np.inf, 1], [9, np.inf], latency_s=0.5)
    post.send(0, [1], 100)
    post.send(1, [0], 0)
    post.clock.run()
    assert told(post, message_rows) == [(0.0, 0.5, "latency"), (0.0, 0.5, "latency")]


def test_the_bottleneck_is_the_link_that_held_a_flow_most_of_its_time(message_rows: Rows) -> None:
    """Held by the receiver for 2 s beside another, then by its own uplink for 8 s: the uplink."""
    post = fair([10, 10, 1], [99, 99, 10], latency_s=0.0)
    post.links.down[2] = 10.0
    post.send(0, [2], 90)
    post.send(1, [2], 10)
    post.clock.run()
    # 5 B/s each until the short one has left at 2 s; then 80 bytes at 10 B/s.
    assert [round(left_s, 9) for left_s, _, _ in told(post, message_rows)] == [10.0, 2.0]
    assert [bottleneck for _, _, bottleneck in told(post, message_rows)][1] == "downlink"


def test_a_crash_frees_links_and_tells_what_had_left(message_rows: Rows) -> None:
    """Two at 5 B/s; the receiver of one goes down after 4 s; the other has the link to itself."""
    post = fair([10, 1, 1], [99, 99, 99], latency_s=0.0)
    post.send(0, [1, 2], 100)
    post.clock.call_at(4.0, Rank.FAULT, 2, lambda: post.network.take_down(2))
    post.clock.run()
    rows = message_rows(post.log)
    assert [(row["left_s"], row["left_bytes"], row["outcome"]) for row in rows] == [
        (12.0, 100, "delivered"),
        (4.0, 20, "lost"),
    ]


def test_a_new_rate_holds_for_what_is_under_way(message_rows: Rows) -> None:
    """Full rate for 2 s, a fifth of it until 22 s, then full rate again."""
    post = fair([10, 1], [99, 99], latency_s=0.5)
    post.send(0, [1], 100)
    post.clock.call_at(2.0, Rank.FAULT, 0, lambda: post.network.scale_links([0], 0.2, 1.0))
    post.clock.call_at(22.0, Rank.FAULT, 0, lambda: post.network.scale_links([0], 5.0, 1.0))
    post.clock.run()
    assert told(post, message_rows) == [(26.0, 26.5, "uplink")]


def test_a_grid_lets_changes_count_from_its_next_point_on(message_rows: Rows) -> None:
    """Starts at 0.3 wait for 1 s on a grid of 1 s; the largest delay is stated."""
    post = fair([10, 1], [99, 99], latency_s=0.0, grid_s=1.0)
    post.clock.call_at(0.3, Rank.START, 0, partial(post.send, 0, [1, 1], [17, 100]))
    post.clock.run()
    # 5 B/s each from 1 s; the first ends at 4.4 s, but its half is free only from 5 s on.
    assert [row["left_s"] for row in message_rows(post.log)] == pytest.approx([4.4, 5 + 80 / 10])
    assert post.network.latest_start_s == pytest.approx(0.7)


def test_on_a_grid_ends_between_two_points_come_at_the_old_rates(message_rows: Rows) -> None:
    """A third of 10 B/s each: what the ends at 5.1 and 5.4 s free is given to the last flow at 10 s."""
    post = fair([10, 1], [99, 99], latency_s=0.0, grid_s=10.0)
    post.send(0, [1, 1, 1], [17, 18, 100])
    post.clock.run()
    left_s = [row["left_s"] for row in message_rows(post.log)]
    assert left_s == pytest.approx([5.1, 5.4, 10 + (100 - 100 / 3) / 10])


class Troubled:
    """A random story: sends, crashes and slow links over some nodes; in the product and for the textbook."""

    def __init__(self, seed: int, nodes: int, count: int, lasts_s: float) -> None:
        rng = np.random.default_rng(seed)
        up, down = rng.uniform(2, 50, nodes), rng.uniform(10, 100, nodes)
        up[rng.random(nodes) < 0.1] = down[rng.random(nodes) < 0.3] = np.inf
        self.post = fair(up.tolist(), down.tolist(), latency_s=0.0)
        self.up, self.down = up.copy(), down.copy()
        self.moves: list[tuple[float, str, Any]] = []
        for at_s in np.sort(rng.uniform(0, lasts_s, count)).tolist():
            src = int(rng.integers(nodes))
            dst = NO_NODE if rng.random() < 0.1 else int((src + rng.integers(1, nodes)) % nodes)
            self.moves.append((at_s, "send", (src, dst, int(rng.integers(10, 500)))))
        for at_s in rng.uniform(0, lasts_s, count // 10).tolist():
            node, factor = int(rng.integers(nodes)), float(rng.choice([0.1, 0.5, 3.0]))
            self.moves += [(at_s, "slow", (node, factor)), (at_s + lasts_s / 10, "slow", (node, 1 / factor))]
        for number, at_s in enumerate(np.sort(rng.uniform(0, lasts_s, count // 20)).tolist()):
            # Each node crashes once at most: a second crash while it is down would mean nothing.
            if number < nodes:
                self.moves += [(at_s, "down", number), (at_s + lasts_s / 15, "up", number)]
        self.moves.sort(key=lambda move: move[0])

    def play(self) -> SmallNetwork:
        """Hands the story to the product."""
        network = self.post.network
        for at_s, what, how in self.moves:
            if what == "send":
                self.post.clock.call_at(at_s, Rank.START, how[0], partial(self.post.send, how[0], [how[1]], how[2]))
                continue
            act: dict[str, Callable[[], None]] = {
                "slow": lambda how=how: network.scale_links([how[0]], how[1], how[1]),  # type: ignore[misc]
                "down": lambda how=how: network.take_down(how),  # type: ignore[misc]
                "up": lambda how=how: network.bring_up(how),  # type: ignore[misc]
            }
            self.post.clock.call_at(at_s, Rank.FAULT, 0, act[what])
        return self.post

    def expected(self) -> tuple[list[Flow], reference.Result]:
        """What the textbook says, and the flows: those that a node which is down hands over do not exist."""
        flows, changes, is_down = list[Flow](), list[Change](), set[int]()
        up, down = self.up.copy(), self.down.copy()
        for at_s, what, how in self.moves:
            if what == "send" and how[0] not in is_down:
                src, dst, size = how
                flows.append(Flow(src, dst, size, at_s, lost=dst == NO_NODE or dst in is_down))
            elif what == "slow":
                up[how[0]], down[how[0]] = up[how[0]] * how[1], down[how[0]] * how[1]
                changes.append(Change(at_s, ("up", how[0]), float(up[how[0]])))
                changes.append(Change(at_s, ("down", how[0]), float(down[how[0]])))
            elif what == "down":
                is_down.add(how)
                gone = [n for n, flow in enumerate(flows) if how == flow.src or (how == flow.dst and not flow.lost)]
                changes.append(Change(at_s, aborted=tuple(gone)))
            elif what == "up":
                is_down.discard(how)
        zeros = np.zeros((len(up), len(up))).tolist()
        return flows, reference.fair(self.up.tolist(), self.down.tolist(), zeros, flows, changes)


@pytest.mark.slow
@pytest.mark.parametrize("lasts_s", [5.0, 60.0, 600.0])
@pytest.mark.parametrize("seed", range(4))
def test_crashes_and_slow_links_are_those_of_the_textbook(seed: int, lasts_s: float, message_rows: Rows) -> None:
    """200 messages among 10 nodes: each leaves when the textbook says, and aborted ones had sent as much."""
    story = Troubled(seed, 10, 200, lasts_s)
    post = story.play()
    post.clock.run()
    flows, result = story.expected()
    rows = message_rows(post.log)
    assert [(row["sender"], row["receiver"], row["size_bytes"]) for row in rows] == [flow[:3] for flow in flows]
    aborted = 0
    for number, (row, flow) in enumerate(zip(rows, flows, strict=True)):
        if result.left_s[number] == np.inf:
            aborted += 1
            assert row["outcome"] == "lost"
            assert row["left_bytes"] == pytest.approx(flow.size - result.unsent[number], abs=0.5 + 1e-6)
        else:
            assert row["left_s"] == pytest.approx(result.left_s[number], rel=1e-9)
            assert row["left_bytes"] == flow.size
    assert aborted > 0


@pytest.mark.slow
@pytest.mark.parametrize("lasts_s", [0.0, 5.0, 60.0, 600.0])
@pytest.mark.parametrize("seed", range(5))
def test_every_flow_has_a_bottleneck_at_any_instant(seed: int, lasts_s: float) -> None:
    """50 random instants of a troubled story of 40 nodes and 600 messages."""
    story = Troubled(seed, 40, 600, lasts_s)
    post, moving = story.play(), list[int]()
    instants = np.random.default_rng([seed, 7]).uniform(0, 2 * lasts_s + 20, 50)
    for at_s in instants.tolist():
        check = lambda: moving.append(assert_max_min_fair(post.network._memory))  # noqa: E731
        post.clock.call_at(at_s, Rank.START, 10**6, check)
    post.clock.run()
    assert len(moving) == 50
    assert max(moving) > (5 if lasts_s > 100 else 50)


@pytest.mark.slow
def test_ends_do_not_depend_on_how_often_rates_are_read(message_rows: Rows) -> None:
    """Bit for bit the same, with and without 200 pauses at which the log is read."""
    found = []
    for pauses in (0, 200):
        post = Troubled(3, 10, 200, 60.0).play()
        for at_s in np.linspace(0.001, 200, pauses).tolist():
            post.clock.call_at(at_s, Rank.START, 10**6, lambda post=post: len(post.log.messages["outcome"]))  # type: ignore[misc]
        post.clock.run()
        found.append([(row["left_s"], row["outcome"], row["left_bytes"]) for row in message_rows(post.log)])
    assert str(found[0]) == str(found[1])
