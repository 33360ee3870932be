"""All jobs by name, in the order of the table; imported when asked for: some need torch, others count memory."""

from __future__ import annotations

from importlib import import_module

from benchmarks.figures import Job

JOBS = {
    "mnist": "rounds:mnist",
    "products": "rounds:products",
    "small": "rounds:small",
    "sealing": "sealing:sealing",
    "many-learners": "peers:many_learners",
    "cnn": "rounds:cnn",
    "stages": "stages:stages",
    "per-sample": "records:per_sample",
    "generators": "records:generators",
    "arithmetic": "rounds:arithmetic",
    "objectives": "parts:objectives",
    "deliveries": "deliveries:deliveries",
    "peers": "peers:many_peers",
    "peers-that-differ": "peers:peers_that_differ",
    "simpy": "peers:against_simpy",
    "startup": "startup:startup",
    "accounting": "accounting:accounting",
    "sweep": "sweeps:sweeps",
    "demo": "sealing:demo",
    "inversion": "attacks:inversion",
    "linkage": "linking:linkage",
    "watching": "watching:watching",
}
"""Where each is found: module and function."""


def find_job(name: str) -> Job:
    """The job of a name."""
    module, _, function = JOBS[name].partition(":")
    found: Job = getattr(import_module(f"benchmarks.jobs.{module}"), function)
    return found
