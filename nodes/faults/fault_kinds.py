"""The faults of a scenario; they combine freely.

Each fault is a frozen dataclass: its fields are the scenario's keys, and `install` schedules it. Among simultaneous
events, faults take effect first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge

from nodes.faults.targets import Who, check_window, parse_nodes
from nodes.faults.timed_faults import BurstLoss, Corrupt, Duplicate, Reorder, SlowLink, Straggle, TimeInterval
from nodes.phase_hooks import Phase
from p2p.config.errors import UserError
from p2p.config.units import Fraction, PositiveSeconds, Seconds
from p2p.transport.impairments import Partition

if TYPE_CHECKING:
    from nodes.faults.injector import FaultInjector


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """Nodes crash, and recover if an end is given: model and ledger survive, all other state is lost.

    Attributes:
        who: a node, a list, a range such as 0-49, or a role: leader, proxy, server
        fraction: instead of `who`, this share of the clients, drawn at random
        start: time of the crash; or give `round` and `phase`
        round: round of the crash
        phase: the crash happens when the node reaches this phase of the round
        end: time of the recovery
        lasts: how long the nodes are down, instead of `end`
    """

    who: Who | None = None
    fraction: Fraction | None = None
    start: Seconds | None = None
    round: Annotated[int, Ge(1)] | None = None
    phase: Phase | None = None
    end: Seconds | None = None
    lasts: PositiveSeconds | None = None

    def __post_init__(self) -> None:
        problems = check_window(self.start, self.end, self.lasts)
        if (self.who is None) == (self.fraction is None):
            problems.append("who: needs exactly one of who and fraction; give one of them")
        if (self.start is None) == (self.round is None):
            problems.append("start: needs exactly one of start and round; give one of them")
        if self.round is not None and self.end is not None:
            problems.append("end: a crash in a round lasts a given time; use `lasts`")
        if self.phase is not None and self.round is None:
            problems.append("phase: needs `round` beside it; add the round")
        if problems:
            raise UserError(problems)

    def install(self, injector: FaultInjector, name: str) -> None:
        """Schedules the crash, or registers for its round and phase."""
        if self.start is not None:
            injector.at(self.start, partial(self._strike_all, injector, name))
        else:
            injector.world.phase_hooks.listeners.append(partial(self._on_phase, injector, name))

    def _strike_all(self, injector: FaultInjector, name: str) -> None:
        for node in injector.nodes(self.who, self.fraction, name):
            self._strike(injector, node)

    def _strike(self, injector: FaultInjector, node: int) -> None:
        lasts_s = self._lasts_s()
        if lasts_s is None:
            injector.supervisor.permanent_crashes.add(node)
        else:
            injector.at(injector.now_s + lasts_s, partial(injector.supervisor.recover, node))
        injector.record("crash", [node], injector.now_s, None if lasts_s is None else injector.now_s + lasts_s)
        injector.supervisor.crash(node)

    def _lasts_s(self) -> float | None:
        if self.end is not None and self.start is not None:
            return self.end - self.start
        return self.lasts

    def _on_phase(self, injector: FaultInjector, name: str, node: int, round_number: int, phase: str) -> None:
        wanted: str = self.phase or "train"
        if wanted == "invite" and self.who == "leader":
            wanted = "appointed"  # there is no leader before the proxy has appointed one
        if round_number != self.round or phase != wanted:
            return
        struck = injector.nodes(self.who, self.fraction, name, round_number)
        # The proxy reports no phases; it crashes when the first member reaches the phase.
        due = struck if self.who == "proxy" else [one for one in struck if one == node]
        for one in due:
            # A role crashes once per fault, even if another node takes the role over; named nodes crash once each.
            if injector.first_time((name, None if isinstance(self.who, str) and self.who in injector.roles else one)):
                # Scheduled and not done at once: the phase was reported from inside the process that is to end.
                injector.at(injector.now_s, partial(self._strike, injector, one))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPartition(TimeInterval):
    """A network partition: messages between two groups of nodes are lost during the interval.

    Attributes:
        between: two groups, such as [0-49, 50-99]
        both: whether both directions are cut, or only from the first group to the second
    """

    between: tuple[Who, Who]
    both: bool = True

    def install(self, injector: FaultInjector, name: str) -> None:
        """Schedules the partition and its end."""
        # Groups are of clients; roles may move during the interval and are refused before the run.
        one, other = (injector.nodes(group, None, name) for group in self.between)
        partition = Partition(injector.mask(one), injector.mask(other), self.both)
        network = injector.world.network
        injector.between(self.start, self.end, lambda: network.impair(partition), lambda: network.repair(partition))
        injector.record("partition", [*one, *other], self.start, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intrude(TimeInterval):
    """An unregistered node sends forgeries, replays overheard messages and guesses addresses.

    Attributes:
        every: mean time between its messages
    """

    every: PositiveSeconds = 1.0

    def install(self, injector: FaultInjector, name: str) -> None:
        """Schedules the intruder's start."""
        from nodes.roles.intruder import Intruder

        # Numbers are given when faults are installed, so that they do not depend on who begins first.
        node = injector.next_intruder()
        intruder = Intruder(node, injector.world, name, self.every, np.inf if self.end is None else self.end)
        injector.at(self.start, lambda: intruder.begin(injector.world.clock))
        injector.record("intruder", [node], self.start, self.end)


FAULTS: dict[str, type] = {
    "crash": Crash,
    "slow": Straggle,
    "slow_link": SlowLink,
    "partition": NetworkPartition,
    "loss": BurstLoss,
    "corrupt": Corrupt,
    "duplicate": Duplicate,
    "reorder": Reorder,
    "intruder": Intrude,
}
Fault = Crash | Straggle | SlowLink | NetworkPartition | BurstLoss | Corrupt | Duplicate | Reorder | Intrude


def fault_problems(fault: object, clients: int, roles: tuple[str, ...]) -> list[str]:
    """Returns the problems with a fault's targets: unknown nodes, or a role the protocol does not have."""
    # Faults give their targets as `who`, as `between`, or not at all.
    named = [("who", getattr(fault, "who", None)), *(("between", group) for group in getattr(fault, "between", ()))]
    may_be_role = isinstance(fault, Crash)
    problems: list[str] = []
    for key, who in named:
        if who is not None:
            problems.extend(parse_nodes(who, clients, roles if may_be_role else (), key).problems)
    return problems
