"""What is foretold is what the links would do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.distributions import Constant, Uniform
from p2p.fair_foretelling import FairForetelling
from p2p.foretelling import Load, Plan, Sendings, by_time
from p2p.links import Links, NetworkSettings
from p2p.parcels import Wave
from p2p.records import BOTTLENECK
from p2p.uplinks import Uplinks

CLIENTS, HUB = 4, 5


def links(up: float = 1000.0, down: float = 4000.0) -> Links:
    """Four clients and two nodes without limits, 0.1 s from each other."""
    settings = NetworkSettings(
        uplink=Constant(value=up), downlink=Constant(value=down), latency=Uniform(low=0.1, high=0.1)
    )
    return Links(settings, 0, CLIENTS, CLIENTS + 2)


def test_one_message_to_a_hub_and_back_by_hand() -> None:
    """500 bytes take 0.5 s up and 0.125 s down, and then 0.1 s of latency."""
    told, load = FairForetelling(links()), Load("control", 3, 500, 40)
    up = told.to_hub(load, np.array([2, 0]), HUB, np.array([1.0, 2.0]))
    assert up.left_s.tolist() == [1.5, 2.5]
    assert up.arrived_s.tolist() == [1.6, 2.6]
    assert (up.last_s, up.kind, up.round_number, up.receivers) == (2.6, "control", 3, HUB)
    down = told.from_hub(load, HUB, np.array([1, HUB - 1]), 1.0)
    assert down.left_s.tolist() == [1.125, 1.0]
    assert down.arrived_s.tolist() == [1.225, 1.1]
    assert np.asarray(down.bottleneck).tolist() == [BOTTLENECK["downlink"], BOTTLENECK["latency"]]


@pytest.mark.parametrize(("up", "down", "known"), [(1000.0, 4000.0, True), (0.0, 4000.0, False), (np.inf, 1.0, False)])
def test_links_that_it_does_not_know(up: float, down: float, known: bool) -> None:
    """An uplink of nothing or without limit, and a hub with one."""
    drawn = links(down=down)
    drawn.up[2] = up
    assert FairForetelling(drawn).knows(CLIENTS, (HUB, HUB - 1)) == known
    drawn.limit(HUB, None, 10.0)
    assert not FairForetelling(drawn).knows(CLIENTS, (HUB, HUB - 1))


def test_a_downlink_that_would_be_short_does_not_fit() -> None:
    """Three uplinks of 1000 onto one downlink of 4000 do, five do not fit into 2900."""
    edges = np.array([[1, 0], [2, 0], [3, 0]])
    assert FairForetelling(links()).fits(edges, 1)
    assert not FairForetelling(links(down=2900.0)).fits(edges, 1)
    assert FairForetelling(links(down=2900.0)).fits(edges, 2)


@given(
    st.lists(
        st.tuples(st.floats(100, 1e7), st.floats(0, 50), st.floats(0, 60)),
        min_size=CLIENTS,
        max_size=CLIENTS,
    ),
    st.integers(1, 3),
    st.integers(1, 100_000),
    st.integers(1, 2000),
)
def test_two_on_an_uplink_leave_as_waves_do(
    senders: list[tuple[float, float, float]], degree: int, size_bytes: int, small_bytes: int
) -> None:
    """To the last bit, whether the small one comes meanwhile or later, and whichever leaves first."""
    drawn = links()
    drawn.up[:CLIENTS] = [up for up, _, _ in senders]
    sent_s = np.array([sent for _, sent, _ in senders])
    joins_s = sent_s + np.array([later for _, _, later in senders])
    edges = np.array([(node, other) for node in range(CLIENTS) for other in others(node)[:degree]])
    update, report = Load("update", 1, size_bytes, 0), Load("control", 1, small_bytes, 0)
    plan = Plan(update, report, HUB, np.arange(CLIENTS), edges, sent_s)
    left_s, small_s = FairForetelling(drawn).joined(plan, joins_s)
    down = np.full(CLIENTS + 2, np.inf)
    uplinks = Uplinks(drawn.up.tolist(), down)
    for node in range(CLIENTS):
        many = wave(node, others(node)[:degree], size_bytes, sent_s.item(node))
        small = wave(node, [HUB], small_bytes, joins_s.item(node))
        assert uplinks.carry(sent_s.item(node), many)
        assert uplinks.carry(joins_s.item(node), small)
        assert (many.left_s, small.left_s) == (left_s.item(node), small_s.item(node))


def others(node: int) -> list[int]:
    """All clients but one."""
    return [one for one in range(CLIENTS) if one != node]


def wave(sender: int, receivers: list[int], size_bytes: int, now_s: float) -> Wave:
    """A wave handed over now."""
    made = Wave("update", 1, sender, receivers, size_bytes, 0, [None] * len(receivers), 1)
    made.sent_s, made.latencies = now_s, [0.0] * len(receivers)
    return made


def test_sendings_are_put_in_order_of_time() -> None:
    """Those of one instant stay as they are; what is the same for all stays one number."""
    times_s = np.array([2.0, 1.0, 2.0, 1.0])
    some = Sendings("update", 1, np.arange(4), HUB, 10, 2, times_s, times_s + 1, times_s + 2, 0)
    ordered = by_time(some)
    assert np.asarray(ordered.senders).tolist() == [1, 3, 0, 2]
    assert ordered.arrived_s.tolist() == [3.0, 3.0, 4.0, 4.0]
    assert ordered.receivers == HUB
    assert by_time(ordered) is ordered
