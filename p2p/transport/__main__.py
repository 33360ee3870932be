"""`python -m p2p.transport`: compiles the event core, unless this version is compiled already on this machine."""

from p2p.transport.core.memory import Memory

Memory(nodes=1, rounds=1)
