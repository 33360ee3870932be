"""`make audit`: every scenario of the catalog, its events simulated once, its noise drawn thousands of times."""

from __future__ import annotations

import os

import numpy as np
import pytest

from scenarios.build import build
from scenarios.loading.catalog import catalog
from scenarios.loading.load import load_scenario
from tests.privacy.accounting.audit import lower_epsilon, observed_scores
from tests.privacy.accounting.oracle import closures
from tests.scenarios.metrics.log_reading import rounds_of

TRIALS = 4000
asked = pytest.mark.skipif(not os.environ.get("PEERVEIL_AUDIT"), reason="takes minutes; run by make audit")


@pytest.mark.slow
@asked
@pytest.mark.parametrize("name", sorted(catalog()))
def test_no_figure_of_the_catalog_is_refuted(name: str) -> None:
    """The busiest receiver, a quiet peer and the outsider, about the client with most releases among others."""
    # Without learning a schedule has no loss to read; its noise with all rounds is the most that it may spend.
    fixed = ["schedule=fixed"] if load_scenario(name).schedule.reads else []
    # Attacks and audits of a scenario need learning; what is accounted for does not depend on them.
    simulation = build(load_scenario(name, ["learning=none", "attacks=[]", "audit=none", *fixed]))
    simulation.run()
    found = simulation.observer.privacy.account(None)
    if found is None:
        pytest.skip("claims nothing")
    views, world, clients = found[0], rounds_of(simulation), simulation.scenario.clients
    public = simulation.topology != "gossip"
    seen = closures(world, clients)[0] if not public else []
    count = np.bincount([release.client for one in world for release in one.releases], minlength=clients)
    receipts = np.bincount([node for one in world for node, _ in one.received], minlength=clients + 8)
    rng = np.random.default_rng(11)
    for node in (int(np.argmax(receipts)), int(np.argmin(receipts[:clients]))):
        target = int(np.argmax(np.where(np.arange(clients) == node, -1, count)))
        total = np.zeros((2, TRIALS))
        for place, one in enumerate(world):
            direct = {row for observer, row in one.received if observer == node}
            rows = sorted(direct if public else {row for when, row in seen[node] if when == place})
            if rows or (public and one.sums):
                total += observed_scores(one, rows, {node}, target, sums=public, trials=TRIALS, rng=rng)
        figure = views.receiver if node >= clients else views.peer_worst
        assert lower_epsilon(total[0], total[1], found[1].setting.delta) <= figure.epsilon
