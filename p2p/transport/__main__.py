"""`python -m p2p.transport`: compiles the event core, unless that has been done for this version and machine."""

from p2p.transport.core.memory import Memory

Memory(nodes=1, rounds=1)
