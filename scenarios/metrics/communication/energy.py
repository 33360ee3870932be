"""Energy of sending, receiving and training, by the rates of the scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from p2p.links.device_classes import Device, per_client_energy
from p2p.links.settings import Energy
from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.traffic import bytes_by_node, node_count

Work = Literal["per_byte_sent", "per_byte_received", "per_sample"]


def energy_j(
    log: Log,
    rates: Energy,
    samples_per_training: NDArray[np.int64],
    devices: Sequence[Device] = (),
    seed: int = 0,
) -> dict[str, Any]:
    """Returns the energy of a run in joules: totals over all nodes by purpose, and the spread over the clients.

    A byte costs energy when it leaves its sender, even if the message is lost later, and when it arrives.
    A training costs energy when it has ended.

    Args:
        samples_per_training: for each client, how many samples one training processes.
        devices: the classes whose presets give the rates that `rates` does not.
    """
    clients = len(samples_per_training)
    # A client that sent and received nothing does not appear in the message log.
    nodes = max(node_count(log), clients)
    # Bytes that had left: what a crash or partition kept on the uplink cost nothing.
    left = np.bincount(log.messages["sender"], log.messages["left_bytes"], nodes)
    _, arrived = bytes_by_node(log.messages, nodes)
    trained = np.zeros(nodes)
    trained[:clients] = _trainings(log, clients) * samples_per_training
    works: tuple[tuple[str, Work, NDArray[Any]], ...] = (
        ("sending", "per_byte_sent", left),
        ("receiving", "per_byte_received", arrived),
        ("training", "per_sample", trained),
    )
    parts = {name: _rates(rates, key, devices, seed, clients, nodes) * work for name, key, work in works}
    per_client = np.sum(list(parts.values()), axis=0)[:clients]
    return {
        "total": float(sum(part.sum() for part in parts.values())),
        **{name: float(part.sum()) for name, part in parts.items()},
        "per_client": {"median": float(np.median(per_client)), "max": float(per_client.max(initial=0.0))},
    }


def _rates(
    rates: Energy, key: Work, devices: Sequence[Device], seed: int, clients: int, nodes: int
) -> NDArray[np.float64]:
    """Returns one rate of every node: the given one, else that of the client's preset, else 0."""
    given: float | None = getattr(rates, key)
    if given is not None:
        return np.full(nodes, given)
    found = np.zeros(nodes)
    found[:clients] = per_client_energy(devices, key, seed, clients)
    return found


def _trainings(log: Log, clients: int) -> NDArray[np.int64]:
    done = log.spans["name"] == records.SPAN["train"]
    return np.bincount(log.spans["node"][done], minlength=clients)[:clients]
