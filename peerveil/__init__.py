"""Federated learning among peers, simulated: run scenarios, look inside them, and compare what they cost.

>>> import peerveil as pv
>>> run = pv.run("tiny", rounds=2, learning="none")
>>> run.summary.rounds_completed
2
>>> sorted(run.messages["kind"].unique())
['bootstrap', 'collect', 'control', 'update']

A scenario is given as a name from the catalog, a path, a mapping of keys, or a checked `Scenario`; keywords change its
keys, as `--set` does on the command line. Bad input raises `UserError` with the same text that the command prints.
"""

from p2p.config.errors import UserError
from peerveil.asking import check, epsilon, plan
from peerveil.charts import Chart
from peerveil.comparing import Comparison, compare
from peerveil.rounds import RoundState, simulate
from peerveil.runs import Run, load, run
from peerveil.sweeping import Cells, sweep
from peerveil.values import Values

__all__ = [
    "Cells",
    "Chart",
    "Comparison",
    "RoundState",
    "Run",
    "UserError",
    "Values",
    "check",
    "compare",
    "epsilon",
    "load",
    "plan",
    "run",
    "simulate",
    "sweep",
]
