"""An exchange that is foretold, by hand: three in a ring, with one uplink ten times as slow as the others."""

from __future__ import annotations

import numpy as np
import pytest

from p2p.distributions import Constant
from p2p.fair import PAIRED_NODES
from p2p.fair_foretelling import FairForetelling
from p2p.foretelling import Load, Plan
from p2p.links import Links, NetworkSettings
from p2p.records import BOTTLENECKS

RING = np.array([[0, 1], [1, 2], [2, 0]])
MEMBERS, PROXY = np.arange(3), 3
UPDATE, REPORT = Load("update", 1, 122, 82), Load("control", 1, 87, 82)


def ring_links(down: float) -> Links:
    """100 ms apart; clients 0 and 1 send 1000 bytes/s, client 2 only 100."""
    settings = NetworkSettings(downlink=Constant(value=down), latency=Constant(value=0.1))
    links = Links(settings, 0, 3, 4)
    links.up[:3] = [1000.0, 1000.0, 100.0]
    return links


def test_a_report_delays_the_update_that_is_still_leaving() -> None:
    """And so the average of whoever waits for it."""
    found = FairForetelling(ring_links(1e4)).exchange(Plan(UPDATE, REPORT, PROXY, MEMBERS, RING, np.zeros(3)))
    assert found is not None
    # Client 2 hears from 1 at 0.222 s, when 99.8 bytes of its own update are left: these and the report go at 50
    # bytes/s each until the report has left, after 1.74 s; the last 12.8 bytes take 0.128 s.
    assert found.updates.left_s == pytest.approx([0.122, 0.122, 2.09])
    assert found.updates.arrived_s == pytest.approx([0.222, 0.222, 2.19])
    assert found.averages_s == pytest.approx([2.19, 0.222, 0.222])
    assert found.reports.left_s == pytest.approx([2.277, 0.309, 1.962])
    assert found.reports.arrived_s == pytest.approx([2.377, 0.409, 2.062])
    assert RING[found.heard, 0].tolist() == [[2], [0], [1]]


def test_everyone_is_heard_in_the_order_of_arrival() -> None:
    """Each sends to both others; what comes together is in the order of senders."""
    edges = np.array([[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]])
    found = FairForetelling(ring_links(1e4)).exchange(
        Plan(UPDATE, REPORT, PROXY, MEMBERS, edges, np.array([0.5, 0.0, 0.0]))
    )
    assert found is not None
    assert edges[found.heard, 0].tolist() == [[1, 2], [0, 2], [1, 0]]
    assert found.first_s == pytest.approx([0.344, 0.844, 0.344])


@pytest.mark.parametrize("few", [PAIRED_NODES, 0], ids=["few nodes", "as if they were many"])
def test_short_downlinks_hold_updates_back(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 bytes/s take what an uplink of 1000 sends in 0.244 s instead of 0.122."""
    monkeypatch.setattr("p2p.fair.PAIRED_NODES", few)
    found = FairForetelling(ring_links(500.0)).exchange(Plan(UPDATE, REPORT, PROXY, MEMBERS, RING, np.zeros(3)))
    assert found is not None
    # Client 2 hears from 1 at 0.344 s, when 87.6 bytes of its own update are left: these and the report go at 50
    # bytes/s each until the report has left, after 1.74 s; the last 0.6 bytes take 0.006 s.
    assert found.updates.left_s == pytest.approx([0.244, 0.244, 2.09])
    assert found.averages_s == pytest.approx([2.19, 0.344, 0.344])
    assert found.reports.left_s == pytest.approx([2.277, 0.431, 2.084])
    assert [BOTTLENECKS[code] for code in np.asarray(found.updates.bottleneck)] == ["downlink", "downlink", "uplink"]


@pytest.mark.parametrize("few", [PAIRED_NODES, 0], ids=["few nodes", "as if they were many"])
def test_a_report_is_felt_beyond_its_uplink(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Client 0 sends to 1 and 2, client 3 to 2 and 1; the downlink of 2, which all wait for, is short."""
    monkeypatch.setattr("p2p.fair.PAIRED_NODES", few)
    links = Links(NetworkSettings(downlink=Constant(value=1e6), latency=Constant(value=0.0)), 0, 4, 5)
    links.up[:4], links.down[2] = [400.0, 1e5, 1e5, 1e3], 400.0
    edges = np.array([[0, 1], [0, 2], [1, 0], [1, 3], [2, 0], [2, 3], [3, 1], [3, 2]])
    update, report = Load("update", 1, 1000, 82), Load("control", 1, 100, 82)
    found = FairForetelling(links).exchange(Plan(update, report, 4, np.arange(4), edges, np.zeros(4)))
    assert found is not None
    # 0 and 3 have heard from 1 and 2 at 0.02 s. 0 has 200 bytes/s for each of its updates: with its report three share
    # the uplink, and while 2 gets less from 0 than 200, it gets more from 3, who has room for it.
    third, report_s = 400 / 3, 0.02 + 100 / (400 / 3)
    assert found.averages_s[[0, 3]] == pytest.approx([0.02, 0.02])
    assert found.reports.left_s[0] == pytest.approx(report_s)
    sent_by_then = 200 * 0.02 + third * (report_s - 0.02)
    assert found.updates.left_s[1] == pytest.approx(report_s + (1000 - sent_by_then) / 200)
    assert found.updates.left_s[7] < found.updates.left_s[1]
    more = (400 - third) * (report_s - 0.02) + 200 * 0.02
    assert found.updates.left_s[7] == pytest.approx(report_s + (1000 - more) / 200)
