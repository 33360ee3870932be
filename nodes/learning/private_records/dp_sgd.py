"""DP-SGD of a stack of clients: draws batches and noise by the clients' own streams and hands them to the kernel.

Coins and noise carry the client's number of trainings so far in their names, so that no training uses those of
another. In a real system they are secret; here an adversary never gets the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodes.learning.kernels.interface import Samples, StackTask
from nodes.learning.kernels.per_sample import PrivateKernel, PrivateStep, RecordProtection
from nodes.learning.objectives import ClientObjectives
from nodes.learning.private_records.record_batches import Mixture, RecordStep, draw_record_steps
from nodes.learning.training import PerSample, Training
from p2p.random_streams import stream

Ints = NDArray[np.int64]
# The state of torch's generator: 24 bytes, then 624 words of the Mersenne twister in 8 bytes each.
_STATE = slice(24, 24 + 8 * 624)


@dataclass(frozen=True, slots=True)
class RecordNoise:
    """The settings of DP-SGD with the noise multiplier that they amount to."""

    settings: PerSample
    multiplier: float


@dataclass(frozen=True, slots=True, eq=False)
class DpSgd:
    """Trains clients with protection of their single records.

    Guarantees:
        A client's result depends on its model, its records, the seed and its training's number alone.
    """

    kernel: PrivateKernel
    noise: RecordNoise
    training: Training
    shards: Sequence[Ints]
    seed: int
    mixture: Mixture | None = None

    def train(
        self,
        stack: Tensor,
        samples: Samples,
        nodes: Sequence[int],
        numbers: Sequence[int],
        round_number: int,
        objectives: ClientObjectives,
    ) -> None:
        """Trains the models of `nodes` in place; the nodes are sorted by number of steps, largest first."""
        drawn = draw_record_steps(
            self.shards, nodes, numbers, self.training, self.noise.settings, self.noise.multiplier, self.seed,
            round_number, self.mixture,
        )  # fmt: skip
        steps = [as_tensors(step) for step in drawn]
        generators = [
            noise_generator(stream(self.seed, "record noise", node, number))
            for node, number in zip(nodes, numbers, strict=True)
        ]
        protection = RecordProtection(self.noise.settings.clip, generators)
        task = StackTask(samples, steps, self.training, self.training.rate(round_number), objectives)
        self.kernel.train_private(stack, task, protection)


def as_tensors(step: RecordStep) -> PrivateStep:
    """Returns a step as kernels take it."""
    protected = None if step.protected is None else torch.from_numpy(step.protected)
    rows, weights = torch.from_numpy(step.rows), torch.from_numpy(step.weights)
    return PrivateStep(rows, weights, step.noise_std.tolist(), protected)


def noise_generator(words: np.random.Generator) -> torch.Generator:
    """Returns a torch generator whose whole state comes from `words`.

    Torch draws normal numbers three times as fast as NumPy, but seeds its generator with 32 bits only: among many
    trainings two would have the same noise.
    """
    generator = torch.Generator()
    state = generator.get_state().numpy().copy()
    state[_STATE] = words.integers(0, 1 << 32, 624, dtype=np.uint64).view(np.uint8)
    generator.set_state(torch.from_numpy(state))
    return generator
