"""Conditional GANs of all clients (Alg. B1 of the DP-GenFL supplement), trained in stacks and outside the rounds.

The discriminator D learns to tell a client's records with their labels from generated ones, the generator G to pass
for them: `min_G max_D E log D(x, y) + E log(1 - D(G(z, y), y))`, with the usual non-saturating loss for G. Only D's
gradients on real records touch data; with DP-SGD these are clipped one by one and noised, and all that follows is
computed from them. Labels of generated records come from the class ratios, which are public, uniform or noised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nodes.datasets.dataset import Dataset
from nodes.datasets.generated import ConditionalGan
from nodes.learning.generators.quality import assess
from nodes.learning.generators.stacked_nets import StackedNet
from nodes.learning.kernels.per_sample import PrivateStep, RecordProtection
from nodes.learning.private_records.dp_sgd import as_tensors, noise_generator
from nodes.learning.private_records.record_batches import draw_record_steps
from nodes.learning.thread_pool import chunks, run_parallel
from nodes.learning.training import PerSample
from p2p.random_streams import stream

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
# Clients per stack: their networks and moments stay in the cache for records of a thousand numbers.
AT_ONCE = 10
# The round in whose name the batches of generators are shuffled; training has rounds from 1.
_ROUND = 0


@dataclass(frozen=True, slots=True, eq=False)
class GeneratedRecords:
    """The generated records of all clients, one client after the other.

    Attributes:
        records: as in the data set, [m, ...]
        labels: the class each was asked for
        shards: indices of each client's records
        quality: what failed, and how well the records stand for real ones (`quality.assess`)
    """

    records: Floats
    labels: Ints
    shards: list[Ints]
    quality: dict[str, Any]


def generate_records(
    settings: ConditionalGan,
    dataset: Dataset,
    shards: Sequence[Ints],
    value_range: tuple[float, float] | None,
    seed: int,
    threads: int,
) -> GeneratedRecords:
    """Trains the generator of every client and draws its records.

    Args:
        value_range: public bounds of all features; None leaves generated features unbounded.
    """
    order = np.argsort([-settings.training().steps(len(shard)) for shard in shards], kind="stable")
    made: dict[int, tuple[Floats, Ints]] = {}

    def train_chunk(part: slice) -> None:
        stack = _Stack(settings, dataset, shards, [int(node) for node in order[part]], value_range, seed)
        stack.train()
        made.update(stack.draw())

    run_parallel(train_chunk, chunks(len(shards), AT_ONCE), threads)
    records = [made[node][0] for node in range(len(shards))]
    labels = [made[node][1] for node in range(len(shards))]
    diverged = [node for node, rows in enumerate(records) if not np.isfinite(rows).all()]
    joined = np.nan_to_num(np.concatenate(records), nan=0.0, posinf=0.0, neginf=0.0)
    ends = np.cumsum([len(own) for own in labels])
    owned = np.split(np.arange(ends[-1]), ends[:-1])
    joined, asked = joined.reshape(-1, *dataset.shape), np.concatenate(labels)
    return GeneratedRecords(joined, asked, owned, assess(dataset, shards, joined, asked, owned, diverged))


def class_ratios(settings: ConditionalGan, labels: Ints, classes: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Returns the shares of the classes that a client's generator is asked for."""
    if settings.class_ratios == "uniform":
        return np.full(classes, 1.0 / classes)
    counts = np.bincount(labels, minlength=classes).astype(np.float64)
    if settings.ratio_noise is not None:
        counts = np.maximum(counts + rng.normal(0.0, settings.ratio_noise, classes), 0.0)
    # Noise may leave nothing of a few records.
    return counts / counts.sum() if counts.sum() > 0 else np.full(classes, 1.0 / classes)


class _Stack:
    """The generators and discriminators of some clients, sorted by number of steps, largest first."""

    def __init__(
        self,
        settings: ConditionalGan,
        dataset: Dataset,
        shards: Sequence[Ints],
        nodes: list[int],
        value_range: tuple[float, float] | None,
        seed: int,
    ) -> None:
        self._settings, self._nodes, self._range = settings, nodes, value_range
        self._classes, self._features = dataset.classes, prod(dataset.shape)
        self._real = torch.from_numpy(np.require(dataset.train_x.reshape(len(dataset.train_x), -1), requirements="W"))
        self._labels = torch.from_numpy(np.require(dataset.train_y, requirements="W"))
        self._steps = _steps(settings, shards, nodes, seed)
        self._counts = [max(1, round(settings.multiple * len(shards[node]))) for node in nodes]
        rngs = [stream(seed, "class ratios", node) for node in nodes]
        self._ratios = [
            class_ratios(settings, dataset.train_y[shards[node]], dataset.classes, rng)
            for node, rng in zip(nodes, rngs, strict=True)
        ]
        self._choices = [stream(seed, "generated labels", node) for node in nodes]
        self._latent = [noise_generator(stream(seed, "generator", node)) for node in nodes]
        noise = [noise_generator(stream(seed, "discriminator noise", node)) for node in nodes]
        clip = float("inf") if settings.per_sample is None else settings.per_sample.clip
        self._protection = RecordProtection(clip, noise)
        known, hidden = self._features + self._classes, settings.hidden
        self._generator = StackedNet.drawn((settings.latent + self._classes, hidden, self._features), self._latent)
        self._discriminator = StackedNet.drawn((known, hidden, 1), self._latent)

    def train(self) -> None:
        """Takes one step of both networks for each batch of real records."""
        for number, step in enumerate(self._steps, start=1):
            count = len(step.rows)
            fakes, inputs, hidden, labels = self._fake(count, self._settings.batch_size)
            self._teach_discriminator(step, fakes, labels, number)
            self._teach_generator(fakes, inputs, hidden, labels, number)

    def draw(self) -> dict[int, tuple[Floats, Ints]]:
        """Returns the records and labels that each client's generator makes."""
        fakes, _, _, labels = self._fake(len(self._nodes), max(self._counts))
        kept = labels.argmax(2)
        return {
            node: (fakes[place, :count].numpy(), kept[place, :count].numpy())
            for place, (node, count) in enumerate(zip(self._nodes, self._counts, strict=True))
        }

    def _fake(self, clients: int, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns generated records, the generator's input and hidden layer, and the labels one-hot."""
        chosen = [
            rng.choice(self._classes, count, p=ratios)
            for rng, ratios in zip(self._choices[:clients], self._ratios, strict=False)
        ]
        labels = nn.functional.one_hot(torch.from_numpy(np.stack(chosen)), self._classes).float()
        latent = torch.stack([
            torch.empty(count, self._settings.latent).normal_(generator=each) for each in self._latent[:clients]
        ])  # fmt: skip
        inputs = torch.cat([latent, labels], dim=2)
        hidden, values = self._generator.forward(inputs)
        return self._bounded(values), inputs, hidden, labels

    def _bounded(self, values: Tensor) -> Tensor:
        if self._range is None:
            return values
        low, high = self._range
        return values.tanh_().add_(1.0).mul_(0.5 * (high - low)).add_(low)

    def _teach_discriminator(self, step: PrivateStep, fakes: Tensor, labels: Tensor, number: int) -> None:
        net = self._discriminator
        targets = nn.functional.one_hot(self._labels[step.rows], self._classes).float()
        real = torch.cat([self._real[step.rows], targets], dim=2)
        hidden, scores = net.forward(real)
        # The gradient of -log sigmoid(s) by s.
        delta = scores.sigmoid() - 1.0
        below = net.hidden_delta(hidden, delta)
        factors = self._factors(step, real, hidden, delta, below)
        found = net.gradients(real, hidden, delta * factors, below * factors)
        values = torch.cat([fakes, labels], dim=2)
        hidden, scores = net.forward(values)
        delta = scores.sigmoid() / fakes.shape[1]
        fake = net.gradients(values, hidden, delta, net.hidden_delta(hidden, delta))
        total = [one.add_(other) for one, other in zip(found, fake, strict=True)]
        if self._settings.per_sample is not None:
            self._add_noise(total, step)
        net.step(total, self._settings.learning_rate, number)

    def _factors(self, step: PrivateStep, real: Tensor, hidden: Tensor, delta: Tensor, below: Tensor) -> Tensor:
        """Returns the factor of each real record's gradient [a, b, 1]: its weight, less where it is clipped."""
        squares = below.square().sum(2) * (real.square().sum(2) + 1.0)
        squares += delta.square().sum(2) * (hidden.square().sum(2) + 1.0)
        infinite = ~squares.isfinite()
        if infinite.any():
            for part in (real, hidden, delta, below):
                part.masked_fill_(infinite.unsqueeze(2), 0.0)
        return self._protection.factors(squares, step.weights, None).unsqueeze(2)

    def _add_noise(self, gradients: list[Tensor], step: PrivateStep) -> None:
        sizes = [part[0].numel() for part in gradients]
        noise = self._protection.fill(torch.empty(len(step.rows), sum(sizes)), step)
        for part, own in zip(gradients, torch.split(noise, sizes, dim=1), strict=True):
            part.add_(own.view(part.shape))

    def _teach_generator(self, fakes: Tensor, inputs: Tensor, hidden: Tensor, labels: Tensor, number: int) -> None:
        judge = self._discriminator
        seen, scores = judge.forward(torch.cat([fakes, labels], dim=2))
        delta = (scores.sigmoid() - 1.0) / fakes.shape[1]
        through = torch.bmm(judge.hidden_delta(seen, delta), judge.parts[0][: len(fakes)])[:, :, : self._features]
        if self._range is not None:
            low, high = self._range
            # The slope of the bounded output, from the output itself.
            half = 0.5 * (high - low)
            through = through * half * (1.0 - ((fakes - low) / half - 1.0).square())
        net = self._generator
        net.step(
            net.gradients(inputs, hidden, through, net.hidden_delta(hidden, through)),
            self._settings.learning_rate,
            number,
        )


def _steps(settings: ConditionalGan, shards: Sequence[Ints], nodes: list[int], seed: int) -> list[PrivateStep]:
    """Returns the batches of real records: by coins with DP-SGD, else in shuffled passes."""
    private = settings.training().per_sample or PerSample(clip=1.0, noise=0.0, sampling="shuffled")
    # A seed of its own: the coins of training must not be those of generators.
    own = int(stream(seed, "generators").integers(1 << 32))
    training = settings.training()
    noise = private.noise or 0.0
    drawn = draw_record_steps(shards, nodes, [0] * len(nodes), training, private, noise, own, _ROUND)
    return [as_tensors(step) for step in drawn]
