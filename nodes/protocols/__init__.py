"""The protocols, independent of each other, and the table of their names."""

from nodes.protocols.central import Central
from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader

PROTOCOLS: dict[str, type] = {"gossip": Gossip, "rotating_leader": RotatingLeader, "central": Central}


def roles_of(protocol: object) -> tuple[str, ...]:
    """Returns the roles that a fault may name under a protocol."""
    if isinstance(protocol, Central):
        return ("proxy", "server")
    return ("proxy", "leader") if isinstance(protocol, RotatingLeader) else ("proxy",)
