"""The protocols, independent of each other, and the table of their names."""

from nodes.protocols.central import Central
from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader

PROTOCOLS: dict[str, type] = {"gossip": Gossip, "rotating_leader": RotatingLeader, "central": Central}

PROTOCOL_NEEDS = (
    *("plan_round", "take_part", "cohort_size", "longest_s", "quorum", "selection", "invite_window"),
    *("invite_timeout", "include_own", "deadline", "min_updates", "send_at", "grace"),
)
"""What a plug-in protocol must have; all but the two verbs come with `RoundRules`."""


def roles_of(protocol: object) -> tuple[str, ...]:
    """Returns the roles that a fault may name under a protocol."""
    if isinstance(protocol, Central):
        return ("proxy", "server")
    return ("proxy", "leader") if isinstance(protocol, RotatingLeader) else ("proxy",)
