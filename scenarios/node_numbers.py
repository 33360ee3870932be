"""The numbers of the nodes of a run: clients, service nodes, relays and intruders, in this order."""

from __future__ import annotations

from nodes.faults.fault_kinds import Intrude
from scenarios.schema import Scenario

PROXY, STANDBY, TRACKER, SERVER = range(4)
"""Offsets of the service nodes, which are numbered after the clients."""
SERVICE_NODES = 4


def count_intruders(scenario: Scenario) -> int:
    """Returns the number of intruders, which have the last node numbers."""
    return sum(isinstance(fault, Intrude) for fault in scenario.faults)


def count_nodes(scenario: Scenario) -> int:
    """Returns the number of nodes of all kinds."""
    return scenario.clients + SERVICE_NODES + scenario.anonymity.relay_count + count_intruders(scenario)


def relay_nodes(scenario: Scenario) -> tuple[int, ...]:
    """Returns the relays' node numbers, which follow the service nodes."""
    first = scenario.clients + SERVICE_NODES
    return tuple(range(first, first + scenario.anonymity.relay_count))
