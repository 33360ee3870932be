"""What was foretold: the set-up of a run, or a round of gossip, as it will go if nothing disturbs it.

Nothing in here is decided anew. A course is worked out by nodes/foresight.py before anything of it happens; then the
members' processes follow it, each at its own instants, and what they sent is written into the books.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.foretelling import Sendings
from p2p.log import Log
from p2p.network import Network

if TYPE_CHECKING:
    from nodes.client import Arrangement
    from nodes.sealed_exchange import SealedExchange
    from nodes.workbench import Vector

Nodes = NDArray[np.int64]
Floats = NDArray[np.float64]


class Stretches(NamedTuple):
    """What some nodes did, each from one instant until another."""

    name: str
    nodes: Nodes
    starts_s: Floats
    ends_s: Floats


@dataclass(slots=True)
class Course:
    """What is sent and done in a round, up to the instant at which the proxy has heard of everybody's end."""

    round_number: int
    end_s: float
    sendings: Sequence[Sendings]
    stretches: Sequence[Stretches]

    def write_down(self, network: Network, log: Log) -> None:
        """Everything has happened."""
        network.enter(self.sendings)
        for name, nodes, starts_s, ends_s in self.stretches:
            log.span_each(nodes, self.round_number, name, starts_s, ends_s)


class Cue(NamedTuple):
    """Tells a member of a foretold round to begin; when it comes again, to seal if that is needed, then to average.

    Where updates have no contents it comes once.
    """

    course: GossipCourse
    place: int


@dataclass(slots=True)
class GossipCourse(Course):
    """A round of gossip.

    Attributes:
        formed_s: when the proxy has all answers
        members: the cohort, sorted; all that follows is in this order
        begins_s: when each has its assignment, and begins to train
        heard: for each member the places of the edges over which it heard, in the order of arrival
        releases: the members' updates, as they were promised
        sealing: seals and opens them, if that is done for real
        has_contents: whether updates are more than byte counts
    """

    formed_s: float
    members: Nodes
    arrangement: Arrangement
    begins_s: Floats
    sends_s: Floats
    averages_s: Floats
    heard: Nodes
    include_own: bool
    releases: dict[int, Vector] = field(default_factory=dict)
    sealing: SealedExchange | None = None
    has_contents: bool = True

    def successors(self, place: int) -> list[int]:
        """Whom a member sends to."""
        degree = self.heard.shape[1]
        receivers: list[int] = self.arrangement.edges["update"][place * degree : (place + 1) * degree, 1].tolist()
        return receivers

    def senders_to(self, place: int) -> list[int]:
        """Whom a member has heard from, in the order of arrival."""
        senders: list[int] = self.arrangement.edges["update"][self.heard[place], 0].tolist()
        return senders

    def updates_for(self, place: int) -> list[Vector]:
        """What a member averages."""
        if self.sealing is None:
            updates = [self.releases[node] for node in self.senders_to(place)]
        else:
            updates = self.sealing.open(self, place)
        return [*updates, self.releases[int(self.members[place])]] if self.include_own else updates

    def write_down(self, network: Network, log: Log) -> None:
        """Everything has happened."""
        Course.write_down(self, network, log)
        senders = self.arrangement.edges["update"][self.heard, 0]
        contributors = np.column_stack([senders, self.members]) if self.include_own else senders
        count = contributors.shape[1]
        log.aggregations.extend(
            contributors.size,
            round=self.round_number,
            aggregator=np.repeat(self.members, count),
            contributor=contributors.ravel(),
            at_s=np.repeat(self.averages_s, count),
            void=False,
        )

    def let_go(self) -> None:
        """The round is over: whoever still knows of it keeps nothing of it."""
        self.sendings, self.stretches, self.releases, self.sealing = (), (), {}, None
        self.heard = self.members = np.empty(0, dtype=np.int64)
        self.begins_s = self.sends_s = self.averages_s = np.empty(0)
