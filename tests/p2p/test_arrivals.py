"""The reference of the sharing models, by hand; and the engines of a run against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.arrivals import SHARING_MODELS, Flows, arrivals
from p2p.engines import FifoEngine, IdealEngine
from p2p.fair_engine import FairEngine
from p2p.sharing import Engine, Transfer
from tests.engine_runs import advance

ENGINES: dict[str, Any] = {"ideal": IdealEngine, "fifo": FifoEngine, "fair": FairEngine}


def arrive(
    sharing: str, links: Sequence[tuple[float, float]], latency_s: Any, *flows: tuple[int, int, float, float]
) -> list[float]:
    up, down = np.array(links, dtype=float).T
    return arrivals(sharing, up, down, latency_s, as_flows(list(flows))).tolist()  # type: ignore[no-any-return]


def as_flows(flows: list[tuple[int, int, float, float]]) -> Flows:
    table = np.array(flows, dtype=float).reshape(-1, 4)
    return Flows(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2], table[:, 3])


def test_ideal_takes_the_slower_link() -> None:
    """20 bytes at min(10, 4) B/s and half a second of latency, twice at once."""
    assert arrive("ideal", [(10, 1), (1, 4)], 0.5, (0, 1, 20, 1), (0, 1, 20, 1)) == [6.5, 6.5]


def test_fifo_queues_at_the_uplink() -> None:
    """Order of sending, also when an earlier one is handed over later in the list."""
    assert arrive("fifo", [(10, 1), (1, np.inf)], 0.5, (0, 1, 20, 3), (0, 1, 30, 0)) == [5.5, 3.5]
    assert arrive("fifo", [(10, 1), (1, np.inf)], 0.5, (0, 1, 20, 0), (0, 1, 30, 0)) == [2.5, 5.5]


def test_fifo_serves_first_bytes_in_order() -> None:
    """The nearer sender's first byte is there first, though it was handed over later."""
    latency = [[0, 0, 3.0], [0, 0, 0.5], [0, 0, 0]]
    assert arrive("fifo", [(20, 1), (20, 1), (1, 10)], latency, (0, 2, 20, 0), (1, 2, 20, 2)) == [6.5, 4.5]


def test_fifo_ties_go_by_sender_then_sending() -> None:
    """Equal first bytes: node 0 before node 1; an unlimited uplink's two by order."""
    links = [(np.inf, 1), (np.inf, 1), (1, 10)]
    assert arrive("fifo", links, 0, (1, 2, 20, 0), (0, 2, 20, 0), (0, 2, 10, 0)) == [5, 2, 3]


def test_a_link_of_no_capacity_holds_bytes_forever_and_nothing_not_at_all() -> None:
    """Infinity, without warnings; no bytes take no time."""
    for sharing in SHARING_MODELS:
        assert arrive(sharing, [(0, 1), (1, 1)], 0.5, (0, 1, 5, 0), (1, 0, 0, 1)) == [np.inf, 1.5]


def test_unknown_models_are_named() -> None:
    """With the ones that exist."""
    with pytest.raises(ValueError, match="ideal, fifo, fair"):
        arrive("tcp", [(1, 1)], 0)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[float], list[float], list[tuple[int, int, float, float]]]:
    """Many ties and some unlimited links."""
    nodes = draw(st.integers(2, 4))
    capacity = st.one_of(st.sampled_from([1.0, 2.0, 10.0, np.inf]), st.floats(0.1, 100))
    node = st.integers(0, nodes - 1)
    size = st.one_of(st.sampled_from([1.0, 6.0]), st.floats(0.01, 50))
    start = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(0, 20))
    flows = draw(st.lists(st.tuples(node, node, size, start), min_size=1, max_size=10))
    ups = draw(st.lists(capacity, min_size=nodes, max_size=nodes))
    return ups, draw(st.lists(capacity, min_size=nodes, max_size=nodes)), flows


def drive(engine: Engine, flows: list[tuple[int, int, float, float]], latency_s: Any) -> list[float]:
    """Arrivals out of an engine. What starts at one instant starts before that instant is worked off: without latency,
    first bytes of one instant are served by sender only if all of them are known."""
    arrived = [np.inf] * len(flows)
    order = sorted(range(len(flows)), key=lambda n: flows[n][3])
    while order or engine.next_s() < np.inf:
        next_s = engine.next_s()
        if order and flows[order[0]][3] <= next_s:
            src, dst, size, start = flows[order[0]]
            engine.start(start, [Transfer(order.pop(0), src, dst, size, latency_s[src][dst], False, start)])
            continue
        for ended in advance(engine, next_s):
            arrived[ended.transfer.row] = ended.time_s
    return arrived


@pytest.mark.slow
@pytest.mark.parametrize("sharing", SHARING_MODELS)
@settings(max_examples=150, deadline=None)
@given(case=cases(), seed=st.integers(0, 99))
def test_engines_arrive_as_the_reference(
    sharing: str, case: tuple[list[float], list[float], list[tuple[int, int, float, float]]], seed: int
) -> None:
    """Driven event by event, each engine gives the arrivals of the closed form."""
    up, down, flows = np.array(case[0]), np.array(case[1]), case[2]
    latency_s = np.random.default_rng(seed).choice([0.0, 0.25, 1.0], (len(up), len(up)))
    expected = arrivals(sharing, up, down, latency_s, as_flows(flows))
    assert drive(ENGINES[sharing](up, down), flows, latency_s) == pytest.approx(expected.tolist(), rel=1e-9)
