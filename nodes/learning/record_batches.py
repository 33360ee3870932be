"""Batches of DP-SGD: the records of each step, drawn by coins or by passes, and the noise of each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """

    rows: Ints
    weights: Floats
    noise_std: Floats


def draw_record_steps(
    shards: Sequence[Ints],
    nodes: Sequence[int],
    numbers: Sequence[int],
    training: Training,
    private: PerSample,
    multiplier: float,
    seed: int,
    round_number: int,
) -> list[RecordStep]:
    """Draws the steps of `nodes`, which must be sorted by number of steps, largest first.

    Args:
        numbers: how many trainings each client had before; coins are drawn once for each, also if a crash lets a
            client train twice in a round, since sums of one sample with two noises would reveal more than is counted.
        multiplier: deviation of the noise in a step's sum, as a multiple of the clipping norm.
    """
    if private.sampling == "shuffled":
        return _shuffled(shards, nodes, training, private.clip * multiplier, seed, round_number)
    sampled = [
        _flip_coins(shards[node], training, stream(seed, "record coins", node, number))
        for node, number in zip(nodes, numbers, strict=True)
    ]
    divisors = np.array([training.expected_batch(len(shards[node])) for node in nodes])
    return [
        _padded([own[step] for own in sampled if step < len(own)], divisors, private.clip * multiplier)
        for step in range(len(sampled[0]))
    ]


def _flip_coins(shard: Ints, training: Training, rng: np.random.Generator) -> list[Ints]:
    """Returns the records of each step: every record by a coin of its own, whatever the other coins show."""
    exposure = training.exposure(len(shard))
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
