"""What real sealing costs beyond counting its bytes, and what everything else costs at the demo's size."""

from __future__ import annotations

import time
from itertools import pairwise

from benchmarks.figures import Effort, Figure
from benchmarks.scenes import scene
from scenarios.build import build
from scenarios.loading.load import load_scenario
from scenarios.schema import Scenario


def cpu_per_round(scenario: Scenario) -> float:
    """CPU seconds of the best round."""
    ends_s: list[float] = []
    simulation = build(scenario, listeners=[lambda row: ends_s.append(time.process_time())])
    ends_s.append(time.process_time())
    simulation.run()
    return min(after - before for before, after in pairwise(ends_s))


def sealing(effort: Effort) -> list[Figure]:
    """Models of 199,210 parameters, 3,500 messages a round, no learning."""
    rounds = 1 if effort.quick else 4
    worlds = {
        word: scene("small" if effort.quick else "mnist", rounds=rounds, sealed=word, learning="none")
        for word in ("true", "sizes")
    }
    costs: dict[str, list[float]] = {word: [] for word in worlds}
    for _ in range(1 if effort.quick else 2):
        for word, world in worlds.items():
            costs[word].append(cpu_per_round(world))
    real_s, counted_s = min(costs["true"]), min(costs["sizes"])
    detail = f"{real_s:.3f} s a round sealed, {counted_s:.3f} s counted"
    return [Figure("sealing 3,500 messages", real_s - counted_s, "s of CPU", 0.35, detail=detail)]


def demo(effort: Effort) -> list[Figure]:
    """The demo's gossip without learning and sealing."""
    overrides = [f"rounds={2 if effort.quick else 10}", "learning=none", "anonymity.sealed=sizes"]
    cost_s = min(cpu_per_round(load_scenario("adpdfl-gossip", overrides=overrides)) for _ in range(effort.repetitions))
    name = "a demo round without learning and sealing"
    return [Figure(name, cost_s, "s of CPU", 0.03, detail="adpdfl-gossip, about 3,900 messages")]
