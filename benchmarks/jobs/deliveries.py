"""The event core alone: flows over fairly shared links, without nodes and contents."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.figures import Effort, Figure
from p2p.transport.flow_arrivals import Flows, arrivals
from topologies.round_graph import round_graph

_UPDATE_BYTES = 800_000.0


def exchange(stagger_s: float, members: int, degree: int, seed: int = 0) -> float:
    """CPU seconds until all updates among some of 100 nodes have arrived.

    Each message starts at its own instant within `stagger_s`, or all at once. Staggering by sender would be easy:
    fifty equal transfers that start together on one uplink also end together.
    """
    rng = np.random.default_rng(seed)
    up, down = rng.lognormal(np.log(2.5e6), 0.5, 100), np.full(100, 12.5e6)
    edges = round_graph(np.arange(members), degree, rng)
    order = rng.permutation(len(edges)) if stagger_s else np.arange(len(edges))
    starts_s = np.sort(rng.uniform(0.0, stagger_s, len(edges)))
    return _timed(up, down, Flows(edges[order, 0], edges[order, 1], np.full(len(edges), _UPDATE_BYTES), starts_s))


def incast(senders: int, seed: int = 0) -> float:
    """CPU seconds until staggered updates of many senders have arrived at one receiver, as a leader has it."""
    starts_s = np.sort(np.random.default_rng(seed).uniform(0.0, 10.0, senders))
    up, down = np.full(senders + 1, 2.5e6), np.full(senders + 1, 12.5e6)
    sizes = np.full(senders, _UPDATE_BYTES)
    return _timed(up, down, Flows(np.arange(senders), np.full(senders, senders), sizes, starts_s))


def _timed(up: np.ndarray, down: np.ndarray, flows: Flows) -> float:
    arrivals("fair", up[:1], down[:1], 0.0, Flows(*(np.zeros(0, dtype=np.int64),) * 2, *(np.zeros(0),) * 2))
    start_cpu_s = time.process_time()
    arrived_s = arrivals("fair", up, down, 0.05, flows)
    if not np.isfinite(arrived_s).all():
        raise RuntimeError("some transfers never arrived")
    return time.process_time() - start_cpu_s


def deliveries(effort: Effort) -> list[Figure]:
    """Equal starts need one solve; staggered ones some thousand."""
    members, degree = (20, 5) if effort.quick else (70, 50)
    few, many = (200, 400) if effort.quick else (4_000, 10_000)
    equal = min(exchange(0.0, members, degree) for _ in range(effort.repetitions))
    staggered = min(exchange(10.0, members, degree) for _ in range(effort.repetitions))
    return [
        Figure("3,500 deliveries, fair, equal starts", equal, "s of CPU", 0.02),
        Figure("3,500 deliveries, fair, staggered starts", staggered, "s of CPU", 0.1),
        Figure("4,000 staggered senders to one receiver", incast(few), "s of CPU", 1.0),
        Figure("10,000 staggered senders to one receiver", incast(many), "s of CPU", 5.0),
    ]
