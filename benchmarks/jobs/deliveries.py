"""The `fair` engine alone: 3,500 updates among 70 of 100 nodes."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from benchmarks.figures import Effort, Figure
from p2p.fair_engine import FairEngine
from p2p.sharing import Transfer
from topologies.rounds import round_graph


def deliver(stagger_s: float, members: int, degree: int, seed: int = 0) -> float:
    """CPU seconds until all have arrived; each message starts at its own instant within `stagger_s`, or all at once.

    Staggering by sender would be easy: fifty equal transfers that start together on one uplink also end together.
    """
    rng = np.random.default_rng(seed)
    up, down = rng.lognormal(np.log(2.5e6), 0.5, 100), np.full(100, 12.5e6)
    edges = round_graph(np.arange(members), degree, rng)
    starts_s = np.sort(rng.uniform(0.0, stagger_s, len(edges)))
    order = rng.permutation(len(edges)) if stagger_s else np.arange(len(edges))
    latency_s = rng.uniform(0.02, 0.12, len(edges))
    engine, arrived = FairEngine(up, down), list[int]()

    def arrive(time_s: float, transfer: Transfer, bottleneck: str) -> None:
        arrived.append(transfer.row)

    start_cpu_s = time.process_time()
    for row, start_s in zip(order.tolist(), starts_s.tolist(), strict=True):
        engine.work(partial(float, start_s), arrive)
        sender, receiver = edges[row].tolist()
        engine.start(start_s, [Transfer(row, sender, receiver, 800_000.0, float(latency_s[row]), False, start_s)])
    engine.work(lambda: np.inf, arrive)
    if len(arrived) != len(edges):
        raise RuntimeError(f"{len(arrived)} of {len(edges)} transfers arrived")
    return time.process_time() - start_cpu_s


def deliveries(effort: Effort) -> list[Figure]:
    """Equal starts need one filling; staggered ones some thousand."""
    members, degree = (20, 5) if effort.quick else (70, 50)
    equal = min(deliver(0.0, members, degree) for _ in range(effort.repetitions))
    staggered = min(deliver(10.0, members, degree) for _ in range(effort.repetitions))
    return [
        Figure("3,500 deliveries, fair, equal starts", equal, "s of CPU", 0.15),
        Figure("3,500 deliveries, fair, staggered starts", staggered, "s of CPU", 2.0),
    ]
