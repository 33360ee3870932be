"""Roles of nodes by id: clients 0..N-1, then proxy, standby, tracker and server, then relays and intruders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.log import Log

_SERVICES = ("proxy", "standby", "tracker", "server")


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles in a run; nodes after the services are relays if listed, otherwise intruders."""

    clients: int
    relays: tuple[int, ...] = ()

    def role(self, node: int) -> str:
        """Returns the role of `node`."""
        if node < self.clients:
            return "client"
        if node < self.clients + len(_SERVICES):
            return _SERVICES[node - self.clients]
        # Both lie above the services, and only relays are known by number.
        return "relay" if node in self.relays else "intruder"

    def node(self, service: str) -> int:
        """Returns the node id of a service."""
        return self.clients + _SERVICES.index(service)

    def to_json(self) -> dict[str, Any]:
        """Returns the `nodes` entry of the summary."""
        services = {name: self.node(name) for name in _SERVICES}
        return {"clients": self.clients, **services, "relays": list(self.relays)}

    @classmethod
    def from_json(cls, nodes: Mapping[str, Any]) -> Roles:
        """Reads the `nodes` entry of a summary."""
        return cls(clients=int(nodes["clients"]), relays=tuple(nodes.get("relays", ())))


def leaders(log: Log) -> dict[int, int]:
    """Returns the leader of each round that had one."""
    return {record["round"]: record["leader"] for record in log.rounds if record.get("leader", -1) >= 0}


def led_by(messages_round: NDArray[Any], node: NDArray[Any], leader: Mapping[int, int]) -> NDArray[np.bool_]:
    """Returns, element by element, whether `node` led the round of `messages_round`."""
    if not leader:
        return np.zeros(len(node), dtype=np.bool_)
    numbers = np.array(sorted(leader))
    nodes = np.array([leader[number] for number in numbers])
    # Rounds after the last led one would fall off the end.
    place = np.minimum(np.searchsorted(numbers, messages_round), len(numbers) - 1)
    same: NDArray[np.bool_] = (numbers[place] == messages_round) & (nodes[place] == node)
    return same
