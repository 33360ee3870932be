"""Every system of the catalog over every protocol: it runs, or `check` says why not and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from nodes.protocols import PROTOCOLS
from p2p.config.errors import UserError
from scenarios.build import build
from scenarios.loading.catalog import catalog
from scenarios.loading.load import load_scenario
from scenarios.metrics.communication.traffic import message_totals
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.schema import Scenario

pytestmark = pytest.mark.slow
COHORT = 4
_ABOUT = ("adpdfl", "asgp", "cdp", "cpsgd", "dp-", "dpfl", "fed", "genfl", "lcdp", "ldp", "niss", "vanilla", "wei")
SYSTEMS = sorted(name for name in catalog() if name.startswith(_ABOUT) and not name.endswith(("-mnist", "-cifar10")))
"""The papers' systems; other entries are about networks and faults, and larger sizes differ in size alone."""
REFUSED = {
    ("cdp-fl", "gossip"): 0,
    ("wei-cdp", "rotating_leader"): 0,
    ("wei-crd", "gossip"): 1,
    ("wei-crd", "rotating_leader"): 0,
    ("fed-nore-1", "gossip"): 0,
}
"""How many problems are told of some combinations, so that a change of the rules is noticed."""


def overrides(name: str, kind: str) -> list[str]:
    """A small version of an entry over another protocol, without what is about its own protocol or network."""
    degree = ", exchange_with: 2" if kind == "gossip" else ""
    found = ["clients=8", "rounds=1", "faults=[]", "availability=always", "seed=3"]
    found.append(f"protocol={{kind: {kind}, train_per_round: {COHORT}, deadline: 5 min{degree}}}")
    found += ["evaluation.clients=all"]
    plain = load_scenario(name)
    if plain.schedule.reads:
        return [*found, "data={name: synthetic, samples: 80, test_samples: 20}"]
    if plain.privacy is not None and plain.privacy.colluders is not None:
        found.append("privacy.colluders=none")
    if plain.noise_shares is not None and plain.noise_shares.coalitions:
        found.append("noise_shares.coalitions=[]")
    return [*found, "learning=none"]


def loaded(name: str, kind: str) -> tuple[Scenario | None, list[str]]:
    """The scenario, or the problems for which it is refused."""
    try:
        return load_scenario(name, overrides(name, kind)), []
    except UserError as error:
        return None, error.problems


@pytest.mark.parametrize("kind", sorted(PROTOCOLS))
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_runs_over_every_protocol_or_says_why_not(name: str, kind: str) -> None:
    """The totals of a run add up, and it tells figures; a refusal names a key, a rule and a cure."""
    scenario, problems = loaded(name, kind)
    assert len(problems) == REFUSED.get((name, kind), len(problems))
    if scenario is None:
        assert problems
        # A rule after the key and its value, and a cure after the rule.
        assert [line for line in problems if ": " not in line or ";" not in line] == []
        return
    simulation = build(scenario, threads=1)
    simulation.run()
    counts, _ = message_totals(simulation.log.messages)
    assert counts["sent"] == sum(counts[outcome] for outcome in ("delivered", "lost", "rejected", "in_flight"))
    assert counts["by_kind"]["update"] >= COHORT - 1
    report = report_privacy(simulation)
    # A number with its formula, or a sentence why no paper states one: never a blank.
    assert report["published"]["formula"] if isinstance(report["published"], dict) else len(report["published"]) > 20
    rigorous = report["rigorous"]
    assert rigorous["local"] is not None
    assert not np.isnan(rigorous["local"])
