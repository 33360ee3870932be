"""The loop everyone writes first: one module per client, trained one after the other, averaged row by row.

peerveil's rounds are measured against it (`make bench`). It does the same work on the same shapes: plain SGD on sliced
tensors, no DataLoader, then each member averages the rows it received.

    python -m benchmarks.reference_loop mnist small cnn
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nodes.datasets.dataset import Dataset
from nodes.learning.model_kinds.models import Cnn, Mlp, Model
from nodes.learning.trainer import Learner
from nodes.learning.training import Training

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Job:
    """A round's size: `clients` hold `records` each, `trained` of them train."""

    model: Model
    shape: tuple[int, ...]
    clients: int
    trained: int
    records: int
    batch_size: int
    exchange_with: int


JOBS = {
    "mnist": Job(Mlp(hidden=(200, 200)), (784,), 100, 70, 600, 10, 50),
    "small": Job(Mlp(hidden=(32,)), (64,), 100, 70, 14, 8, 50),
    "cnn": Job(Cnn(channels=(16, 32), dense=(512,)), (3, 32, 32), 20, 20, 100, 10, 10),
}
RATE = 0.1


class ReferenceLoop:
    """One `nn.Sequential` and one `torch.optim.SGD` per client."""

    def __init__(self, job: Job, dataset: Dataset, shards: list[NDArray[np.int64]]) -> None:
        self._job = job
        self.modules = [job.model.build(job.shape, dataset.classes) for _ in range(job.clients)]
        self._records = [torch.from_numpy(dataset.train_x[shard]) for shard in shards]
        self._labels = [torch.from_numpy(dataset.train_y[shard]) for shard in shards]

    def train(self, node: int, order: Tensor) -> None:
        """One epoch of one client in the given order."""
        module = self.modules[node]
        optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
        records, labels = self._records[node][order], self._labels[node][order]
        for start in range(0, len(order), self._job.batch_size):
            part = slice(start, start + self._job.batch_size)
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(records[part]), labels[part]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    def train_all(self, members: list[int], orders: list[Tensor]) -> None:
        """One epoch of each member."""
        for node, order in zip(members, orders, strict=True):
            self.train(node, order)

    def exchange(self, members: list[int], senders: list[list[int]]) -> None:
        """Each member takes the mean of its own and its senders' models, row by row."""
        flat = {node: nn.utils.parameters_to_vector(self.modules[node].parameters()).detach() for node in members}
        for node, others in zip(members, senders, strict=True):
            total = flat[node].clone()
            for other in others:
                total += flat[other]
            nn.utils.vector_to_parameters(total / (len(others) + 1), self.modules[node].parameters())

    def lead(self, members: list[int]) -> None:
        """One member averages all models, and all take the mean."""
        total = torch.zeros(sum(part.numel() for part in self.modules[0].parameters()))
        for node in members:
            total += nn.utils.parameters_to_vector(self.modules[node].parameters()).detach()
        for node in members:
            nn.utils.vector_to_parameters(total / len(members), self.modules[node].parameters())

    def round(self, rng: np.random.Generator, by_leader: bool = False) -> None:
        """A whole round: train the members, then gossip, or average by a leader."""
        members = rng.choice(self._job.clients, self._job.trained, replace=False).tolist()
        self.train_all(members, [torch.from_numpy(rng.permutation(self._job.records)) for _ in members])
        if by_leader:
            self.lead(members)
            return
        picks = [rng.choice(members, self._job.exchange_with, replace=False).tolist() for _ in members]
        self.exchange(members, picks)


def make_data(job: Job, rng: np.random.Generator) -> tuple[Dataset, list[NDArray[np.int64]]]:
    """Random records of the job's shape; what they are does not matter for time."""
    count = job.clients * job.records
    records = rng.standard_normal((count, *job.shape), dtype=np.float32)
    labels = rng.integers(10, size=count)
    return Dataset(records, labels, records[:10], labels[:10], 10), np.split(np.arange(count), job.clients)


def compare(name: str, repetitions: int) -> dict[str, float]:
    """The best of interleaved repetitions, training alone: seconds of the loop, of the learner, and their ratio."""
    job, rng = JOBS[name], np.random.default_rng(0)
    dataset, shards = make_data(job, rng)
    loop = ReferenceLoop(job, dataset, shards)
    learner = Learner(job.model, dataset, shards, Training(batch_size=job.batch_size, learning_rate=RATE), 0)
    members = list(range(job.trained))
    orders = [torch.from_numpy(rng.permutation(job.records)) for _ in members]
    models = np.repeat(learner.initial()[None], job.trained, axis=0)
    slow, fast = [], []
    for _ in range(repetitions):
        slow.append(_seconds(lambda: loop.train_all(members, orders)))
        fast.append(_seconds(lambda: learner.train(models, members, 1)))
    return {"loop_s": min(slow), "learner_s": min(fast), "ratio": min(slow) / min(fast)}


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    for chosen in sys.argv[1:] or JOBS:
        figures = compare(chosen, 5)
        print(chosen, *(f"{key} {value:.4f}" for key, value in figures.items()))
