"""Progressive filling: feasible, max-min, and the same by both ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from p2p.pair_filling import PairFilling
from p2p.progressive_filling import DOWNLINK, NO_LINK, UPLINK, max_min_rates

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Instance = tuple[Ids, Ids, Floats, Floats]

CAPACITY = st.one_of(st.floats(0.01, 1e9), st.integers(1, 5).map(float), st.just(np.inf), st.just(0.0))


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Some flows among some nodes; capacities often equal, sometimes none or without bound."""
    nodes = draw(st.integers(1, 8))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), min_size=1, max_size=30))
    up = np.array(draw(st.lists(CAPACITY, min_size=nodes, max_size=nodes)))
    down = np.array(draw(st.lists(CAPACITY, min_size=nodes, max_size=nodes)))
    src, dst = np.array(pairs, dtype=np.int64).T
    return src, dst, up, down


def load(link: Ids, rates: Floats, links: int) -> Floats:
    return np.asarray(np.bincount(link, weights=rates, minlength=links), dtype=np.float64)


@pytest.mark.slow
@settings(deadline=None)
@given(instances())
def test_no_link_carries_more_than_it_can(instance: Instance) -> None:
    """Feasible, up to rounding."""
    src, dst, up, down = instance
    rates = max_min_rates(src, dst, up, down).rates
    assert (rates >= 0).all()
    finite = np.where(rates < np.inf, rates, 0.0)
    assert (load(src, finite, len(up)) <= up * (1 + 1e-9)).all()
    assert (load(dst, finite, len(down)) <= down * (1 + 1e-9)).all()
    unlimited = (up[src] == np.inf) & (down[dst] == np.inf)
    assert ((rates == np.inf) == unlimited).all()


@pytest.mark.slow
@settings(deadline=None)
@given(instances())
def test_every_flow_has_a_full_bottleneck_on_which_it_is_fastest(instance: Instance) -> None:
    """The definition of max-min fairness, for the link that is named; so no capacity that a flow could use is idle."""
    src, dst, up, down = instance
    rates, bottleneck = max_min_rates(src, dst, up, down)
    for flow, rate in enumerate(rates):
        if bottleneck[flow] == NO_LINK:
            assert rate == np.inf
            continue
        ends, capacity = (src, up) if bottleneck[flow] == UPLINK else (dst, down)
        sharing = ends == ends[flow]
        assert rates[sharing].sum() == pytest.approx(capacity[ends[flow]], rel=1e-9)
        assert rate >= rates[sharing].max() * (1 - 1e-9)


@pytest.mark.slow
@settings(deadline=None)
@given(instances(), st.floats(1e-3, 1e3), st.randoms(use_true_random=False))
def test_scale_and_order_do_not_matter(instance: Instance, scale: float, luck: object) -> None:
    """Twice the capacity, twice the rates; the order of flows is nothing."""
    src, dst, up, down = instance
    rates = max_min_rates(src, dst, up, down).rates
    assert max_min_rates(src, dst, up * scale, down * scale).rates == pytest.approx(rates * scale, rel=1e-9)
    order = np.arange(len(src))
    luck.shuffle(order)  # type: ignore[attr-defined]
    assert max_min_rates(src[order], dst[order], up, down).rates == pytest.approx(rates[order], rel=1e-9)


@pytest.mark.slow
@given(instances(), st.data())
@settings(max_examples=200, deadline=None)
def test_pairs_fill_as_flows_do_while_flows_come_and_go(instance: Instance, data: st.DataObject) -> None:
    """After each change: the rates of a filling by flows, and the very bits of a fresh filling by pairs."""
    src, dst, up, down = instance
    pairs = PairFilling(up, down)
    present = np.zeros(len(src), dtype=np.bool_)
    for _ in range(data.draw(st.integers(1, 6))):
        flips = np.array(data.draw(st.lists(st.integers(0, len(src) - 1), min_size=1, unique=True)))
        for flow in flips:
            pairs.add(src[flow : flow + 1], dst[flow : flow + 1], -1.0 if present[flow] else 1.0)
            present[flow] = not present[flow]
        if data.draw(st.booleans()):
            node = data.draw(st.integers(0, len(up) - 1))
            up[node] = data.draw(CAPACITY)
            pairs.set_capacity(node, up[node], down[node])
        s, d = src[present], dst[present]
        level = pairs.levels()
        assert np.minimum(level[s], level[len(up) + d]) == pytest.approx(max_min_rates(s, d, up, down).rates, rel=1e-9)
        fresh = PairFilling(up, down)
        fresh.add(s, d)
        assert (fresh.levels() == level).all()


@pytest.mark.parametrize(
    ("pairs", "up", "down", "rates", "held"),
    [
        ([(0, 1), (0, 2)], [10, 1, 1], [9, 9, 9], [5, 5], [UPLINK, UPLINK]),
        ([(0, 2), (1, 2)], [10, 10, 1], [9, 9, 8], [4, 4], [DOWNLINK, DOWNLINK]),
        # A slow sender leaves room at the receiver, which the other takes: not the equal split.
        ([(0, 2), (1, 2)], [1, 10, 1], [9, 9, 8], [1, 7], [UPLINK, DOWNLINK]),
        # Node 0 is held at node 2 (share 2 of 6), so its other flow gets 10 - 2.
        (
            [(0, 2), (0, 3), (1, 2), (1, 2)],
            [10, 99, 1, 1],
            [9, 9, 6, 99],
            [2, 8, 2, 2],
            [DOWNLINK, UPLINK, DOWNLINK, DOWNLINK],
        ),
        ([(0, 1)], [np.inf, 1], [1, np.inf], [np.inf], [NO_LINK]),
        ([(0, 1)], [0, 1], [1, 5], [0], [UPLINK]),
    ],
)
def test_hand_computed(
    pairs: list[tuple[int, int]], up: list[float], down: list[float], rates: list[float], held: list[int]
) -> None:
    """Small cases with their rates and bottlenecks."""
    src, dst = np.array(pairs).T
    found = max_min_rates(src, dst, np.array(up, dtype=float), np.array(down, dtype=float))
    assert found.rates.tolist() == rates
    assert found.bottleneck.tolist() == held


def test_no_flows_no_rates() -> None:
    """Nothing under way is fine."""
    none = np.empty(0, dtype=np.int64)
    assert max_min_rates(none, none, np.ones(2), np.ones(2)).rates.tolist() == []
