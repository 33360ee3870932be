"""Elections during an exchange: a second leader, what both were told, and the weights of uploads."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from p2p.clock import Rank
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from tests.nodes.noise_shares.exchange_world import WORLD, Rows, residuals, run


@pytest.mark.slow
def test_a_new_leader_keeps_its_noise_and_its_shares_leave_the_accounting() -> None:
    """After an unplanned election the sum still cancels, and the leader's own shares protect no member."""
    from scenarios.metrics.privacy.privacy_report import report_privacy

    simulation = run(
        "protocol={kind: rotating_leader, train_per_round: 10, deadline: 20 s, leader_timeout: 5 s}",
        "clients=10",
        "data.samples=200",
        "noise_shares={sigma_k: 0.2, tau: 0.5, tau_mode: scalar}",
        "faults=[{kind: crash, who: leader, round: 1, phase: aggregate}]",
    )
    assert simulation.sharing is not None
    leader = simulation.log.rounds[0]["leader"]
    uploads = simulation.sharing.share_log.uploads[1]
    assert uploads[leader].sent
    told = report_privacy(simulation)["rigorous"]
    assert told["how"]["peer"] == "inf"
    assert "tau > 0" in told["because"]["peer"]
    assert residuals(simulation)[1][0] == pytest.approx(9 * 0.04 * 0.25)


def second_leader(
    share_as: str = "seed", sigma: float = 0.2, least: int = 1, seed: int = 5
) -> tuple[Simulation, int, int]:
    """A round whose first leader asks about a slow member and crashes; the second gets that member's update.

    Another member crashes with the first leader, so that the second asks about it. Returns also these two members.
    """
    simulation = build(
        parse_scenario(
            WORLD,
            overrides=[
                *("clients=10", "data.samples=200", f"seed={seed}"),
                "protocol={kind: rotating_leader, train_per_round: 10, deadline: 10 s, leader_timeout: 5 s}",
                f"noise_shares={{sigma_k: {sigma}, tau: 0, policy: correct, correct_within: 5 s, share_as: {share_as}, "
                f"least_shares: {least}}}",
            ],
        ),
        threads=1,
    )
    slow, lost = 3, 8
    first: list[int] = []

    def watch(node: int, number: int, phase: str) -> None:
        if (node, phase) == (slow, "send"):
            simulation.world.network.scale_links([slow], 1e-5, 1.0)
        if phase == "broadcast" and not first:
            first.append(node)
            simulation.world.network.scale_links([slow], 1e5, 1.0)
            for who in (node, lost):
                simulation.clock.call_at(simulation.clock.now, Rank.FAULT, 0, partial(simulation.supervisor.crash, who))

    simulation.world.phase_hooks.listeners.append(watch)
    simulation.run()
    return simulation, slow, lost


@pytest.mark.slow
@pytest.mark.parametrize("share_as", ["seed", "vector"])
def test_what_the_first_leader_was_told_stays_known_beside_the_second(share_as: str) -> None:
    """The first was told the shares with the slow member, the second those with the lost one: both are opened."""
    simulation, slow, lost = second_leader(share_as)
    assert simulation.sharing is not None
    share_log, leader = simulation.sharing.share_log, simulation.log.rounds[0]["leader"]
    table = simulation.log.aggregations
    (first,) = set(table["aggregator"][table["void"]].tolist())
    used = set(table["contributor"][~table["void"]].tolist())
    assert slow in used
    assert lost not in used
    about: dict[int, set[int]] = {first: set(), leader: set()}
    for (_, aggregator, node), (sent, taken) in share_log.answers.items():
        about[aggregator] |= {share.receiver for share in sent} | {one.share.sender for one in taken}
        assert set(sent) <= set(share_log.opened[1][node][0])
        assert set(taken) <= set(share_log.opened[1][node][1])
    assert about == {first: {slow}, leader: {lost}}
    # Only what the second leader was told repairs its sum: the slow member's noise is in it and cancels.
    assert residuals(simulation)[0].max() < 1e-12


@pytest.mark.slow
def test_a_newer_plan_finds_the_same_upload(message_rows: Rows) -> None:
    """A member exchanges shares once in a round: its update is the same for every leader, noise included."""
    simulation, _, _ = second_leader()
    shares = Counter((row["sender"], row["receiver"]) for row in message_rows(simulation.log, kind="share"))
    assert shares
    assert set(shares.values()) == {1}


@pytest.mark.slow
def test_an_election_does_not_cut_an_exchange_short(message_rows: Rows) -> None:
    """Shares are slow; the leader is gone before they have arrived, and the round is planned anew meanwhile."""
    simulation = run(
        "protocol={kind: rotating_leader, train_per_round: 10, deadline: 60 s, leader_timeout: 2 s}",
        *("clients=10", "data.samples=200"),
        "noise_shares={sigma_k: 0.2, tau: 0, least_shares: 4}",
        "network.latency=1 s",
        "faults=[{kind: crash, who: leader, round: 1, phase: train}, {kind: slow, who: 0-3, factor: 15}]",
    )
    assert simulation.sharing is not None
    elected = set(simulation.log.graphs["receiver"].tolist())
    assert len(elected) > 1
    graph_s = min(row["sent_s"] for row in message_rows(simulation.log, kind="update"))
    assert max(row["arrived_s"] for row in message_rows(simulation.log, kind="share")) > graph_s
    assert simulation.sharing.share_log.skipped == []
    assert residuals(simulation)[0].max() < 1e-12


@pytest.mark.slow
def test_two_leaders_together_are_told_no_more_than_one_may_be() -> None:
    """Each survivor keeps `least_shares` to itself, whichever leader asks: leaders may pool what they were told."""
    asked_twice = 0
    for seed in range(1, 9):
        simulation, slow, lost = second_leader(sigma=0.1414, least=2, seed=seed)
        assert simulation.sharing is not None
        share_log = simulation.sharing.share_log
        for node, upload in share_log.uploads[1].items():
            sent, taken = share_log.opened.get(1, {}).get(node, ((), ()))
            assert len(upload.sent) + len(upload.taken) - len(sent) - len(taken) >= 2 or not sent + taken
            asked_twice += all(map(any, (upload.with_peers({slow}), upload.with_peers({lost}))))
    assert asked_twice > 0


@pytest.mark.slow
def test_weights_are_those_of_the_first_plan() -> None:
    """A member that first hears of a round after an election has the weight that the others count on."""
    elected = 0
    for seed in range(6):
        simulation = run(
            "protocol={kind: rotating_leader, train_per_round: 8, deadline: 20 s, leader_timeout: 2 s}",
            *("protocol.include_own=false", f"seed={seed}", "data.split={kind: dirichlet, alpha: 1.0}"),
            "noise_shares={sigma_k: 0.2, tau: 0, weights: records, records_public: true, when_short: fill}",
            *("network.loss=0.15", "network.retransmit={tries: 1}"),
        )
        assert simulation.sharing is not None
        counts, uploads = simulation.sharing.plan.records, simulation.sharing.share_log.uploads.get(1, {})
        totals = [counts[node] / upload.weight for node, upload in uploads.items()]
        assert max(totals, default=0) == pytest.approx(min(totals, default=0))
        elected += len(set(simulation.log.graphs["receiver"].tolist())) > 1
    assert elected > 0
