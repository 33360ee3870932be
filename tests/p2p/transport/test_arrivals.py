"""When flows arrive: by hand, and against the textbook models over many random cases."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.transport.flow_arrivals import SHARING_MODELS, Flows, arrivals
from tests.p2p import reference
from tests.p2p.reference import Flow

EACH_MODEL = pytest.mark.parametrize("sharing", SHARING_MODELS)
Case = tuple[list[float], list[float], list[list[float]], list[Flow]]


def as_flows(flows: Sequence[Flow]) -> Flows:
    """The same flows as columns."""
    table = np.array([flow[:4] for flow in flows], dtype=float).reshape(-1, 4)
    return Flows(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2], table[:, 3])


def found(sharing: str, case: Case, **more: Any) -> list[float]:
    """What the product says."""
    up, down, latency_s, flows = case
    return arrivals(sharing, np.array(up), np.array(down), np.array(latency_s), as_flows(flows), **more).tolist()  # type: ignore[no-any-return]


def expected(sharing: str, case: Case) -> list[float]:
    """What the textbook says, exactly, rounded once at the end."""
    up, down, latency_s, flows = case
    exact_up, exact_down = ([Fraction(x) if x < np.inf else x for x in some] for some in (up, down))
    delays = [[Fraction(x) for x in row] for row in latency_s]
    exact_flows = [Flow(flow.src, flow.dst, Fraction(flow.size), Fraction(flow.start_s)) for flow in flows]
    return [float(x) for x in reference.MODELS[sharing](exact_up, exact_down, delays, exact_flows).arrived_s]


def assert_close(ours: Sequence[float], theirs: Sequence[float], flows: Sequence[Flow]) -> None:
    """To 1e-9 of each flow's duration, and to what a clock at that time can tell apart."""
    for one, other, flow in zip(ours, theirs, flows, strict=True):
        if other == np.inf:
            assert one == np.inf
        else:
            # Each of a few dozen events before it may have rounded the time by some 1e-13 of it.
            assert abs(one - other) <= 1e-9 * (other - flow.start_s) + 1e-11 * other


def arrive(sharing: str, links: Sequence[tuple[float, float]], latency_s: Any, *flows: tuple[Any, ...]) -> list[float]:
    """Arrivals of flows (src, dst, size, start) over links (up, down)."""
    up, down = (list(map(float, some)) for some in zip(*links, strict=True))
    delays = np.broadcast_to(np.asarray(latency_s, dtype=float), (len(up), len(up))).tolist()
    return found(sharing, (up, down, delays, [Flow(*flow) for flow in flows]))


def test_ideal_takes_the_slower_link() -> None:
    """20 bytes at min(10, 4) B/s and half a second of latency, twice at once."""
    assert arrive("ideal", [(10, 1), (1, 4)], 0.5, (0, 1, 20, 1), (0, 1, 20, 1)) == [6.5, 6.5]


def test_fifo_queues_at_the_uplink() -> None:
    """In the order of sending, also when an earlier one comes later in the list."""
    assert arrive("fifo", [(10, 1), (1, np.inf)], 0.5, (0, 1, 20, 3), (0, 1, 30, 0)) == [5.5, 3.5]
    assert arrive("fifo", [(10, 1), (1, np.inf)], 0.5, (0, 1, 20, 0), (0, 1, 30, 0)) == [2.5, 5.5]


def test_fifo_serves_first_bytes_in_order() -> None:
    """The nearer sender's first byte is there first, though it was handed over later."""
    latency = [[0, 0, 3.0], [0, 0, 0.5], [0, 0, 0]]
    assert arrive("fifo", [(20, 1), (20, 1), (1, 10)], latency, (0, 2, 20, 0), (1, 2, 20, 2)) == [6.5, 4.5]


def test_fifo_ties_go_by_sender_then_order_of_sending() -> None:
    """Equal first bytes: node 0 before node 1; two of an unlimited uplink in their order."""
    links = [(np.inf, 1), (np.inf, 1), (1, 10)]
    assert arrive("fifo", links, 0, (1, 2, 20, 0), (0, 2, 20, 0), (0, 2, 10, 0)) == [5, 2, 3]


def test_fifo_by_hand() -> None:
    """Two senders meet at one downlink; the second message of one waits at its uplink."""
    links = [(1000, 1000), (500, 2000), (2000, 400), (250, 800)]
    latency = [[0, 0, 0.1, 0.2], [0, 0, 0.1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    # Leaves 0..1, first byte 0.1, downlink 0.1..2.6; leaves 0..0.4, first byte 0.1, but sender 0 comes first:
    # downlink 2.6..3.1; leaves 1..1.5, first byte 1.2, downlink 1.2..1.825.
    times = arrive("fifo", links, latency, (0, 2, 1000, 0), (1, 2, 200, 0), (0, 3, 500, 0))
    assert times == pytest.approx([2.6, 3.1, 1.825])


def test_fair_flows_share_and_then_one_has_all() -> None:
    """10 B/s: 100 and 50 bytes start together; the short one ends at 10 s, the long one then runs alone to 15 s."""
    links = [(10, 1), (1, 99), (1, 99)]
    assert arrive("fair", links, 0.5, (0, 1, 100, 0), (0, 2, 50, 0)) == [15.5, 10.5]


def test_a_fair_newcomer_takes_its_share_from_then_on() -> None:
    """Alone for 5 s (50 of 100 bytes), then half the link each: the first ends at 15 s, the newcomer (80) at 18 s."""
    assert arrive("fair", [(10, 1), (1, 99), (1, 99)], 0, (0, 1, 100, 0), (0, 2, 80, 5)) == [15, 18]


def test_fair_incast_is_held_by_the_downlink() -> None:
    """Three fast senders, one slow receiver: 1 B/s each."""
    assert arrive("fair", [(10, 9)] * 3 + [(1, 3)], 0, *((n, 3, 6, 1) for n in range(3))) == [7, 7, 7]


@pytest.mark.parametrize(
    ("pairs", "up", "down", "rates"),
    [
        ([(0, 1), (0, 2)], [10, 1, 1], [9, 9, 9], [5, 5]),
        ([(0, 2), (1, 2)], [10, 10, 1], [9, 9, 8], [4, 4]),
        # A slow sender leaves room at the receiver, which the other takes: not the equal split.
        ([(0, 2), (1, 2)], [1, 10, 1], [9, 9, 8], [1, 7]),
        # Node 0 is held at node 2 (share 2 of 6), so its other flow gets 10 - 2.
        ([(0, 2), (0, 3), (1, 2), (1, 2)], [10, 99, 1, 1], [9, 9, 6, 99], [2, 8, 2, 2]),
    ],
)
def test_fair_rates_by_hand(
    pairs: list[tuple[int, int]], up: list[float], down: list[float], rates: list[float]
) -> None:
    """Each flow is as large as what its rate carries in 840 s, so all rates stay until then."""
    flows = [(src, dst, rate * 840, 0) for (src, dst), rate in zip(pairs, rates, strict=True)]
    assert arrive("fair", list(zip(up, down, strict=True)), 0, *flows) == pytest.approx([840] * len(pairs), rel=1e-14)


@EACH_MODEL
def test_a_link_of_no_capacity_holds_bytes_forever_and_no_bytes_not_at_all(sharing: str) -> None:
    """Infinity, without warnings; no bytes take no time."""
    assert arrive(sharing, [(0, 1), (1, 1)], 0.5, (0, 1, 5, 0), (1, 0, 0, 1)) == [np.inf, 1.5]


@EACH_MODEL
def test_no_flows_no_arrivals(sharing: str) -> None:
    """Nothing under way is fine."""
    assert arrive(sharing, [(1, 1)], 0) == []


@EACH_MODEL
def test_parts_of_a_byte_count(sharing: str) -> None:
    """Half a byte at 1 B/s takes half a second."""
    assert arrive(sharing, [(1, 1), (1, 1)], 0, (0, 1, 0.5, 0)) == [0.5]


def test_unknown_models_are_named() -> None:
    """With the ones that exist."""
    with pytest.raises(ValueError, match="ideal, fifo, fair"):
        arrive("tcp", [(1, 1)], 0)


RATES = st.one_of(st.sampled_from([1.0, 2.0, 3.0, 10.0, np.inf, np.inf]), st.integers(1, 10**6).map(lambda x: x / 100))
SIZES = st.one_of(st.sampled_from([0, 1, 6, 100]), st.integers(0, 10**4), st.integers(10**9, 10**12))
STARTS = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.integers(0, 2 * 10**6).map(lambda x: x / 1e5))
LATENCIES = st.sampled_from([0.0, 0.25, 1.0, 0.04])


@st.composite
def cases(draw: st.DrawFn, *, most: int = 10) -> Case:
    """Few nodes and many ties; some links without limit, some without capacity, many flows to one receiver."""
    nodes = draw(st.integers(2, 5))
    rate = RATES if draw(st.booleans()) else st.one_of(RATES, RATES, RATES, st.just(0.0))
    node = st.integers(0, nodes - 1)
    receiver = st.just(0) if draw(st.booleans()) else node
    flow = st.builds(Flow, node, receiver, SIZES, STARTS, lost=st.just(False))
    flows = draw(st.lists(flow, min_size=1, max_size=most))
    # Far from zero a double tells fewer instants apart.
    later_s = draw(st.sampled_from([0.0, 0.0, 1e5, 1e9]))
    flows = [one._replace(start_s=one.start_s + later_s) for one in flows]
    up, down = (draw(st.lists(rate, min_size=nodes, max_size=nodes)) for _ in range(2))
    delays = draw(st.lists(st.lists(LATENCIES, min_size=nodes, max_size=nodes), min_size=nodes, max_size=nodes))
    return up, down, delays, flows


@pytest.mark.slow
@EACH_MODEL
@settings(max_examples=200, deadline=None)
@given(case=cases())
def test_arrivals_are_those_of_the_textbook(sharing: str, case: Case) -> None:
    """Staggered or together, near zero or after 30 years, up to a terabyte."""
    assert_close(found(sharing, case), expected(sharing, case), case[3])


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["ideal", "fifo"])
@settings(max_examples=100, deadline=None)
@given(case=cases(most=20))
def test_ideal_and_fifo_are_their_definition_to_the_bit(sharing: str, case: Case) -> None:
    """Sums are formed in the order of the formula, so floats give the same bits."""
    up, down, delays, flows = case
    assert found(sharing, case) == reference.MODELS[sharing](up, down, delays, flows).arrived_s


def random_case(seed: int, nodes: int, count: int, **kinds: Any) -> Case:
    """A case of a size for which hypothesis is too slow; `kinds`: how starts, receivers, rates and sizes are drawn."""
    rng = np.random.default_rng(seed)
    up, down = rng.uniform(2, 50, nodes), rng.uniform(10, 100, nodes)
    if kinds.get("rates") == "equal":
        up[:], down[:] = 10.0, 20.0
    if kinds.get("rates") == "unlimited":
        up[rng.random(nodes) < 0.3] = down[rng.random(nodes) < 0.5] = np.inf
    if kinds.get("rates") == "none":
        up[rng.random(nodes) < 0.1] = down[rng.random(nodes) < 0.1] = 0.0
    src = rng.integers(0, nodes, count)
    dst = (src + rng.integers(1, nodes, count)) % nodes
    if kinds.get("receivers") == "few":
        dst = rng.integers(0, 3, count)
    sizes = rng.integers(10, 1000, count)
    if kinds.get("sizes") == "equal":
        sizes[:] = 800
    if kinds.get("sizes") == "wide":
        sizes = np.rint(10 ** rng.uniform(0, 9, count)).astype(np.int64)
    starts = rng.uniform(0, kinds.get("stagger_s", 0.0), count) + kinds.get("begins_s", 0.0)
    if kinds.get("starts") == "waves":
        starts = np.rint(starts / 5) * 5
    flows = list(map(Flow, src.tolist(), dst.tolist(), sizes.tolist(), starts.tolist()))
    return up.tolist(), down.tolist(), np.zeros((nodes, nodes)).tolist(), flows


KINDS: dict[str, dict[str, Any]] = {
    "together": {},
    "together-equal": {"sizes": "equal", "rates": "equal"},
    "staggered": {"stagger_s": 60.0},
    "sparse": {"stagger_s": 5000.0},
    "waves": {"stagger_s": 60.0, "starts": "waves", "sizes": "equal"},
    "incast": {"receivers": "few", "stagger_s": 20.0},
    "unlimited": {"rates": "unlimited", "stagger_s": 20.0},
    "no-capacity": {"rates": "none", "stagger_s": 20.0},
    "wide": {"sizes": "wide", "stagger_s": 1e6},
    "late": {"stagger_s": 100.0, "begins_s": 1e9},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_larger_cases_are_those_of_the_textbook(kind: str, seed: int) -> None:
    """120 flows among 12 nodes; the oracle in floats, whose own error is far below the tolerance."""
    case = random_case(seed, 12, 120, **KINDS[kind])
    theirs = reference.fair(*case).arrived_s
    assert_close(found("fair", case), theirs, case[3])


@pytest.mark.slow
def test_many_flows_over_many_nodes_all_arrive() -> None:
    """4,000 staggered flows: more than any first allocation holds; none is forgotten, none beats its links."""
    case = random_case(1, 300, 4_000, stagger_s=400.0)
    for sharing in SHARING_MODELS:
        times = np.array(found(sharing, case))
        best = np.array([flow.start_s + flow.size / min(case[0][flow.src], case[1][flow.dst]) for flow in case[3]])
        assert np.isfinite(times).all()
        assert (times >= best * (1 - 1e-12)).all()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(case=cases(), scale=st.sampled_from([2.0, 0.5, 1024.0]))
def test_the_unit_of_time_does_not_matter(case: Case, scale: float) -> None:
    """Twice as fast links and half the starts and latencies: half the times, to the bit (powers of two are exact)."""
    up, down, delays, flows = case
    faster = ([x * scale for x in up], [x * scale for x in down], (np.array(delays) / scale).tolist(),
              [flow._replace(start_s=flow.start_s / scale) for flow in flows])  # fmt: skip
    for sharing in SHARING_MODELS:
        assert [x * scale for x in found(sharing, faster)] == found(sharing, case)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(case=cases(), luck=st.randoms(use_true_random=False))
def test_the_order_of_the_list_does_not_matter_to_ideal_and_fair(case: Case, luck: Any) -> None:
    """Fair rates are sums of other rates, so the last digits may differ."""
    order = list(range(len(case[3])))
    luck.shuffle(order)
    mixed = (*case[:3], [case[3][number] for number in order])
    for sharing in ("ideal", "fair"):
        straight = found(sharing, case)
        assert_close(found(sharing, mixed), [straight[number] for number in order], mixed[3])


def test_a_stranger_leaves_an_end_where_it_was() -> None:
    """Other flows come and go; an end that they do not touch does not move by a bit."""
    links = [(0.3, 99), (1, 99), (7, 5), (7, 99)]
    first = (0, 1, 17, 0.1)
    alone = arrive("fair", links, 0, first)
    others = [(2, 3, 3 + number % 3, 0.1 + number / 9) for number in range(50)]
    assert arrive("fair", links, 0, first, *others)[0] == alone[0]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(case=cases(), grid_s=st.sampled_from([0.25, 1.0, 0.1]))
def test_a_grid_delays_starts_by_less_than_a_step(case: Case, grid_s: float) -> None:
    """A flow alone ends as late as it started late; with others it never ends before it can."""
    up, down, delays, flows = case
    best = expected("ideal", case)
    alone = found("fair", (up, down, delays, flows[:1]), grid_s=grid_s)[0]
    slack_s = 1e-9 * (1 + best[0]) if best[0] < np.inf else 0.0
    assert best[0] - slack_s <= alone < best[0] + grid_s + slack_s or alone == best[0] == np.inf
    for one, other in zip(found("fair", case, grid_s=grid_s), best, strict=True):
        assert one >= other * (1 - 1e-9)


@pytest.mark.slow
def test_a_finer_grid_is_closer_to_the_exact_ends() -> None:
    """300 staggered flows: some steps off on average."""
    case = random_case(2, 20, 300, stagger_s=5.0)
    exact = np.array(found("fair", case))
    errors = [float(np.mean(np.abs(np.array(found("fair", case, grid_s=grid_s)) - exact))) for grid_s in (4, 1, 0.25)]
    assert all(coarse > fine for coarse, fine in pairwise(errors))
    assert errors[-1] < 8 * 0.25
