"""Whatever goes wrong, no client spends more than it may: whole runs under random faults."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p2p.log.records import KIND
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.accounting.curves.loss_events import composed_epsilon
from privacy.accounting.ledger import SLACK, release_mu2
from scenarios.composition.simulation import Simulation

Prepare = Callable[..., Simulation]
PROTOCOLS = {
    "gossip": "{kind: gossip, train_per_round: 4, exchange_with: 2, deadline: 8 s, invite_timeout: 40 s, grace: 1 s}",
    "leader": "{kind: rotating_leader, train_per_round: 4, deadline: 8 s, leader_timeout: 3 s, model_deadline: 12 s, "
    "handover_timeout: 2 s, invite_timeout: 40 s, grace: 1 s}",
    "central": "{kind: central, train_per_round: 4, deadline: 8 s, invite_timeout: 40 s, grace: 1 s}",
}
BUDGETS = (
    "noise: {kind: gaussian, sigma: 4}, budget: {by: rigorous, epsilon: 3}",
    "noise: {kind: gaussian, sigma: 4}, budget: {classes: [{share: 0.5, epsilon: 3}, {share: 0.5, epsilon: 5}]}",
    "noise: {kind: gaussian, calibrate: {kind: rigorous, epsilon: 4, view: model, releases: 3}}",
    "noise: {kind: gaussian, calibrate: {kind: adpdfl, epsilon: 8}}, budget: {by: published, epsilon: 7}",
    "noise: {kind: gaussian, calibrate: {kind: adpdfl, epsilon: 8}}, "
    "budget: {classes: [{clients: 0-2, epsilon: 6}, {clients: 3-6, epsilon: 7.5}]}",
)
PHASES = ("invite", "train", "send", "aggregate", "broadcast")


@st.composite
def faults(draw: st.DrawFn, kind: str) -> list[str]:
    """Crashes at any instant and phase, of leaders too; losses, doubles, detours, damage and churn."""
    found = []
    for _ in range(draw(st.integers(0, 3))):
        who = draw(st.sampled_from(["0", "3-4", *(["leader"] * 4 if kind == "leader" else [])]))
        phase, number = draw(st.sampled_from(PHASES)), draw(st.integers(1, 4))
        lasts = draw(st.sampled_from(["", ", lasts: 2 s", ", lasts: 6 s", ", lasts: 25 s"]))
        found.append(f"{{kind: crash, who: {who}, round: {number}, phase: {phase}{lasts}}}")
    names = draw(st.lists(st.sampled_from(["duplicate", "corrupt", "reorder"]), unique=True))
    found += [f"{{kind: {name}, probability: 0.3}}" for name in names]
    if draw(st.booleans()):
        found.append("{kind: partition, between: [0-2, 3-6], start: 3 s, end: 20 s}")
    return found


@st.composite
def runs(draw: st.DrawFn) -> list[str]:
    """A small run with a budget that a few rounds use up."""
    kind = draw(st.sampled_from(sorted(PROTOCOLS)))
    loss, up = draw(st.sampled_from([0.0, 0.1, 0.3])), draw(st.sampled_from(["500 B/s", "1 MB/s"]))
    return [
        "clients=7",
        "rounds=6",
        "data.samples=140",
        f"seed={draw(st.integers(0, 1000))}",
        f"protocol={PROTOCOLS[kind]}",
        f"privacy={{clip: flat, {draw(st.sampled_from(BUDGETS))}}}",
        f"network.loss={loss}",
        f"network.uplink={up}",
        "network.retransmit={tries: 4, timeout: 1 s}",
        f"faults=[{', '.join(draw(faults(kind)))}]",
        draw(st.sampled_from(["availability=always", "availability={kind: churn, mean_up: 40 s, mean_down: 5 s}"])),
    ]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(runs())
def test_no_ledger_overspends_under_any_faults(prepare: Prepare, world: list[str]) -> None:
    """mu^2 and rounds stay within each client's own limit; one charge per round, before the first byte leaves."""
    simulation = prepare(*world)
    simulation.run()
    table = simulation.log.privacy
    pairs = list(zip(table["node"].tolist(), table["round"].tolist(), strict=True))
    assert len(set(pairs)) == len(pairs), "charged twice for the same bytes"
    for client in simulation.clients:
        check_client(simulation, client.node)
    check_sent_is_charged(simulation, set(pairs))


def check_client(simulation: Simulation, node: int) -> None:
    """What the table says was charged is what the ledger has, and within its rule."""
    ledger, table = simulation.clients[node].ledger, simulation.log.privacy
    assert ledger is not None
    rows = np.flatnonzero(table["node"] == node)
    costs = [release_mu2(float(std), simulation.clients[node].profile.sensitivity) for std in table["noise_std"][rows]]
    assert ledger.releases == len(rows)
    assert ledger.mu2 == pytest.approx(sum(costs), rel=1e-12)
    assert table["release"][rows].tolist() == list(range(1, len(rows) + 1))
    assert sum(costs) * ledger.rule.view_share <= ledger.rule.mu2_limit * (1 + 2 * SLACK)
    assert table["round"][rows].max(initial=0) <= ledger.rule.max_round
    left = table["budget_left"][rows]
    assert ((left >= 0) & (left < 1)).all()
    assert (np.diff(left) < 0).all()


def check_sent_is_charged(simulation: Simulation, charged: set[tuple[int, int]]) -> None:
    """Every update that was handed over, or entered a model, belongs to a charge, and every charge to such one."""
    messages, averaged = simulation.log.messages, simulation.log.aggregations
    rows = (messages["kind"] == KIND["update"]) & (messages["origin"] < simulation.scenario.clients)
    sent = set(zip(messages["origin"][rows].tolist(), messages["round"][rows].tolist(), strict=True))
    counts = ~averaged["void"]
    used = set(zip(averaged["contributor"][counts].tolist(), averaged["round"][counts].tolist(), strict=True))
    assert sent | used == charged


STAGES = {
    "own bounds": "[{kind: clip, norm: [1, 0.5, 2, 1, 1, 0.3, 1.5]}, {kind: gaussian, sigma: 4}]",
    "masked": "[{kind: mask, rate: 0.5}, clip_layers, {kind: gaussian, multiplier: 4}, {kind: top_k, rate: 0.5}]",
    "laplace": "[{kind: clip_coordinates, bound: 0.1}, {kind: laplace, epsilon: 0.8}]",
    "own laplace": "[{kind: clip, norm: [1, 0.5, 2, 1, 1, 0.3, 1.5]}, {kind: laplace, scale: 9}]",
    "binomial": "[clip, {kind: binomial, levels: 8, trials: 20000}]",
    "sparse vector": "[{kind: clip_coordinates, bound: 0.1}, {kind: asgp_sound, epsilon: 0.7, positives: 2}]",
}


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(runs(), st.sampled_from(sorted(STAGES)))
def test_no_ledger_of_stages_overspends_under_any_faults(prepare: Prepare, world: list[str], stages: str) -> None:
    """Each client's releases compose to no more than its budget, by its own bound and the loss of its own noise."""
    world = [text for text in world if not text.startswith("privacy=")]
    simulation = prepare(*world, f"update={STAGES[stages]}", "privacy={budget: {by: rigorous, epsilon: 3}}")
    simulation.run()
    table, noise = simulation.log.privacy, simulation.noise
    assert noise is not None
    pairs = list(zip(table["node"].tolist(), table["round"].tolist(), strict=True))
    assert len(set(pairs)) == len(pairs), "charged twice for the same bytes"
    check_sent_is_charged(simulation, set(pairs))
    for node in range(7):
        times = int((table["node"] == node).sum())
        if noise.losses:
            spent = composed_epsilon(0.0, [(noise.losses[node], times)], 1e-5) if times else 0.0
        else:
            spent = epsilon_of(math.sqrt(times) * float(noise.sensitivities[node] / noise.noise_std[node]), 1e-5)
        assert spent <= 3.0 * (1.0 + 1e-6)
        last = table["rigorous"][table["node"] == node]
        assert not len(last) or last[-1] == pytest.approx(spent, rel=1e-6)
