"""The fault injector: the operations on a running simulation that faults use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nodes.faults.targets import Who, parse_nodes
from nodes.roles.client import Client
from nodes.roles.lifecycle import ProcessSupervisor
from nodes.round_record import RoundRecord
from nodes.world import World
from p2p.clock import Rank
from p2p.log.records import NO_NODE
from p2p.random_streams import stream
from p2p.transport.impairments import Impairment


class Availability(Protocol):
    """A model of client availability."""

    def down(self, node: int, seed: int) -> Iterator[tuple[float, float]]:
        """Yields the down intervals (start, end) in order."""


@dataclass(slots=True)
class FaultInjector:
    """Access to the simulation's world, processes and round records, for faults."""

    world: World
    supervisor: ProcessSupervisor
    clients: Mapping[int, Client]
    records: Mapping[int, RoundRecord]
    roles: tuple[str, ...]
    total_nodes: int
    first_intruder: int
    _intruders: int = 0
    _happened: set[Hashable] = field(default_factory=set)

    @property
    def now_s(self) -> float:
        """Simulated time."""
        return float(self.world.clock.now)

    def at(self, time_s: float, action: Callable[[], Any]) -> None:
        """Schedules an action before all other events of that time."""
        self.world.clock.call_at(time_s, Rank.FAULT, 0, action)

    def between(self, start_s: float, end_s: float | None, begin: Callable[[], Any], end: Callable[[], Any]) -> None:
        """Schedules the beginning and the end of a fault; without `end_s` it does not end."""
        self.at(start_s, begin)
        if end_s is not None:
            self.at(end_s, end)

    def impair(self, impairment: Impairment, start_s: float, end_s: float | None) -> None:
        """Keeps an impairment of the network active for an interval."""
        network = self.world.network
        self.between(start_s, end_s, lambda: network.impair(impairment), lambda: network.repair(impairment))

    def nodes(self, who: Who | None, fraction: float | None, name: str, round_number: int | None = None) -> list[int]:
        """Returns a fault's target nodes; a role is resolved to the node that holds it now."""
        count = len(self.clients)
        if fraction is not None:
            # By the fault's place in the list: faults added behind it do not change which nodes it strikes.
            chosen = stream(self.world.seed, "fault", name).choice(count, round(fraction * count), replace=False)
            return sorted(chosen.tolist())
        named = parse_nodes(() if who is None else who, count, self.roles)
        return self._resolve_role(named.role, round_number) if named.role else list(named.nodes)

    def nodes_or_all(self, who: Who | None, fraction: float | None, name: str) -> list[int]:
        """Like `nodes`, but without targets returns all nodes."""
        if who is None and fraction is None:
            return list(range(self.total_nodes))
        return self.nodes(who, fraction, name)

    def mask(self, nodes: Sequence[int]) -> NDArray[np.bool_]:
        """Returns the nodes as a boolean mask over all nodes."""
        mask = np.zeros(self.total_nodes, dtype=np.bool_)
        mask[list(nodes)] = True
        return mask

    def record(self, kind: str, nodes: Sequence[int], start_s: float, end_s: float | None) -> None:
        """Records a fault for the timeline."""
        until_s = np.inf if end_s is None else end_s
        self.world.log.faults.append({"kind": kind, "who": list(nodes), "start_s": start_s, "end_s": until_s})

    def first_time(self, what: Hashable) -> bool:
        """Returns whether this is the first call for `what`."""
        if what in self._happened:
            return False
        self._happened.add(what)
        return True

    def next_intruder(self) -> int:
        """Returns the node number of a new intruder."""
        self._intruders += 1
        return self.first_intruder + self._intruders - 1

    def _resolve_role(self, role: str, round_number: int | None) -> list[int]:
        if role == "proxy":
            # The node that is the proxy now: after a takeover that is the standby.
            return [self.supervisor.proxy.node]
        if role == "server":
            return [self.world.server]
        # Without a round, the latest one counts. A server that aggregates is no leader.
        record = self.records.get(round_number if round_number is not None else max(self.records, default=0))
        return [] if record is None or record.leader in (NO_NODE, self.world.server) else [record.leader]


def install_availability(availability: Availability, node: int, injector: FaultInjector) -> None:
    """Crashes and recovers a client at the times its availability gives."""
    _Absences(node, availability.down(node, injector.world.seed), injector).schedule_next()


@dataclass(slots=True)
class _Absences:
    """A client's down intervals; they may continue without end, so only the next change is ever scheduled."""

    node: int
    stretches: Iterator[tuple[float, float]]
    injector: FaultInjector
    end_s: float = np.inf

    def schedule_next(self) -> None:
        """Schedules the next interval, if there is one."""
        stretch = next(self.stretches, None)
        if stretch is not None:
            start_s, self.end_s = stretch
            self.injector.at(start_s, self._go_down)

    def _go_down(self) -> None:
        self.injector.supervisor.crash(self.node)
        if self.end_s < np.inf:
            self.injector.at(self.end_s, self._come_back)

    def _come_back(self) -> None:
        self.injector.supervisor.recover(self.node)
        # After the recovery, so that a new interval at the same instant finds the node up.
        self.schedule_next()
