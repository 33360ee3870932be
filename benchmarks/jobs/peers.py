"""Many peers: each in a process of its own, one round, five messages to others; run alone to see its memory.

Measured is the whole run: what it builds, simulates, sums up and writes; against SimPy, simulating alone.

python -m benchmarks.jobs.peers 10000
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import simpy

from benchmarks.figures import Effort, Figure
from benchmarks.scenes import peers, scene
from scenarios.build import build
from scenarios.running.run import run_scenario

GIB = 1 << 30
MILLION = 1_000_000


def most_memory() -> int:
    """The most memory this process has had, in bytes.

    Not `ru_maxrss` where there is a choice: a child begins with its parent's there.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def run_peers(count: int, *, way: str = "quiet") -> dict[str, float]:
    """CPU seconds of a whole run, from the scenario to its files; its messages, and the most memory it has had."""
    import pyarrow.parquet  # noqa: F401  # not in the time that is measured

    start_s = time.process_time()
    with TemporaryDirectory() as folder:
        summary, _ = run_scenario(peers(count, way=way), Path(folder) / "run")
    end_s = time.process_time()
    return {
        "peers": count,
        "cpu_s": end_s - start_s,
        "messages": summary["messages"]["sent"],
        "bytes": most_memory(),
    }


def run_simulated(count: int) -> dict[str, float]:
    """CPU seconds of building and simulating alone, and messages."""
    start_s = time.process_time()
    simulation = build(peers(count, way="lossy"))
    simulation.run()
    return {"cpu_s": time.process_time() - start_s, "messages": len(simulation.log.messages)}


def run_learning(count: int) -> dict[str, float]:
    """Wall seconds of the best of some rounds of `small` with gossip to 10, and the most memory."""
    ends_s: list[float] = []
    trained = 7 * count // 10
    world = scene("small", rounds=3, clients=count, trained=trained, degree=10)
    simulation = build(world, listeners=[lambda row: ends_s.append(time.process_time())])
    ends_s.append(time.process_time())
    simulation.run()
    best_s = min(after - before for before, after in pairwise(ends_s))
    return {"round_s": best_s, "bytes": most_memory()}


@lru_cache
def apart(what: str, count: int) -> dict[str, float]:
    """One of the above in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.jobs.peers", str(count), what]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def timeouts_per_s(processes: int, rounds: int = 3) -> float:
    """Staggered timeouts of bare SimPy per CPU second."""
    environment = simpy.Environment()

    def life(offset: float) -> Generator[simpy.Event, Any, None]:
        yield environment.timeout(offset)
        for _ in range(rounds):
            yield environment.timeout(1.0)

    for number in range(processes):
        environment.process(life(number / processes))
    start_s = time.process_time()
    environment.run()
    return processes * (rounds + 1) / (time.process_time() - start_s)


def scaling(effort: Effort) -> list[dict[str, float]]:
    """The run of peers at 10^2, 10^3, ... as far as the effort goes."""
    top = 1000 if effort.quick else effort.largest
    return [apart("peers", 10**power) for power in range(2, 7) if 10**power <= top]


def many_peers(effort: Effort) -> list[Figure]:
    """Cost per message must not grow much with the number of peers."""
    points = scaling(effort)
    small, large = points[min(2, len(points) - 1)], points[-1]
    each = {point["peers"]: 1e6 * point["cpu_s"] / point["messages"] for point in points}
    count = int(large["peers"])
    told = f"{large['cpu_s']:.0f} s, {each[large['peers']]:.0f} us a message, {large['messages']:.0f} messages"
    growth = each[large["peers"]] / each[small["peers"]]
    whole = "a million peers" if count == MILLION else f"a million peers, from {count:,}"
    troubled = apart("troubled", count)
    figures = [
        Figure(f"{whole}, quiet: CPU", large["cpu_s"] * MILLION / count, "s of CPU", 75, detail=told),
        _memory_of_a_million(f"{whole}, quiet: memory", large, points[0], 6),
        Figure(f"{whole}, loss, jitter, churn: CPU", troubled["cpu_s"] * MILLION / count, "s of CPU", 120),
        _memory_of_a_million(f"{whole}, loss, jitter, churn: memory", troubled, apart("troubled", 100), 10),
    ]
    if count > small["peers"]:
        name = f"cost per message, {count:,} against {int(small['peers']):,} peers"
        figures.append(Figure(name, growth, "times", 4))
    return figures


def _memory_of_a_million(job: str, large: dict[str, float], small: dict[str, float], goal_gib: float) -> Figure:
    """The most memory of a run; from fewer peers by what each one adds to that of a small run."""
    each = (large["bytes"] - small["bytes"]) / max(large["peers"] - small["peers"], 1)
    memory = large["bytes"] + each * (MILLION - large["peers"])
    return Figure(job, memory / GIB, "GiB", goal_gib, detail=f"{each / 1000:.1f} kB a peer")


def peers_that_differ(effort: Effort) -> list[Figure]:
    """Rounds that are not quiet: with loss and jitter, each at its own time, or all to one leader."""
    lossy, ready, led, calm = (300, 300, 300, 300) if effort.quick else (10_000, 100_000, 10_000, 20_000)
    quiet = apart("peers", calm)
    return [
        Figure("10,000 peers, 1% loss, jitter, unequal links", apart("lossy", lossy)["cpu_s"], "s of CPU", 1.5),
        Figure("100,000 peers, send_at: ready, short downlinks", apart("ready", ready)["cpu_s"], "s of CPU", 12),
        Figure("rotating leader, 10,000 members, 1% loss", apart("leader", led)["cpu_s"], "s of CPU", 8),
        Figure("quiet gossip, 20,000 peers", 1e6 * quiet["cpu_s"] / quiet["messages"], "us a message", 7),
    ]


def against_simpy(effort: Effort) -> list[Figure]:
    """Messages per CPU second against bare timeouts per CPU second, at 100,000 peers."""
    count = 1000 if effort.quick else min(100_000, effort.largest)
    messages = bare = 0.0
    for _ in range(1 if effort.quick else 3):
        found = apart.__wrapped__("simulated", count)
        messages = max(messages, found["messages"] / found["cpu_s"])
        bare = max(bare, timeouts_per_s(count))
    detail = f"{messages:,.0f} messages and {bare:,.0f} timeouts a second"
    return [
        Figure(
            f"messages with loss against SimPy timeouts, {count:,} peers", messages / bare, "", 0.5, "at least", detail
        )
    ]


def many_learners(effort: Effort) -> list[Figure]:
    """`small` with 10,000 clients and gossip to 10 against 100 clients."""
    few, many = (100, 300) if effort.quick else (100, 10_000)
    base, large = apart("learning", few), apart("learning", many)
    ratio = (large["round_s"] / many) / (base["round_s"] / few)
    detail = f"{large['round_s']:.2f} s against {base['round_s']:.3f} s of CPU a round"
    return [
        Figure(f"small, {many:,} clients, CPU per client", ratio, "times that of 100", 1.5, detail=detail),
        Figure(f"small, {many:,} clients, memory", large["bytes"] / 1e9, "GB", 3),
    ]


if __name__ == "__main__":
    ways: dict[str, Callable[[int], dict[str, float]]] = {
        "peers": run_peers,
        **{way: partial(run_peers, way=way) for way in ("ready", "lossy", "troubled", "leader")},
        "simulated": run_simulated,
        "learning": run_learning,
    }
    work = ways[sys.argv[2] if len(sys.argv) > 2 else "peers"]
    print(json.dumps(work(int(sys.argv[1]))))
