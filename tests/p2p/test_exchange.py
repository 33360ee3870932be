"""An exchange that is foretold, by hand: three in a ring, with one uplink ten times as slow as the others."""

from __future__ import annotations

import numpy as np
import pytest

from p2p.distributions import Constant
from p2p.fair_foretelling import FairForetelling
from p2p.foretelling import Load, Plan
from p2p.links import Links, NetworkSettings

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


def test_a_short_downlink_cannot_be_foretold() -> None:
    """900 bytes/s cannot take what an uplink of 1000 sends."""
    assert FairForetelling(ring_links(900.0)).exchange(Plan(UPDATE, REPORT, PROXY, MEMBERS, RING, np.zeros(3))) is None
