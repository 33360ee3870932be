"""Fair sharing in time: against a brute-force simulator, closed forms, and itself stepped otherwise."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import p2p.fair
from p2p.fair import FairShare
from p2p.local_share import LocalShare
from p2p.progressive_filling import DOWNLINK, NO_LINK, UPLINK

Floats = NDArray[np.float64]
Flow = tuple[int, int, float, float]
"""Source, destination, bytes, start."""
Case = tuple[list[float], list[float], list[Flow]]
Kind = type[FairShare] | type[LocalShare]
BOTH = pytest.mark.parametrize("kind", [FairShare, LocalShare])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few nodes, many ties: sizes, starts and capacities from small sets, or anything."""
    nodes = draw(st.integers(2, 5))
    capacity = st.one_of(st.sampled_from([1.0, 2.0, 3.0, 10.0, np.inf]), st.floats(0.1, 100))
    node = st.integers(0, nodes - 1)
    size = st.one_of(st.sampled_from([0.0, 1.0, 6.0]), st.floats(0.01, 50))
    start = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(0, 20))
    flows = draw(st.lists(st.tuples(node, node, size, start), min_size=1, max_size=12))
    ups = draw(st.lists(capacity, min_size=nodes, max_size=nodes))
    return ups, draw(st.lists(capacity, min_size=nodes, max_size=nodes)), flows


def run(
    case: Case,
    pauses: tuple[float, ...] = (),
    ask: bool = False,
    grid_s: float | None = None,
    kind: Kind = FairShare,
) -> dict[int, float]:
    """Ends of all flows; `pauses`: moments at which the caller looks, `ask`: asks for the next event all the time."""
    up, down, flows = case
    engine = FairShare(np.array(up), np.array(down), grid_s) if grid_s else kind(np.array(up), np.array(down))
    ends: dict[int, float] = {}
    moments = sorted({flow[3] for flow in flows} | set(pauses))
    for moment in moments:
        for number, (src, dst, size, start) in enumerate(flows):
            if start == moment:
                one = np.array([number]), np.array([src]), np.array([dst]), np.array([size])
                engine.start(moment, *one)
                if ask:
                    engine.next_event_s()
        if ask or moment in pauses:
            ends |= {number: end for number, end, _ in engine.advance(moment).rows()}
    while (next_s := engine.next_event_s()) < np.inf:
        ends |= {number: end for number, end, _ in engine.advance(next_s if ask else 1e9).rows()}
    return ends


def brute_force(case: Case) -> dict[int, float]:
    """The same by re-filling from scratch at every event, with scalars."""
    up, down, flows = case
    left = dict(enumerate(size for _, _, size, _ in flows))
    ends: dict[int, float] = {}
    now = 0.0
    while len(ends) < len(flows):
        going = [n for n in left if n not in ends and flows[n][3] <= now]
        rates = fill({n: (flows[n][0], flows[n][1]) for n in going}, up, down)
        done = [n for n in going if left[n] <= 1e-12 * flows[n][2] or rates[n] == np.inf]
        if done:
            ends |= dict.fromkeys(done, now)
            continue
        step = min([left[n] / rates[n] for n in going if rates[n]] + [f[3] - now for f in flows if f[3] > now])
        for n in going:
            left[n] -= rates[n] * step
        starts = [f[3] for f in flows if f[3] > now and f[3] <= (now + step) * (1 + 1e-15)]
        now = min(starts) if starts else now + step
    return ends


def fill(pairs: dict[int, tuple[int, int]], up: list[float], down: list[float]) -> dict[int, float]:
    """Textbook filling: freeze the flows of the one link with the least share, again and again."""
    rates: dict[int, float] = {}
    room = {("up", i): c for i, c in enumerate(up)} | {("down", i): c for i, c in enumerate(down)}
    while len(rates) < len(pairs):
        free = {n: (("up", s), ("down", d)) for n, (s, d) in pairs.items() if n not in rates}
        links = {link for both in free.values() for link in both}
        share = {link: room[link] / sum(link in both for both in free.values()) for link in links}
        lowest = min(links, key=lambda link: (share[link], link))
        for n, both in free.items():
            if lowest in both:
                rates[n] = share[lowest]
                for link in both:
                    room[link] = max(room[link] - rates[n], 0.0) if room[link] < np.inf else np.inf
    return rates


@pytest.mark.slow
@BOTH
@given(case=cases())
@settings(max_examples=200, deadline=None)
def test_ends_equal_brute_force(kind: Kind, case: Case) -> None:
    """Per flow, to rounding."""
    ends, expected = run(case, kind=kind), brute_force(case)
    assert ends.keys() == expected.keys()
    for number, end in ends.items():
        assert end == pytest.approx(expected[number], rel=1e-9, abs=1e-9)


@pytest.mark.slow
@settings(deadline=None)
@given(cases())
def test_flows_fill_as_pairs_do(case: Case) -> None:
    """The filling for large networks gives the same ends as that for small ones."""
    expected = run(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(p2p.fair, "PAIRED_NODES", 0)
        ends = run(case)
    assert ends == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@BOTH
@settings(deadline=None)
@given(case=cases(), pauses=st.lists(st.floats(0, 30), max_size=6))
def test_ends_do_not_depend_on_steps(kind: Kind, case: Case, pauses: list[float]) -> None:
    """Bit for bit the same, however often the caller looks."""
    expected = run(case, kind=kind)
    assert run(case, tuple(pauses), kind=kind) == expected
    assert run(case, ask=True, kind=kind) == expected
    assert run(case, tuple(pauses), ask=True, kind=kind) == expected


@pytest.mark.slow
@settings(deadline=None)
@given(cases(), st.sampled_from([0.25, 1.0, 0.1]))
def test_a_grid_delays_starts_by_less_than_a_step(case: Case, grid_s: float) -> None:
    """A flow alone ends exactly as late as it started late; with others it still ends, and never before it can."""
    alone = (case[0], case[1], case[2][:1])
    src, dst, size, start = case[2][0]
    shortest = size / min(case[0][src], case[1][dst])
    end = run(alone, grid_s=grid_s)[0]
    assert start + shortest - 1e-9 <= end < start + grid_s + shortest + 1e-9
    ends = run(case, grid_s=grid_s)
    assert set(ends) == set(range(len(case[2])))
    for number, (src, dst, size, start) in enumerate(case[2]):
        assert ends[number] >= start + size / min(case[0][src], case[1][dst]) - 1e-9


def engine_of(kind: Kind, up: list[float], down: list[float]) -> FairShare | LocalShare:
    return kind(np.array(up, dtype=float), np.array(down, dtype=float))


def start(engine: FairShare | LocalShare, time_s: float, *flows: tuple[int, int, int, float]) -> None:
    ids, src, dst, sizes = (np.array(column) for column in zip(*flows, strict=True))
    engine.start(time_s, ids, src, dst, sizes.astype(float))


@BOTH
def test_two_share_then_one_has_all(kind: Kind) -> None:
    """10 B/s: 100 and 50 bytes start together; the short one ends at 10 s, the long one then runs alone to 15 s."""
    engine = engine_of(kind, [10, 1, 1], [99, 99, 99])
    start(engine, 0.0, (7, 0, 1, 100), (8, 0, 2, 50))
    assert engine.next_event_s() == 10.0
    assert engine.advance(10.0).rows() == [(8, 10.0, UPLINK)]
    assert engine.advance(99.0).rows() == [(7, 15.0, UPLINK)]
    assert engine.next_event_s() == np.inf


@BOTH
def test_a_newcomer_takes_its_share_from_then_on(kind: Kind) -> None:
    """Alone for 5 s (50 of 100 bytes), then half the link each: the first ends at 15 s, the newcomer (80) at 18 s."""
    engine = engine_of(kind, [10, 1, 1], [99, 99, 99])
    start(engine, 0.0, (1, 0, 1, 100))
    start(engine, 5.0, (2, 0, 2, 80))
    assert engine.advance(30.0).rows() == [(1, 15.0, UPLINK), (2, 18.0, UPLINK)]


@BOTH
def test_incast_is_held_by_the_downlink(kind: Kind) -> None:
    """Three fast senders, one slow receiver."""
    engine = engine_of(kind, [10, 10, 10, 1], [9, 9, 9, 3])
    start(engine, 1.0, (0, 0, 3, 6), (1, 1, 3, 6), (2, 2, 3, 6))
    assert engine.advance(99.0).rows() == [(n, 7.0, DOWNLINK) for n in range(3)]


@BOTH
def test_who_ends_frees_the_link_for_who_starts_then(kind: Kind) -> None:
    """At one instant the end comes first: both run at full rate, one after the other."""
    engine = engine_of(kind, [10, 1], [99, 99])
    start(engine, 0.0, (1, 0, 1, 100))
    start(engine, 10.0, (2, 0, 1, 100))
    assert engine.advance(20.0).rows() == [(1, 10.0, UPLINK), (2, 20.0, UPLINK)]


@BOTH
def test_an_abort_frees_the_link_and_tells_what_had_not_left(kind: Kind) -> None:
    """Two at 5 B/s; one is aborted after 4 s with 80 of 100 bytes to go; the other speeds up."""
    engine = engine_of(kind, [10, 1, 1], [99, 99, 99])
    start(engine, 0.0, (1, 0, 1, 100), (2, 0, 2, 100))
    assert engine.abort(4.0, np.array([2, 55])).tolist() == [80.0, 0.0]
    assert engine.advance(99.0).rows() == [(1, 12.0, UPLINK)]
    assert engine.abort(99.0, np.array([1])).tolist() == [0.0]


@BOTH
def test_capacity_changes_count_from_then_on(kind: Kind) -> None:
    """The receiver's link drops to nothing from 2 s to 5 s."""
    engine = engine_of(kind, [10, 1], [99, 20])
    start(engine, 0.0, (1, 0, 1, 100))
    engine.set_capacity(2.0, 1, 1.0, 0.0)
    assert engine.next_event_s() == np.inf
    engine.set_capacity(5.0, 1, 1.0, 4.0)
    assert engine.advance(99.0).rows() == [(1, 25.0, DOWNLINK)]


@BOTH
def test_a_lost_message_uses_the_uplink_alone(kind: Kind) -> None:
    """Receiver -1: the downlink is left to the other sender."""
    engine = engine_of(kind, [10, 10, 1], [9, 9, 10])
    start(engine, 0.0, (1, 0, -1, 100), (2, 1, 2, 100))
    assert engine.advance(99.0).rows() == [(1, 10.0, UPLINK), (2, 10.0, UPLINK)]


@BOTH
def test_nothing_to_send_and_unlimited_links_take_no_time(kind: Kind) -> None:
    """They end when they start, held by no link, and `next_event_s` says so."""
    engine = engine_of(kind, [np.inf, 1], [9, np.inf])
    start(engine, 3.0, (1, 0, 1, 100), (2, 1, 0, 0))
    assert engine.next_event_s() == 3.0
    assert engine.advance(3.0).rows() == [(1, 3.0, NO_LINK), (2, 3.0, NO_LINK)]


@BOTH
def test_a_stranger_leaves_an_end_where_it_was(kind: Kind) -> None:
    """Other flows come and go; an end that they do not touch does not move by a bit."""
    engine = engine_of(kind, [0.3, 1, 7, 7], [99, 99, 5, 99])
    start(engine, 0.1, (1, 0, 1, 1.7))
    alone = engine.next_event_s()
    for number in range(50):
        start(engine, 0.1 + number / 9, (100 + number, 2, 3, 0.3 + number % 3))
    ends = {number: end for number, end, _ in engine.advance(99.0).rows()}
    assert ends[1] == alone


@BOTH
def test_the_callers_arrays_stay_as_they_are(kind: Kind) -> None:
    """What was handed over is copied, not kept."""
    engine = engine_of(kind, [1, 1], [1, 1])
    ids, node, size = np.array([4]), np.array([0]), np.array([2.0])
    engine.start(0.0, ids, node, node + 1, size)
    engine.abort(1.0, ids)
    assert (ids.tolist(), size.tolist()) == ([4], [2.0])


@BOTH
def test_time_runs_forward(kind: Kind) -> None:
    """A caller's mistake is named."""
    engine = engine_of(kind, [1, 1], [1, 1])
    engine.advance(5.0)
    with pytest.raises(ValueError, match="time runs forward"):
        engine.advance(4.0)


def synchronous(nodes: int, degree: int, seed: int = 0) -> tuple[FairShare, int]:
    rng = np.random.default_rng(seed)
    engine = FairShare(rng.uniform(2, 50, nodes) * 125e3, rng.uniform(10, 100, nodes) * 125e3)
    src = np.repeat(np.arange(nodes), degree)
    dst = (src + rng.integers(1, nodes, len(src))) % nodes
    engine.start(0.0, np.arange(len(src)), src, dst, np.full(len(src), 8e5))
    return engine, len(src)


def test_equal_flows_need_one_filling(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,500 of them; the forecast is certain, ends come one by one, and only a newcomer makes it fill again."""
    engine, flows = synchronous(70, 50)
    fillings: list[float] = []
    fill_now = FairShare._fill

    def counted(self: FairShare) -> None:
        fillings.append(self._due_s)
        fill_now(self)

    monkeypatch.setattr(FairShare, "_fill", counted)
    assert engine.steady
    forecast = engine.forecast()
    seen = []
    for _ in range(20):
        seen += engine.advance(engine.next_event_s()).rows()
    assert seen == forecast.rows()[: len(seen)]
    assert fillings == [0.0]
    engine.start(seen[-1][1], np.array([flows]), np.array([0]), np.array([1]), np.array([1e5]))
    assert not engine.steady
    assert len(fillings) == 2


def test_one_filling_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filling again at every end changes nothing."""
    once, _ = synchronous(12, 6)
    expected = once.advance(1e9)
    monkeypatch.setattr("p2p.motion.Motion._known_order", lambda self: None)
    again, _ = synchronous(12, 6)
    found = again.advance(1e9)
    order, other = np.argsort(found.ids), np.argsort(expected.ids)
    assert found.finished_s[order] == pytest.approx(expected.finished_s[other], rel=1e-12)
    assert (found.bottleneck[order] == expected.bottleneck[other]).all()


@pytest.mark.slow
def test_the_grid_error_is_small_and_stated() -> None:
    """300 staggered flows: ends are some steps off on average, and a finer grid is better."""
    rng = np.random.default_rng(2)
    nodes, count = 20, 300
    up, down = rng.uniform(1e6, 5e6, nodes).tolist(), rng.uniform(2e6, 9e6, nodes).tolist()
    flows = [
        (int(a), int((a + b) % nodes), float(size), float(start))
        for a, b, size, start in zip(
            rng.integers(0, nodes, count),
            rng.integers(1, nodes, count),
            rng.uniform(1e5, 1e6, count),
            rng.uniform(0, 5, count),
            strict=True,
        )
    ]
    exact = run((up, down, flows))
    errors = []
    for grid_s in (0.2, 0.05, 0.0125):
        found = run((up, down, flows), grid_s=grid_s)
        errors.append(np.mean([abs(found[n] - exact[n]) for n in exact]))
        assert errors[-1] < 8 * grid_s
    assert errors[0] > errors[1] > errors[2]


def test_grid_costs_are_counted() -> None:
    """Starts at 0.3 wait 0.7 s for the grid of 1 s; the first end, at 4.4, leaves 5 B/s idle for 0.6 s."""
    engine = FairShare(np.array([10.0, 1]), np.array([99.0, 99]), 1.0)
    start(engine, 0.3, (1, 0, 1, 17), (2, 0, 1, 100))
    while (next_s := engine.next_event_s()) < np.inf:
        engine.advance(next_s)
    assert engine.grid_costs() == pytest.approx({"mean_late_s": 0.7, "most_late_s": 0.7, "idle_bytes": 3.0})


@pytest.mark.slow
def test_cost_of_3500_flows() -> None:
    """Generous bounds, to catch a change of order, not to measure: see `make bench` for figures."""
    engine, flows = synchronous(70, 50)
    began = time.process_time()
    assert len(engine.advance(1e9).ids) == flows
    assert time.process_time() - began < 0.5
