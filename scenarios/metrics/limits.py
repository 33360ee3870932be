"""The rates and deadlines of a simulation, for the diagnosis of its rounds."""

from __future__ import annotations

import numpy as np

from scenarios.composition.simulation import Simulation
from scenarios.metrics.findings import RunLimits

_KEYS = ("deadline", "model_deadline", "handover_timeout", "leader_timeout")


def limits_of(simulation: Simulation) -> RunLimits:
    """Returns what limited a run."""
    links, protocol = simulation.world.network.links, simulation.scenario.protocol
    return RunLimits(
        deadlines_s={key: float(getattr(protocol, key)) for key in _KEYS if hasattr(protocol, key)},
        up=links.up,
        down=links.down,
        train_s=np.array([client.train_s for client in simulation.clients]),
        waits_for_all=getattr(protocol, "quorum", 1.0) >= 1.0,
    )
