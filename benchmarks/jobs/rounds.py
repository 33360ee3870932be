"""Rounds with learning against the reference loop, interleaved: after every round of one comes a round of the other.

Ours are rounds as a user has them: what a run writes to its folder meanwhile counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import cycle, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.figures import Effort, Figure, timed
from benchmarks.reference_loop import JOBS, Job, ReferenceLoop, make_data
from benchmarks.scenes import scene
from nodes.learning.cohort_training import CohortTraining
from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.model_kinds.models import Mlp
from nodes.learning.trainer import Learner
from privacy.attacks.linkage import Linkage
from scenarios.build import build
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario


class Alternating:
    """A watcher that times each simulated round, and then something else."""

    def __init__(self, other: Callable[[], object]) -> None:
        self._other = other
        self._since_s = time.perf_counter()
        self.rounds_s: list[float] = []
        self.others_s: list[float] = []

    def __call__(self, row: Mapping[str, Any]) -> None:
        self.rounds_s.append(time.perf_counter() - self._since_s)
        self.others_s.append(timed(self._other))
        self._since_s = time.perf_counter()

    def best(self) -> tuple[float, float]:
        """The best round of each. The first warms up, and the last is measured: neither counts if there are others."""
        kept = slice(1, -1) if len(self.rounds_s) > 2 else slice(None)
        return min(self.rounds_s[kept]), min(self.others_s[kept])


def against_loop(size: str, scenario: Scenario, leader: bool = False) -> tuple[float, float]:
    """Seconds of the best simulated round and of the best round of the reference loop."""
    rng = np.random.default_rng(0)
    loop = ReferenceLoop(JOBS[size], *make_data(JOBS[size], rng))
    threads = cycle([1, torch.get_num_threads()])  # on a busy machine one is faster: the loop gets its best

    def other() -> None:
        usual = torch.get_num_threads()
        torch.set_num_threads(next(threads))
        loop.round(rng, by_leader=leader)
        torch.set_num_threads(usual)

    clock = Alternating(other)
    with TemporaryDirectory() as folder:
        run_scenario(scenario, Path(folder) / "run", listeners=[clock])
    return clock.best()


def _compared(size: str, effort: Effort, leader: bool = False) -> tuple[float, float, str]:
    """Seconds of a round, seconds of the loop's, and both in words."""
    rounds = 2 if effort.quick else effort.repetitions + 2
    size = "small" if effort.quick else size
    job = JOBS[size]
    world = scene(
        size, rounds=rounds, clients=job.clients, trained=job.trained, degree=job.exchange_with, leader=leader
    )
    ours_s, loop_s = against_loop(size, world, leader)
    return ours_s, loop_s, f"{ours_s:.3f} s a round, the loop {loop_s:.3f} s"


def _share(name: str, goal: float, size: str, effort: Effort, leader: bool = False) -> Figure:
    ours_s, loop_s, detail = _compared(size, effort, leader)
    return Figure(name, ours_s / loop_s, "of the loop's time", goal, detail=detail)


def mnist(effort: Effort) -> list[Figure]:
    """The larger job, by gossip and by rotating leader."""
    return [
        _share("mnist, gossip to 50", 0.25, "mnist", effort),
        _share("mnist, rotating leader", 0.26, "mnist", effort, leader=True),
    ]


def small(effort: Effort) -> list[Figure]:
    """The job in which everything but arithmetic shows."""
    return [_share("small, gossip to 50", 0.15, "small", effort)]


def cnn(effort: Effort) -> list[Figure]:
    """The papers' CNN on records of CIFAR's shape."""
    ours_s, loop_s, detail = _compared("cnn", effort)
    return [Figure("CNN, 20 clients", loop_s / ours_s, "times as fast as the loop", 1.3, "at least", detail)]


def arithmetic(effort: Effort) -> list[Figure]:
    """How much of a round is not training, clipping, noising, averaging, or the products that measure linkability."""
    clock = Alternating(lambda: None)
    simulation = build(scene("small" if effort.quick else "mnist", rounds=2 if effort.quick else 6))
    marks: list[float] = []
    methods = ((CohortTraining, "_train"), (DeferredLearning, "_take_steps"), (Linkage, "_score"))
    with _timed(*methods) as spent:
        simulation.observer._listeners = [clock, lambda row: marks.append(spent[0])]
        simulation.run()
    spans = zip(pairwise([0.0, *marks]), clock.rounds_s, strict=True)
    shares = [1 - (after - before) / whole_s for (before, after), whole_s in spans]
    kept = shares[1:-1] if len(shares) > 2 else shares
    return [Figure("mnist, not tensor arithmetic", 100 * min(kept), "% of a round", 15, detail="wall time")]


def products(effort: Effort) -> list[Figure]:
    """Training in the larger job against its matrix products alone: what no better program could save."""
    size = "small" if effort.quick else "mnist"
    job, marks = JOBS[size], [0.0]
    world = scene(size, rounds=2 if effort.quick else 6, clients=job.clients, trained=job.trained)
    with _timed((Learner, "train")) as spent:
        simulation = build(world)
        simulation.observer._listeners = [lambda row: marks.append(spent[0])]
        simulation.run()
    ours_s = min(after - before for before, after in pairwise(marks))
    bare_s = min(_bare_products(job, stack, effort) for stack in (5, 7, 10, 14))
    detail = f"{ours_s:.3f} s a round, the products {bare_s:.3f} s"
    return [Figure("mnist, training", ours_s / bare_s, "times its matrix products", 1.5, detail=detail)]


def _bare_products(job: Job, stack: int, effort: Effort) -> float:
    """Seconds of a round's products, as batched products of `stack` clients."""
    widths, batch = [*job.shape, *cast(Mlp, job.model).hidden, 10], job.batch_size
    layers = [(torch.randn(stack, batch, a), torch.randn(stack, a, b)) for a, b in pairwise(widths)]
    slopes = [torch.randn(stack, batch, width) for width in widths[1:]]

    def step() -> None:
        for layer, ((values, weights), slope) in enumerate(zip(layers, slopes, strict=True)):
            torch.bmm(values, weights)
            torch.bmm(values.mT, slope)
            if layer:
                torch.bmm(slope, weights.mT)

    steps = -(-job.records // batch) * job.trained / stack
    return steps * min(timed(step) for _ in range(20 * effort.repetitions))


@contextmanager
def _timed(*functions: tuple[type, str]) -> Iterator[list[float]]:
    """Adds up how long some methods take meanwhile; one inside another counts once."""
    spent, depth = [0.0], [0]

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            depth[0] += 1
            start_s = time.perf_counter()
            found = work(*arguments, **options)
            depth[0] -= 1
            if not depth[0]:
                spent[0] += time.perf_counter() - start_s
            return found

        return run

    with ExitStack() as patches:
        for owner, name in functions:
            patches.enter_context(patch.object(owner, name, noted(getattr(owner, name))))
        yield spent
