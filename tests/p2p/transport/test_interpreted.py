"""The kernels give the same bits compiled and as plain Python (NUMBA_DISABLE_JIT=1)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WORLD = """
name: interpreted
seed: 11
rounds: 1
clients: 4
learning: none
data: {name: synthetic, samples: 40, features: 4, classes: 2}
model: {kind: linear}
compute: 20 samples/s
protocol: {kind: gossip, train_per_round: 4, exchange_with: 2, deadline: 20 s, grace: 2 s}
anonymity: {sealed: sizes, routing: relay, relays: 3, hops: 2}
network:
  sharing: SHARING
  uplink: {kind: lognormal, median: 2 kB/s, sigma: 0.5}
  downlink: 3 kB/s
  latency: {kind: uniform, low: 10 ms, high: 200 ms}
  jitter: {kind: exponential, mean: 5 ms}
  loss: 0.1
faults:
- {kind: crash, who: 2, start: 4 s, end: 9 s}
- {kind: duplicate, probability: 0.3, start: 0 s, end: 60 s}
- {kind: corrupt, probability: 0.1, start: 0 s, end: 60 s}
- {kind: reorder, probability: 0.2, delay: 1 s, start: 0 s, end: 60 s}
- {kind: loss, mean_good: 5 s, mean_bad: 1 s, loss_bad: 0.9, start: 0 s, end: 60 s}
- {kind: slow_link, who: 1, factor: 3, start: 2 s, end: 8 s}
- {kind: partition, between: [0, 3], start: 3 s, end: 5 s}
"""

RUN = """
import hashlib, sys
from p2p.transport.core.compiled import is_interpreted
from scenarios.build import build
from scenarios.run_folder.digest import events_digest
from scenarios.loading.load import parse_scenario

simulation = build(parse_scenario(sys.stdin.read()))
simulation.run()
table = simulation.log.messages
print("interpreted" if is_interpreted() else "compiled")
print(events_digest(simulation.log), len(table), simulation.proxy.outcome.stopped_because)
for name in sorted(table.names):
    print(name, table[name].dtype, hashlib.sha256(table[name].tobytes()).hexdigest())
"""


def run(world: str, *, interpreted: bool) -> list[str]:
    """What a fresh process says about the world: how it ran, then digests of everything that happened."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1" if interpreted else "0"}
    # Words of named draws wrap around; plain numpy scalars warn of that.
    command = [sys.executable, "-W", "ignore:overflow encountered:RuntimeWarning", "-c", RUN]
    done = subprocess.run(command, input=world, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["fair", "fifo", "ideal"])
def test_compiled_and_interpreted_kernels_give_equal_bits(sharing: str) -> None:
    """Four clients, relays, loss, jitter, copies, damage, a crash, a partition: every column of the message log."""
    world = WORLD.replace("SHARING", sharing)
    compiled, plain = run(world, interpreted=False), run(world, interpreted=True)
    assert (compiled[0], plain[0]) == ("compiled", "interpreted")
    assert compiled[1:] == plain[1:]
    assert int(compiled[1].split()[1]) > 100
