"""Budgets of classes of clients, colluders, and what a run says of both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2p.config.errors import UserError
from privacy.accounting.curves.gaussian import epsilon_of
from scenarios.build import build
from scenarios.loading.load import dump_scenario, load_scenario, parse_scenario
from scenarios.loading.privacy_classes import budget_classes, budget_epsilons, colluding_nodes
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.schema import Scenario

NOISE = "clip: flat, noise: {kind: gaussian, sigma: 4}"
SHARES = f"privacy={{{NOISE}, budget: {{classes: [{{share: 0.3, epsilon: 2}}, {{share: 0.7, epsilon: 8}}]}}}}"
BY_NAME = "{clients: 0-1, epsilon: 2}, {clients: [3], epsilon: 8}"
NAMED = f"privacy={{{NOISE}, budget: {{epsilon: 5, classes: [{BY_NAME}]}}}}"


def scenario(*overrides: str) -> Scenario:
    """Six clients, nothing learned."""
    return load_scenario("tiny", ["learning=none", *overrides])


def report(*overrides: str) -> dict[str, Any]:
    """The privacy report of a run."""
    simulation = build(scenario(*overrides))
    simulation.run()
    return report_privacy(simulation)


def test_classes_by_share_follow_the_seed_alone() -> None:
    """About the shares asked for; the same clients whatever the protocol."""
    privacy = scenario(SHARES).privacy
    assert privacy is not None
    classes = budget_classes(privacy, 10_000, 3)
    assert (classes == 0).mean() == pytest.approx(0.3, abs=0.02)
    assert (budget_classes(privacy, 50, 3) == classes[:50]).all()
    assert set(budget_epsilons(privacy, 100, 3).tolist()) == {2.0, 8.0}


def test_classes_by_name_leave_the_rest_to_the_section() -> None:
    """Clients that no class names keep `budget.epsilon`."""
    privacy = scenario(NAMED).privacy
    assert privacy is not None
    assert budget_epsilons(privacy, 6, 0).tolist() == [2, 2, 5, 8, 5, 5]


@pytest.mark.parametrize("override", [SHARES, NAMED, "privacy.colluders=[1, 2]", "privacy.colluders=0.4"])
def test_they_survive_a_round_trip(override: str) -> None:
    """What is written out reads as the same scenario."""
    loaded = scenario(override)
    assert parse_scenario(dump_scenario(loaded)) == loaded


@pytest.mark.parametrize(
    ("privacy", "problem"),
    [
        ("classes: [{share: 0.3, epsilon: 2}, {share: 0.6, epsilon: 8}]",
         "privacy.budget.classes = 0.9: the shares must sum to 1"),
        ("classes: [{share: 1, epsilon: 2}, {clients: 3, epsilon: 8}]",
         "some have a share and some name clients; use one way for all"),
        ("classes: [{epsilon: 2}]", "privacy.budget.classes.0: needs exactly one of `share` and `clients`"),
        ("epsilon: 1, classes: [{clients: 0-3, epsilon: 2}, {clients: 3, epsilon: 8}]",
         "privacy.budget.classes.1.clients = 3: client 3 is in class 0 already"),
        ("epsilon: 1, classes: [{clients: 4-6, epsilon: 2}]",
         "privacy.budget.classes.0.clients = 4-6: there are clients 0 to 5"),
        ("classes: [{clients: 0-3, epsilon: 2}]", "these clients are in no class"),
        ("by: none, classes: [{share: 1, epsilon: 2}]", "with `by: none` no client ever stops"),
    ],
)  # fmt: skip
def test_bad_classes_are_told(privacy: str, problem: str) -> None:
    """With the path and the rule."""
    with pytest.raises(UserError) as error:
        scenario(f"privacy={{{NOISE}, budget: {{{privacy}}}}}")
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("colluders", "problem"),
    [
        ("[3, 6]", "privacy.colluders.1 = 6: there are clients 0 to 5; name some of them"),
        ("[9]", "privacy.colluders.0 = 9: there are clients 0 to 5; name some of them"),
        ("1.5", "privacy.colluders = 1.5: must be a list"),
    ],
)
def test_unknown_colluders_are_told(colluders: str, problem: str) -> None:
    """Only clients can collude in gossip; a server only where there is one."""
    with pytest.raises(UserError) as error:
        scenario(f"privacy.colluders={colluders}")
    assert problem in str(error.value)
    central = scenario("protocol={kind: central, train_per_round: 4}", "privacy.colluders=[9]")
    assert central.privacy is not None
    assert colluding_nodes(central.privacy, 6, 0) == (9,)


def test_a_share_of_colluders_is_that_many_clients() -> None:
    """Rounded, at least one, the same on the same seed."""
    for share, count in (("0.1", 1), ("0.5", 3), ("1.0", 6), ("0.0", 0)):
        privacy = scenario(f"privacy.colluders={share}").privacy
        assert privacy is not None
        assert len(colluding_nodes(privacy, 6, 1)) == count


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gossip, exchange_with: 2", "rotating_leader", "central"])
def test_a_coalition_sees_at_least_what_each_member_sees(kind: str) -> None:
    """And no more than an observer that receives everything; without colluders it is left out."""
    protocol = f"protocol={{kind: {kind}, train_per_round: 4}}"
    found = report(protocol, "rounds=4", "privacy.noise.sigma=5", "privacy.colluders=[0, 2, 4]")["rigorous"]
    assert found["model"] * (1 - 1e-9) <= found["coalition"] <= found["local"] * (1 + 1e-9)
    assert found["colluders"] == [0, 2, 4]
    assert found["record"]["coalition"] == found["coalition"]
    assert "coalition" not in report(protocol)["rigorous"]


@pytest.mark.slow
def test_each_client_stops_at_its_own_epsilon() -> None:
    """The poorer class makes fewer releases; the first exhaustion is told, and sampling is not claimed after it."""
    simulation = build(scenario(SHARES, "rounds=12", "protocol={kind: central, train_per_round: 3}"))
    simulation.run()
    found = report_privacy(simulation)
    poor, rich = found["budget"]
    assert (poor["epsilon"], rich["epsilon"]) == (2.0, 8.0)
    assert poor["releases"]["max"] == 1 < rich["releases"]["max"]
    assert found["first_exhaustion_round"] == 2
    assert any("from round 2 on some clients have no budget left" in note for note in found["notes"])
    assert found["rigorous"]["no_amplification_because"]
    table = simulation.log.privacy
    last = {node: row for row, node in enumerate(table["node"].tolist())}
    for client in simulation.clients:
        assert client.ledger is not None
        if client.node in last:
            assert table["budget_left"][last[client.node]] == pytest.approx(client.ledger.budget_left)
            assert table["rigorous"][last[client.node]] <= epsilon_of(
                math.sqrt(client.ledger.mu2), client.ledger.rule.delta
            ) * (1 + 1e-6)


@pytest.mark.slow
def test_rounds_carry_the_epsilons_so_far() -> None:
    """They rise, and end where the summary ends; published follows the formula."""
    calibrated = "privacy={clip: flat, noise: {kind: gaussian, calibrate: {kind: adpdfl, epsilon: 8}}}"
    for protocol in ("{kind: rotating_leader, train_per_round: 4}", "{kind: central, train_per_round: 4}"):
        simulation = build(scenario(calibrated, "rounds=5", f"protocol={protocol}"))
        simulation.run()
        found, rows = report_privacy(simulation), simulation.log.rounds
        for view in ("epsilon_published", "epsilon_local", "epsilon_peer_worst", "epsilon_model"):
            assert (np.diff([row[view] for row in rows]) >= 0).all()
        assert rows[-1]["epsilon_published"] == pytest.approx(8.0)
        assert rows[-1]["epsilon_local"] == pytest.approx(found["rigorous"]["local"])
        assert rows[-1]["epsilon_peer_worst"] == pytest.approx(found["rigorous"]["peer"]["worst"])
        assert rows[-1]["epsilon_model"] == pytest.approx(found["rigorous"]["model"])
