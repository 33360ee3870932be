"""The interface for protocols and plug-ins: the shape of a protocol, its inputs, and the types of a round.

A protocol is any frozen dataclass with the two verbs of `PeerProtocol`: the proxy calls `plan_round`, and every member
runs `take_part`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nodes.messaging.control_messages import Assignment as Assignment
from nodes.protocols.round_rules import RoundRules as RoundRules
from p2p.log.records import NO_NODE as NO_NODE
from p2p.random_streams import stream as stream
from privacy.accounting.spread import Spread as Spread

if TYPE_CHECKING:
    import simpy

    from nodes.roles.client import Client as Client

    Steps = Generator[simpy.Event, Any, None]
    """A member's part, as a process of waits and actions."""
else:
    # For annotations only: a client imports this module, and SimPy is imported only when something is simulated.
    Client = Any
    Steps = Generator

Edges = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RoundContext:
    """The input of `plan_round`: the members (true identities) and the holder of the current model.

    Attributes:
        holder: the node that has the newest aggregate, or NO_NODE
        stale: members whose model is older than that
        clients: how many clients the run has; their identities are 0 to clients - 1
        led: the leaders of earlier rounds, once for each round
    """

    seed: int
    round_number: int
    members: NDArray[np.int64]
    holder: int
    stale: NDArray[np.int64]
    server: int
    clients: int = 0
    led: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The plan of a round: for each kind of message an array of (sender, receiver), and the leader if there is one.

    Attributes:
        weights: the weight of each `update` edge in the receiver's average; None means equal ones
        own_weights: where updates are weighed by records: the weight of each receiver's own, by node
    """

    edges: dict[str, Edges] = field(default_factory=dict)
    leader: int = NO_NODE
    weights: NDArray[np.float64] | None = None
    own_weights: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What leaves a client under a protocol, as the accountant needs to know it.

    A protocol with a method `disclosure` promises that a client sends nothing but updates handed over by `publish`,
    models, and control messages whose content and time do not depend on its records. Without the method no epsilon is
    proved.

    Attributes:
        spread: by_path is right for every protocol: an update counts for everyone it reaches by any path. to_all is
            right, and exact, if all that anyone trains from or hands over is an aggregate made by `average`.
        sends_first: with by_path, whether in every round a node has sent all its updates before it uses any that it
            received in that round, and uses received updates by `average` or `mix_models` alone. Otherwise all that
            reached a node in a round counts as behind everything it sends in it.
        unaccounted: what else leaves a client, one sentence each; any of it makes every figure infinite.
        events_depend_on_learning: whether who sends what and when depends on losses, accuracies or models.
    """

    spread: Spread = "by_path"
    sends_first: bool = False
    unaccounted: tuple[str, ...] = ()
    events_depend_on_learning: bool = False


def disclosure_of(protocol: object) -> Disclosure | None:
    """Returns what a protocol declares; None if its class itself does not, whatever it inherits."""
    # A subclass may send more than its base does, so it has to declare anew.
    if "disclosure" not in vars(type(protocol)):
        return None
    declared: Disclosure = protocol.disclosure()  # type: ignore[attr-defined]
    return declared


class PeerProtocol(Protocol):
    """The shape of a protocol (not to be confused with typing.Protocol)."""

    @property
    def cohort_size(self) -> int:
        """The number of clients that train in a round."""

    @property
    def longest_s(self) -> float:
        """The longest time from a member's assignment to the end of its part."""

    def plan_round(self, context: RoundContext) -> RoundPlan:
        """Plans a round; the proxy calls this once per round."""

    def take_part(self, client: Client, assignment: Assignment) -> Steps:
        """A member's part, as a process of waits and actions."""
