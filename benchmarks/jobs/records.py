"""DP-SGD within clients against a plain round, and the generators of all clients."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.figures import Effort, Figure, timed
from benchmarks.scenes import scene
from nodes.datasets.generated import ConditionalGan
from nodes.datasets.preparation import client_records
from nodes.datasets.registry import Digits
from nodes.learning.generators.cgan import generate_records
from nodes.learning.training import PerSample
from scenarios.build import build


def per_sample(effort: Effort) -> list[Figure]:
    """A round of the MNIST job with every record's gradient clipped and noised, and the plain one before and after."""
    plain_s = _best_round_s(None, effort)
    own_s = _best_round_s(PerSample(clip=1.0, noise=1.0), effort)
    plain_s = min(plain_s, _best_round_s(None, effort))
    detail = f"{own_s:.3f} s of processor time a round, plain {plain_s:.3f} s"
    return [Figure("DP-SGD, mnist, rotating leader", own_s / plain_s, "of a plain round", 4, detail=detail)]


def generators(effort: Effort) -> list[Figure]:
    """The conditional GANs of 50 clients on digits, as `dp-genfl` trains them."""
    dataset, shards = client_records(Digits(), 50, Path(), 7)
    settings = ConditionalGan(epochs=3 if effort.quick else 300)
    spent_s = timed(lambda: generate_records(settings, dataset, shards, (0.0, 1.0), 7, 1), time.process_time)
    return [Figure("generators, 50 clients on digits", spent_s, "s", 60, detail=f"{settings.epochs} passes, CPU")]


def _best_round_s(private: PerSample | None, effort: Effort) -> float:
    """Processor seconds of the best round; the first warms up."""
    size, rounds = ("small", 3) if effort.quick else ("mnist", 4)
    world = scene(size, rounds=rounds, clients=20, trained=20, leader=True, private=False)
    world = replace(world, training=replace(world.training, per_sample=private))
    marks: list[float] = []

    def note(row: Mapping[str, Any]) -> None:
        marks.append(time.process_time())

    build(world, listeners=[note]).run()
    return min(end - start for start, end in pairwise(marks))
