"""Estimated peak memory of a run, and the memory available."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from p2p.config.errors import UserError
from p2p.log import records
from scenarios.metrics.headline.number_format import bytes_text
from scenarios.planning.participation import Rehearsal
from scenarios.planning.problem_size import ProblemSize
from scenarios.schema import Scenario

# The interpreter with its packages, and what importing torch adds.
_BASE, _TORCH = 90e6, 260e6
# Bytes per client and per message in flight, measured with 20,000 and 100,000 clients. Tables grow by doubling, so
# their capacity is on average 1.5 times their length.
_PER_CLIENT, _PER_MESSAGE, _GROWTH = 10.5e3, 0.5e3, 1.5
_STACKS = 5
"""Copies of a cohort's vectors alive at once: before and after training, releases, and their means."""


def estimate_memory(scenario: Scenario, shape: ProblemSize, rehearsal: Rehearsal) -> dict[str, int]:
    """Returns the estimated peak bytes by part, and their total."""
    cohort, learns = scenario.protocol.cohort_size, scenario.learning == "torch"
    messages = messages_per_round(scenario, rehearsal)
    parts = {
        "program": _BASE + (_TORCH if learns else 0.0),
        # Without learning all nodes share one vector of zeros.
        "models": 4.0 * shape.dimension * (scenario.clients + 1) if learns else 4.0 * shape.dimension,
        "releases": 4.0 * shape.dimension * cohort * _vectors_alive(scenario, learns),
        "data": 2.0 * shape.data_bytes if learns else 0.0,
        "nodes": _PER_CLIENT * scenario.clients,
        "messages": _PER_MESSAGE * messages,
        "tables": _GROWTH * _table_bytes(scenario, rehearsal, messages),
    }
    rounded = {name: round(amount) for name, amount in parts.items()}
    return rounded | {"total": sum(rounded.values())}


def messages_per_round(scenario: Scenario, rehearsal: Rehearsal) -> float:
    """Returns the messages of one round, control messages included, without retransmissions."""
    hops = 1 + (scenario.anonymity.hops if scenario.anonymity.relay_count else 0)
    edges = [sum(map(len, planned.round_plan.edges.values())) for planned in rehearsal.arranged]
    cohort = scenario.protocol.cohort_size
    # Each client is invited and answers; each member gets an assignment and reports its completion.
    return hops * float(np.mean(edges)) + 2 * scenario.clients + 2 * cohort if edges else 2.0 * scenario.clients


def machine_bytes() -> int:
    """Returns the memory available to this process: the machine's, or its container's limit if that is less."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    # cgroup v2 and v1; an unlimited v2 group holds the word "max", which is no integer.
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            limits.append(int(Path(name).read_text(encoding="ascii")))
    # An unlimited v1 group holds a number larger than any machine.
    return min(limits)


def refuse_what_does_not_fit(needed: dict[str, int], available: int, scenario: Scenario) -> None:
    """Raises a `UserError` that names the largest part and a cure if the run does not fit into memory."""
    if needed["total"] <= available:
        return
    largest = max((name for name in needed if name != "total"), key=lambda name: needed[name])
    cures = {
        "models": "use fewer clients, a smaller model or `learning: none`",
        "releases": "use a smaller cohort, a smaller model or `learning: none`",
        "data": "use less data or `learning: none`",
        "tables": "use fewer rounds or fewer messages per round",
    }
    raise UserError(
        f"clients = {scenario.clients}: the run needs about {bytes_text(needed['total'])} of memory "
        f"({largest} {bytes_text(needed[largest])}), there are {bytes_text(available)}; "
        f"{cures.get(largest, 'use fewer clients')}, or give --memory"
    )


def _vectors_alive(scenario: Scenario, learns: bool) -> float:
    """Returns the copies of each member's vector: those of learning, and one ciphertext if messages are encrypted."""
    return (_STACKS if learns else 0) + (1 if scenario.anonymity.sealed is True else 0)


def _table_bytes(scenario: Scenario, rehearsal: Rehearsal, messages: float) -> float:
    updates = [len(planned.round_plan.edges.get("update", ())) for planned in rehearsal.arranged]
    per_round = float(np.mean(updates)) if updates else 0.0
    cohort = scenario.protocol.cohort_size
    rows = (
        (records.MESSAGES, messages),
        (records.GRAPH_COLUMNS, per_round),
        (records.AGGREGATION_COLUMNS, per_round + cohort),
        # About six spans a member and round.
        (records.SPAN_COLUMNS, 6.0 * cohort),
        (records.PRIVACY_COLUMNS, float(cohort)),
    )
    row_bytes = sum(count * sum(np.dtype(kind).itemsize for kind in columns.values()) for columns, count in rows)
    return row_bytes * rehearsal.rounds
