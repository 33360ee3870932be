"""Timed faults on sets of nodes: slow machines and links, loss, corruption, duplication, reordering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt

from nodes.faults.targets import Who, check_window
from nodes.roles.slowdown import Slow
from p2p.config.errors import UserError
from p2p.config.units import Fraction, PositiveSeconds, Seconds
from p2p.transport.impairments import Bursts, Chance

if TYPE_CHECKING:
    from nodes.faults.injector import FaultInjector


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeInterval:
    """An interval of simulated time.

    Attributes:
        start: beginning of the interval
        end: end of the interval; without it, the end of the run
    """

    start: Seconds = 0.0
    end: Seconds | None = None

    def __post_init__(self) -> None:
        problems = [*check_window(self.start, self.end, None), *self.more_problems()]
        if problems:
            raise UserError(problems)

    def more_problems(self) -> list[str]:
        """Returns further problems of a subclass's settings."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedFault(TimeInterval):
    """A fault on some nodes during an interval.

    Attributes:
        who: a node, a list, a range such as 0-49; faults of messages affect all nodes unless given
        fraction: instead of `who`, this share of the clients, drawn at random
    """

    defaults_to_all: ClassVar[bool] = False
    who: Who | None = None
    fraction: Fraction | None = None

    def more_problems(self) -> list[str]:
        """Checks that the nodes are given exactly once."""
        given = (self.who is not None) + (self.fraction is not None)
        if given > 1 or not (given or self.defaults_to_all):
            return ["who: needs exactly one of who and fraction; give one of them"]
        return []

    def select_targets(self, injector: FaultInjector, name: str, kind: str) -> list[int]:
        """Returns the affected nodes and records the fault for the timeline."""
        # Faults of machines need a target; those of messages strike all senders unless told otherwise.
        found = (injector.nodes_or_all if self.defaults_to_all else injector.nodes)(self.who, self.fraction, name)
        injector.record(kind, found, self.start, self.end)
        return found

    def impair_by_chance(
        self,
        injector: FaultInjector,
        name: str,
        kind: Literal["corrupt", "duplicate", "reorder"],
        probability: float,
        delay_s: float = 0.0,
    ) -> None:
        """Impairs each message of the affected senders with a probability, during the interval."""
        senders = injector.mask(self.select_targets(injector, name, kind))
        injector.impair(Chance(kind, name, probability, senders, delay_s), self.start, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggle(TimedFault):
    """Nodes train several times as slowly during the interval.

    Attributes:
        factor: how many times as long training takes
    """

    factor: Annotated[float, Gt(0)] = 10.0

    def install(self, injector: FaultInjector, name: str) -> None:
        """Adds the slowdown to the nodes; training in progress slows down from the interval's start."""
        end_s = np.inf if self.end is None else self.end
        for node in self.select_targets(injector, name, "slow"):
            client = injector.clients[node]
            # All slowdowns are told in advance, so that training under way knows when its speed changes.
            client.slow = (*client.slow, Slow(self.start, end_s, self.factor))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowLink(TimedFault):
    """Nodes' links are several times as slow during the interval.

    Attributes:
        factor: how many times as slow
        direction: up, down or both
    """

    factor: Annotated[float, Gt(0)] = 10.0
    direction: Literal["up", "down", "both"] = "both"

    def install(self, injector: FaultInjector, name: str) -> None:
        """Schedules the change of rates and its reversal."""
        # Rates are multiplied, not set, so that overlapping faults combine and end in any order.
        struck, network = self.select_targets(injector, name, "slow_link"), injector.world.network
        up = self.factor if self.direction != "down" else 1.0
        down = self.factor if self.direction != "up" else 1.0
        injector.between(
            self.start,
            self.end,
            lambda: network.scale_links(struck, 1 / up, 1 / down),
            lambda: network.scale_links(struck, up, down),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstLoss(TimedFault):
    """Loss in bursts (Gilbert-Elliott): senders' links change between a good and a bad state.

    Attributes:
        mean_good: mean length of the good state
        mean_bad: mean length of the bad state
        loss_good: share of messages lost in the good state
        loss_bad: share of messages lost in the bad state
    """

    defaults_to_all: ClassVar[bool] = True
    mean_good: PositiveSeconds = 60.0
    mean_bad: PositiveSeconds = 5.0
    loss_good: Fraction = 0.0
    loss_bad: Fraction = 0.5

    def install(self, injector: FaultInjector, name: str) -> None:
        """Enables Gilbert-Elliott loss for the interval."""
        senders = injector.mask(self.select_targets(injector, name, "loss"))
        means, losses = (self.mean_good, self.mean_bad), (self.loss_good, self.loss_bad)
        bursts = Bursts(name, injector.world.seed, self.start, *means, *losses, senders)
        injector.impair(bursts, self.start, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt(TimedFault):
    """Bytes of some messages change in transit; receivers detect and reject them.

    Attributes:
        probability: share of messages that are corrupted
    """

    defaults_to_all: ClassVar[bool] = True
    probability: Fraction = 0.05

    def install(self, injector: FaultInjector, name: str) -> None:
        """Enables corruption for the interval."""
        self.impair_by_chance(injector, name, "corrupt", self.probability)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate(TimedFault):
    """Some messages are sent twice; receivers reject the second as a replay.

    Attributes:
        probability: share of messages that are duplicated
    """

    defaults_to_all: ClassVar[bool] = True
    probability: Fraction = 0.05

    def install(self, injector: FaultInjector, name: str) -> None:
        """Enables duplication for the interval."""
        self.impair_by_chance(injector, name, "duplicate", self.probability)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder(TimedFault):
    """Some messages are delayed, so that later ones overtake them.

    Attributes:
        probability: share of messages that are delayed
        delay: the longest extra delay
    """

    defaults_to_all: ClassVar[bool] = True
    probability: Fraction = 0.1
    delay: PositiveSeconds = 1.0

    def install(self, injector: FaultInjector, name: str) -> None:
        """Enables extra delays for the interval."""
        self.impair_by_chance(injector, name, "reorder", self.probability, self.delay)
