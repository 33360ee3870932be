"""What each list of stages costs: a round of the MNIST job with it, over a round with clipping and Gaussian noise."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from benchmarks.figures import Effort, Figure
from benchmarks.scenes import scene
from scenarios.build import build

PLAIN = "[clip, {kind: gaussian, sigma: 0.01}]"
LISTS = {
    "layers": ("[clip_layers, {kind: gaussian, sigma: 0.01}]", 1.5),
    "own medians": ("[clip_own_median, {kind: gaussian, multiplier: 8, per_record: true}]", 1.5),
    "top-k": ("[{kind: top_k}, clip, {kind: gaussian, sigma: 0.01}]", 1.5),
    "random mask": ("[mask, clip, {kind: gaussian, sigma: 0.01}]", 1.5),
    "mask of aggregates": ("[{kind: mask, by: last_aggregate}, clip, {kind: gaussian, sigma: 0.01}]", 1.5),
    "cohort median": ("[clip, {kind: gaussian, sigma: 0.01}, clip_cohort_median]", 1.5),
    "Laplace": ("[clip, {kind: laplace, scale: 0.01}]", 1.5),
    "DP-FedASGP": ("[clip, asgp]", 1.5),
    "sparse vector": ("[clip, asgp_sound]", 1.5),
    "SNLC": ("[clip, snlc]", 1.5),
    "cpSGD": ("[clip, binomial]", 3.0),
    "cpSGD, rotated": ("[clip, {kind: binomial, rotate: true}]", 3.0),
}


def stages(effort: Effort) -> list[Figure]:
    """Each list in turn, and the plain one before and after it: the machine may be busy."""
    return [_ratio(name, text, goal, effort) for name, (text, goal) in LISTS.items()]


def _ratio(name: str, text: str, goal: float, effort: Effort) -> Figure:
    plain_s = _best_round_s(PLAIN, effort)
    own_s = _best_round_s(text, effort)
    plain_s = min(plain_s, _best_round_s(PLAIN, effort))
    detail = f"{own_s:.3f} s of processor time a round, plain {plain_s:.3f} s"
    return Figure(f"stages, {name}", own_s / plain_s, "of a plain round", goal, detail=detail)


def _best_round_s(text: str, effort: Effort) -> float:
    """Processor seconds of the best round; the first warms up."""
    world = scene(
        "small" if effort.quick else "mnist",
        rounds=3 if effort.quick else 5,
        clients=20,
        trained=20,
        leader=True,
        stages=text,
    )
    marks: list[float] = []

    def note(row: Mapping[str, Any]) -> None:
        marks.append(time.process_time())

    simulation = build(world, listeners=[note])
    simulation.run()
    return min(after - before for before, after in pairwise(marks))
