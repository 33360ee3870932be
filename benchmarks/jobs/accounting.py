"""What all privacy views of a run cost: rounds are added as they close, and once more for the summary."""

from __future__ import annotations

from benchmarks.figures import Effort, Figure, timed
from benchmarks.scenes import scene
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import load_scenario
from scenarios.schema import Scenario

GOAL_DEMO_S, GOAL_MANY_S = 3.0, 10.0


def accounting(effort: Effort) -> list[Figure]:
    """The views of the demo's two scenarios, and of a thousand peers."""
    demo = [_run(load_scenario(name, ["learning=none"])) for name in ("adpdfl-gossip", "adpdfl-leader")]
    demo_s = sum(_account_s(simulation, effort) for simulation in demo)
    peers, rounds = (50, 3) if effort.quick else (1000, 20)
    many = _run(scene("small", rounds=rounds, clients=peers, trained=peers, degree=5, private=True, learning="none"))
    what = f"accounting, {peers} peers x {rounds} rounds x 5"
    return [
        Figure("accounting, demo", demo_s, "s", GOAL_DEMO_S, detail="all views of both runs, running and final"),
        Figure(what, _account_s(many, effort), "s", GOAL_MANY_S, detail="all views, running and final"),
    ]


def _run(scenario: Scenario) -> Simulation:
    simulation = build(scenario)
    simulation.run()
    return simulation


def _account_s(simulation: Simulation, effort: Effort) -> float:
    """Seconds for the final views, and as many again for the running ones, which add the same rounds once."""
    account = simulation.observer.privacy
    return 2.0 * min(timed(lambda: account.account(None)) for _ in range(min(effort.repetitions, 2)))
