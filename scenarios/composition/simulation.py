"""One run as an object: its processes, models and log, from the first event to the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nodes.learning.byte_counts_only import NoLearning
from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.deferred_vectors import Vector, mean_vector
from nodes.noise_shares.run_exchange import NoiseSharing
from nodes.proxy.proxy import Proxy
from nodes.roles.client import Client
from nodes.roles.lifecycle import ProcessSupervisor
from nodes.roles.server import Server
from nodes.round_record import RoundRecord
from nodes.schedules.fixed import RunSchedule
from nodes.world import World
from p2p.clock import Clock
from p2p.gc_pause import gc_paused
from p2p.log.log import Log
from privacy.accounting.record_level import RecordAccount
from privacy.calibration.noise_plan import NoisePlan
from scenarios.composition.run_terms import Topology
from scenarios.observing.observer import RunObserver
from scenarios.observing.schedule_losses import RoundLosses
from scenarios.schema import Scenario

if TYPE_CHECKING:
    from nodes.learning.trainer import Learner

Learning = DeferredLearning | NoLearning


@dataclass(slots=True)
class Simulation:
    """One run, ready to start: call `run`, then read the log, the outcome and the models."""

    scenario: Scenario
    clock: Clock
    log: Log
    world: World
    learning: Learning
    learner: Learner | None
    proxy: Proxy
    server: Server
    clients: list[Client]
    noise: NoisePlan | None
    topology: Topology
    observer: RunObserver
    supervisor: ProcessSupervisor
    samples_per_training: NDArray[np.int64]
    schedule: RunSchedule
    losses: RoundLosses
    records: dict[int, RoundRecord] = field(default_factory=dict)
    sharing: NoiseSharing | None = None
    record_account: RecordAccount | None = None

    def run(self) -> None:
        """Runs the processes until the proxy has finished."""
        with gc_paused():
            for _ in self.rounds():
                pass

    def rounds(self) -> Iterator[Mapping[str, Any]]:
        """Runs the processes, and yields the row of each round after the event that has closed it.

        An iteration that is given up leaves the run where it is: no later event happens.
        """
        clock, ended, rows = self.clock, self.supervisor.ended, self.log.rounds
        self.supervisor.start_all()
        reported = len(rows)
        # Not `clock.run(until=...)`: it can be left in the middle only through an event of its own.
        while not ended.processed:
            clock.step()
            if len(rows) > reported:
                reported = len(rows)
                yield rows[-1]
        self.supervisor.log_open_spans()

    @property
    def deferred_learning(self) -> DeferredLearning | None:
        """The models; None without learning."""
        return self.learning if isinstance(self.learning, DeferredLearning) else None

    def collected_model(self) -> Vector | None:
        """Returns the final model: the server's own, the one it collected, or the mean of several."""
        if self.deferred_learning is None:
            return None
        if self.topology == "central":
            return self.deferred_learning.model(self.world.server)
        vectors = [item.value for item in self.server.collected]
        return mean_vector(vectors) if vectors else None

    def final_scores(self) -> tuple[NDArray[np.float64] | None, tuple[float, float] | None]:
        """Returns the final accuracy of every evaluated client's model, and accuracy and loss of the collected one."""
        learning = self.deferred_learning
        if learning is None:
            return None, None
        chosen = self.scenario.evaluation.chosen(self.scenario.clients, self.scenario.seed)
        vector = self.collected_model()
        return learning.scores(chosen.tolist())[0], None if vector is None else learning.scores_of(vector)

    def final_tensors(self) -> dict[str, NDArray[Any]] | None:
        """Returns the parameters of the final model by name; None without one."""
        vector = self.collected_model()
        if vector is None or self.learner is None:
            return None
        return {name: tensor.numpy() for name, tensor in self.learner.state_dict(vector.array()).items()}
