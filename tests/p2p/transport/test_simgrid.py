"""Fair sharing against SimGrid, flow by flow, where it is installed.

Debian's `python3-simgrid` (3.32) belongs to the system's Python, `pip install simgrid` (4) needs Boost and a compiler;
the script below runs with both. SimGrid weighs flows by their latency, so links have none here: then its model is plain
max-min sharing. It allows one engine per process, so each instance runs in its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from p2p.transport.flow_arrivals import Flows, arrivals

pytestmark = pytest.mark.slow

SIMGRID = """
import json, sys
from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone, this_actor
case = json.load(sys.stdin)
old = hasattr(NetZone, "create_full_zone")
precision = (["--cfg=surf/precision:1e-12", "--cfg=maxmin/precision:1e-12"] if old else
             ["--cfg=precision/timing:1e-12", "--cfg=precision/work-amount:1e-9"])
engine = Engine(["x", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--cfg=network/weight-S:0",
                 *precision, "--log=root.threshold:error"])
zone = NetZone.create_full_zone("zone") if old else engine.netzone_root.add_netzone_full("zone")
add_host, add_link = (zone.create_host, zone.create_link) if old else (zone.add_host, zone.add_link)
hosts = [add_host(f"h{i}", 1e9) for i in range(len(case["up"]))]
ups = [add_link(f"u{i}", rate).set_latency(0) for i, rate in enumerate(case["up"])]
downs = [add_link(f"d{i}", rate).set_latency(0) for i, rate in enumerate(case["down"])]
for part in [*hosts, *ups, *downs] if old else ():
    part.seal()
for i, a in enumerate(hosts):
    for j, b in enumerate(hosts):
        if i != j:
            links = [LinkInRoute(ups[i]), LinkInRoute(downs[j])]
            ends = (a.netpoint, b.netpoint, None, None) if old else (a, b)
            zone.add_route(*ends, links, False)
zone.seal()
ends = [None] * len(case["flows"])
def send():
    comms = []
    for n, (src, dst, size, start) in sorted(enumerate(case["flows"]), key=lambda item: item[1][3]):
        this_actor.sleep_until(start)
        comms.append((n, Comm.sendto_async(hosts[src], hosts[dst], size)))
    for n, comm in comms:
        comm.wait()
        ends[n] = comm.finish_time
Actor.create("sender", hosts[0], send) if old else hosts[0].add_actor("sender", send)
engine.run()
print(json.dumps(ends))
"""


@cache
def interpreter() -> str:
    """A Python that has SimGrid."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import simgrid"], capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            continue
    pytest.skip("simgrid is not installed")


def simgrid_ends(up: list[float], down: list[float], flows: list[tuple[int, int, int, float]]) -> list[float]:
    """When each flow ends in SimGrid."""
    case = json.dumps({"up": up, "down": down, "flows": flows})
    # Isolated: the system's Python must not import packages of this environment.
    done = subprocess.run([interpreter(), "-I", "-c", SIMGRID], input=case, capture_output=True, text=True, check=True)
    ends: list[float] = json.loads(done.stdout.splitlines()[-1])
    return ends


def our_ends(up: list[float], down: list[float], flows: list[tuple[int, int, int, float]]) -> list[float]:
    """When each flow ends here."""
    src, dst, sizes, starts = np.array(flows, dtype=float).T
    ends = arrivals(
        "fair", np.array(up), np.array(down), 0.0, Flows(src.astype(np.int64), dst.astype(np.int64), sizes, starts)
    )
    found: list[float] = ends.tolist()
    return found


@pytest.mark.parametrize("staggered", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_flow_ends_as_in_simgrid(seed: int, staggered: bool) -> None:
    """Random access links, pairs, sizes and starts; each end to nine digits."""
    rng = np.random.default_rng([seed, staggered])
    nodes, count = int(rng.integers(4, 20)), int(rng.integers(20, 150))
    up, down = rng.uniform(2, 50, nodes) * 125e3, rng.uniform(10, 100, nodes) * 125e3
    src = rng.integers(0, nodes, count)
    dst = (src + rng.integers(1, nodes, count)) % nodes
    sizes = rng.integers(100_000, 2_000_000, count) if staggered else np.full(count, 800_000)
    starts = rng.uniform(0, 5, count) if staggered else np.zeros(count)
    flows = list(zip(src.tolist(), dst.tolist(), sizes.tolist(), starts.tolist(), strict=True))
    theirs = simgrid_ends(up.tolist(), down.tolist(), flows)
    ours = our_ends(up.tolist(), down.tolist(), flows)
    assert ours == pytest.approx(theirs, rel=1e-9)
