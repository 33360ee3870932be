"""All jobs by name, in the order of the table."""

from __future__ import annotations

from benchmarks.figures import Job
from benchmarks.jobs.deliveries import deliveries
from benchmarks.jobs.peers import against_simpy, many_learners, many_peers
from benchmarks.jobs.rounds import arithmetic, cnn, mnist, small
from benchmarks.jobs.sealing import demo, sealing
from benchmarks.jobs.startup import startup

JOBS: dict[str, Job] = {
    "mnist": mnist,
    "small": small,
    "sealing": sealing,
    "many-learners": many_learners,
    "cnn": cnn,
    "arithmetic": arithmetic,
    "deliveries": deliveries,
    "peers": many_peers,
    "simpy": against_simpy,
    "startup": startup,
    "demo": demo,
}
