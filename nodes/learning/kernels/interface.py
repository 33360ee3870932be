"""The interface of training kernels.

A stack is a [k, d] tensor, one flat model per row in the order of `module.parameters()`. All kernels take the same
steps on the same batches and agree within float tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from torch import Tensor

from nodes.learning.objectives import ClientObjectives
from nodes.learning.training import Training


class ModelStep(Protocol):
    """One step of the first `len(rows)` models of a stack."""

    @property
    def rows(self) -> Tensor:
        """Record indices [a, b]."""


Step = TypeVar("Step", bound=ModelStep)


@dataclass(frozen=True, slots=True, eq=False)
class SgdStep:
    """One SGD step of the first `len(rows)` models: record indices [a, b] and their weights in the loss [a, b]."""

    rows: Tensor
    weights: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Records [n, ...], labels [n], and the labels one-hot as float32 [n, classes]."""

    records: Tensor
    labels: Tensor
    targets: Tensor

    def columns(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns records, labels and targets."""
        return self.records, self.labels, self.targets


@dataclass(frozen=True, slots=True, eq=False)
class StackTask(Generic[Step]):
    """What the models of a stack train on and how: model i minimises the i-th of the objectives."""

    samples: Samples
    steps: list[Step]
    training: Training
    rate: float
    objectives: ClientObjectives


class Kernel(Protocol):
    """Trains and scores stacked models.

    Attributes:
        parallel: several threads may use the kernel at once
        stacks: a stack takes less time than its models one after the other
    """

    parallel: ClassVar[bool]
    stacks: ClassVar[bool]

    def train(self, models: Tensor, task: StackTask[SgdStep]) -> None:
        """Takes the steps in place; a model past its last step is unchanged."""

    def scores(self, models: Tensor, records: Tensor) -> Tensor:
        """Returns the score of each class, [k, n, classes]."""
