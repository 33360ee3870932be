"""The stages between training and release, applied to the rows of one matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.learning.thread_pool import chunks, run_parallel
from privacy.calibration.noise_plan import PlanContext
from privacy.calibration.published_rules import NoiseFactor, constant_noise
from privacy.stages.api import Matrix, ReleaseBatch, Released, Stage, Update
from privacy.stages.release_plan import PlannedStage, plan_stages
from privacy.stages.wire import DENSE, Encoding, WireFormat

# Floats per part; small cohorts fit one part and need no thread pool. The number is not tuned.
NUMBERS_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseStages:
    """Applies the stages of a run in order, in place; without any, updates are released as they are.

    Attributes:
        stages: in the order of the scenario.
        seed: of the run.
        rate: learning rate of a round.
        memory: what stages remember from release to release, by name; part of a checkpoint.
        wire: encoding of a release.
        records: of each client.
        rounds: planned rounds.
        noise_factor: the schedule's factor on the noise of a round.
    """

    stages: Sequence[PlannedStage] = ()
    seed: int = 0
    rate: Callable[[int], float] = lambda _: 1.0
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    wire: WireFormat = DENSE
    records: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rounds: int = 1
    noise_factor: NoiseFactor = constant_noise

    @property
    def needs_loss(self) -> bool:
        """Whether a stage reads each client's loss on its own records."""
        return any(getattr(planned.stage, "needs_loss", False) for planned in self.stages)

    @property
    def clips_to_median(self) -> bool:
        """Whether an aggregator scales what it received down to the median of the norms."""
        return any(getattr(planned.stage, "clips_to_median", False) for planned in self.stages)

    def wire_of(self, round_number: int, node: int) -> Encoding:
        """Returns the encoding of one release."""
        return self.wire.bound(self.seed, round_number, node, self.memory)

    def apply(
        self,
        rows: Matrix,
        nodes: Sequence[int],
        generators: Sequence[np.random.Generator],
        models: Matrix,
        round_number: int,
        threads: int,
        losses: NDArray[np.float64] | None = None,
        masks: Matrix | None = None,
    ) -> Matrix:
        """Returns the releases; they are bit-identical for any number of threads.

        Args:
            models: every client's model from which its training started.
            losses: of each row's client before training, if `needs_loss`.
            masks: the mask of the aggregate behind every client's model, where a stage uses one.
        """
        if not self.stages:
            return rows
        batch = ReleaseBatch(
            nodes=np.asarray(nodes, dtype=np.int64),
            generators=generators,
            round_number=round_number,
            rounds=self.rounds,
            records=self.records[list(nodes)],
            seed=self.seed,
            rate=self.rate(round_number),
            models=models,
            masks=masks,
            memory=self.memory,
            losses=losses,
            noise_factor=self.noise_factor(round_number),
        )

        def apply_stages(part: slice) -> None:
            current: Update | Released = Update(rows[part])
            for planned in self.stages:
                current = planned.stage.apply(current, planned.declared, batch.part(part))

        # Whole rows, at least one per part: a row draws from one generator.
        run_parallel(apply_stages, chunks(len(rows), -(-NUMBERS_AT_ONCE // rows.shape[1])), threads)
        return rows


def make_stages(
    stages: Sequence[Stage], context: PlanContext, seed: int, rate: Callable[[int], float], wire: WireFormat
) -> ReleaseStages:
    """Returns the stages of a run with what they declare and their empty memory."""
    memory: dict[str, NDArray[Any]] = {}
    for stage in stages:
        memory |= stage.remembers(context.clients, context.rounds, context.shape)
    return ReleaseStages(
        stages=plan_stages(stages, context),
        seed=seed,
        rate=rate,
        memory=memory,
        wire=wire,
        records=context.records,
        rounds=context.rounds,
        noise_factor=context.noise_factor,
    )
