"""Links are drawn by name from the seed: per node, and per pair in both directions alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p2p.config.distributions import Constant, Lognormal, Uniform
from p2p.links.latency import Regions
from p2p.links.link_table import Links
from p2p.links.settings import NetworkSettings

DRAWN = NetworkSettings(
    uplink=Lognormal(median=2.5e6, sigma=0.5), downlink=Constant(value=12.5e6), latency=Uniform(low=0.02, high=0.12)
)


def test_only_clients_are_limited() -> None:
    """The proxy and the others are unlimited until the scenario says otherwise."""
    links = Links(DRAWN, seed=1, clients=5, nodes=9)
    assert np.isfinite(links.up[:5]).all()
    assert np.isinf(links.up[5:]).all()
    assert np.isinf(links.down[5:]).all()
    links.limit(5, up=1000.0, down=None)
    assert (links.up[5], links.down[5]) == (1000.0, np.inf)


def test_a_path_takes_the_same_time_both_ways() -> None:
    """Latency belongs to the unordered pair."""
    links, everyone = Links(DRAWN, seed=1, clients=5, nodes=9), np.arange(9)
    matrix = np.array([links.latencies(node, everyone) for node in range(9)])
    assert (matrix == matrix.T).all()
    assert ((matrix >= 0.02) & (matrix <= 0.12)).all()
    assert len(np.unique(matrix[np.triu_indices(9, 1)])) == 36


def test_draws_are_whole_bytes_and_nanoseconds() -> None:
    """Rounded when made, so that other machines compute with the same numbers."""
    links = Links(DRAWN, seed=1, clients=50, nodes=54)
    assert (links.up[:50] == np.rint(links.up[:50])).all()
    latencies = links.latencies(0, np.arange(54))
    assert np.allclose(latencies * 1e9, np.rint(latencies * 1e9), rtol=0, atol=1e-6)


def test_more_nodes_move_nothing() -> None:
    """A node's links and a pair's latency depend on their ids alone, also when latencies are no longer tabled."""
    small, large = Links(DRAWN, 1, clients=5, nodes=9), Links(DRAWN, 1, clients=2000, nodes=2004)
    assert small.up[:5].tolist() == large.up[:5].tolist()
    receivers = np.arange(5)
    assert small.latencies(3, receivers).tolist() == large.latencies(3, receivers).tolist()


@pytest.mark.parametrize("nodes", [9, 2004])
@pytest.mark.parametrize("latency", [Uniform(low=0.02, high=0.12), Lognormal(median=0.05, sigma=1.0), Regions()])
def test_no_pair_is_faster_than_the_lower_bound(nodes: int, latency: Any) -> None:
    """The event core moves on to that time before it asks for the delays of messages that have left."""
    links = Links(replace(DRAWN, latency=latency), 1, nodes - 4, nodes)
    assert 0 <= links.least_latency_s <= links.latencies(0, np.arange(1, nodes)).min()
    if isinstance(latency, Uniform):
        assert links.least_latency_s >= 0.02


def test_another_seed_is_another_world() -> None:
    """Equal seeds give equal links, others do not."""
    assert Links(DRAWN, 1, 5, 9).up.tolist() == Links(DRAWN, 1, 5, 9).up.tolist()
    assert Links(DRAWN, 1, 5, 9).up.tolist() != Links(DRAWN, 2, 5, 9).up.tolist()


def test_a_link_has_a_rate() -> None:
    """No rate comes out as zero, whatever the distribution."""
    settings = NetworkSettings(uplink=Uniform(low=0.1, high=0.4))
    assert (Links(settings, 1, 20, 20).up >= 1).all()


@pytest.mark.parametrize("kind", ["uplink", "downlink"])
def test_constants_stay_what_they_are(kind: str) -> None:
    """A constant is the same for every client."""
    settings = NetworkSettings(uplink=Constant(value=1000.0), downlink=Constant(value=1000.0))
    links = Links(settings, 3, 4, 4)
    assert (links.up if kind == "uplink" else links.down).tolist() == [1000.0] * 4


@pytest.mark.parametrize("clients", [50, 2000])
def test_the_quick_way_finds_the_same_latencies(clients: int) -> None:
    """To and from nodes beside the clients, of pairs in the latency cache, and of others; tabled or not."""
    links = Links(DRAWN, 1, clients=clients, nodes=clients + 4)
    links.prefetch(np.array([[7, 3], [2, 9], [2, 5], [7, 1]]))
    cases = [
        (3, [clients]),
        (clients, [3]),
        (clients, [1, 2, 3]),
        (2, [9, 5]),
        (7, [3, 1]),
        (7, [3]),
        (4, list(range(9))),
    ]
    for sender, receivers in cases:
        assert links.latencies_of(sender, receivers).tolist() == links.latencies(sender, np.array(receivers)).tolist()
