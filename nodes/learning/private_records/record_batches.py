"""Batches of DP-SGD: the records of each step, drawn by coins or by passes, and the noise of each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nodes.learning.minibatches import draw_batches
from nodes.learning.training import PerSample, Training
from p2p.random_streams import stream

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class RecordStep:
    """One step of the first `len(rows)` clients.

    Attributes:
        rows: indices of records [a, b], padded with index 0
        weights: factor of each record's gradient in the step [a, b], 0 for padding
        noise_std: deviation of the noise in each coordinate of the gradient [a]
        protected: which records are real [a, b]; None if all are
    """

    rows: Ints
    weights: Floats
    noise_std: Floats
    protected: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Generated records among the real ones: their share, those of each client, and the index of the first of all.

    With coins, every step takes real records at a lower rate and generated ones besides. In passes, a client has a
    fixed set in which generated records take the place of some real ones (`fixed_sets`).
    """

    share: float
    shards: Sequence[Ints]
    first: int


def draw_record_steps(
    shards: Sequence[Ints],
    nodes: Sequence[int],
    numbers: Sequence[int],
    training: Training,
    private: PerSample,
    multiplier: float,
    seed: int,
    round_number: int,
    mixture: Mixture | None = None,
) -> list[RecordStep]:
    """Draws the steps of `nodes`, which must be sorted by number of steps, largest first.

    Args:
        numbers: how many trainings each client had before; coins are drawn once for each, also if a crash lets a
            client train twice in a round, since sums of one sample with two noises would reveal more than is counted.
        multiplier: deviation of the noise in a step's sum, as a multiple of the clipping norm.
        mixture: generated records; with shuffled batches, `shards` are sets that contain them already.
    """
    scale = private.clip * multiplier
    first = None if mixture is None else mixture.first
    if private.sampling == "shuffled":
        return [_marked(step, first) for step in _shuffled(shards, nodes, training, scale, seed, round_number)]
    share = 0.0 if mixture is None else mixture.share
    sampled = [
        _flip_coins(shards[node], training, share, stream(seed, "record coins", node, number))
        for node, number in zip(nodes, numbers, strict=True)
    ]
    if mixture is not None:
        sampled = [
            _add_generated(own, mixture, node, training.expected_batch(len(shards[node])), seed, number)
            for own, node, number in zip(sampled, nodes, numbers, strict=True)
        ]
    # Where no real record is used, there is nothing to hide.
    scale = 0.0 if share == 1.0 else scale
    divisors = np.array([training.expected_batch(len(shards[node])) for node in nodes])
    return [
        _marked(_padded([own[step] for own in sampled if step < len(own)], divisors, scale), first)
        for step in range(len(sampled[0]))
    ]


def fixed_sets(shards: Sequence[Ints], mixture: Mixture, seed: int) -> list[Ints]:
    """Returns for each client as many records as it has, `share` of them generated, drawn once."""
    found = []
    for node, (real, made) in enumerate(zip(shards, mixture.shards, strict=True)):
        rng, count = stream(seed, "mixture", node), round(mixture.share * len(real))
        kept = rng.permutation(real)[: len(real) - count]
        found.append(np.sort(np.concatenate([kept, rng.choice(made, count, replace=count > len(made))])))
    return found


def _add_generated(steps: list[Ints], mixture: Mixture, node: int, batch: float, seed: int, number: int) -> list[Ints]:
    """Adds generated records to each step, each by a coin of its own."""
    made = mixture.shards[node]
    rng = stream(seed, "generated coins", node, number)
    taken = rng.random((len(steps), len(made))) < mixture.share * batch / len(made)
    return [np.concatenate([own, made[row]]) for own, row in zip(steps, taken, strict=True)]


def _marked(step: RecordStep, first: int | None) -> RecordStep:
    return step if first is None else replace(step, protected=step.rows < first)


def _flip_coins(shard: Ints, training: Training, share: float, rng: np.random.Generator) -> list[Ints]:
    """Returns the records of each step: every record by a coin of its own, whatever the other coins show."""
    exposure = training.exposure(len(shard), share)
    taken = rng.random((exposure.steps, len(shard))) < exposure.rate
    return [shard[row] for row in taken]


def _padded(samples: list[Ints], divisors: NDArray[np.float64], scale: float) -> RecordStep:
    """Returns one step of the clients that still train; it is as wide as its largest sample, and never empty."""
    width = max(1, *(len(sample) for sample in samples)) if samples else 1
    rows = np.zeros((len(samples), width), dtype=np.int64)
    weights = np.zeros((len(samples), width), dtype=np.float32)
    for place, sample in enumerate(samples):
        rows[place, : len(sample)] = sample
        weights[place, : len(sample)] = 1.0 / divisors[place]
    return RecordStep(rows, weights, (scale / divisors[: len(samples)]).astype(np.float32))


def _shuffled(
    shards: Sequence[Ints], nodes: Sequence[int], training: Training, scale: float, seed: int, round_number: int
) -> list[RecordStep]:
    """Returns the batches of ordinary training; a short batch has more noise, as its sum is divided by less."""
    drawn = draw_batches(shards, nodes, training, seed, round_number)
    steps = []
    for step, count in enumerate(drawn.active.tolist()):
        weights = drawn.weights[step, :count]
        # All records of a batch have one weight, and padding has none.
        steps.append(RecordStep(drawn.rows[step, :count], weights, scale * weights.max(axis=1)))
    return steps
