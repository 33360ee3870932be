"""Peers that are lost during an exchange: corrections, omission, late uploads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privacy.accounting.curves.gaussian import epsilon_of
from scenarios.build import build
from scenarios.loading.load import parse_scenario
from tests.nodes.noise_shares.exchange_world import DIMENSION, LEADER, WORLD, Rows, lose, residuals, run


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["protocol.kind=central", LEADER])
@pytest.mark.parametrize("share_as", ["vector", "seed", "pairwise"])
def test_corrections_cancel_what_the_dead_left(protocol: str, share_as: str, message_rows: Rows) -> None:
    """One question to each survivor, one answer from each; opened seeds cost 42 bytes, a vector 4 d."""
    simulation = run(
        protocol,
        "clients=10",
        "data.samples=200",
        "protocol.min_updates=0",
        f"noise_shares={{sigma_k: 0.2, tau: 0, policy: correct, share_as: {share_as}}}",
        "faults=[{kind: crash, who: 4-5, round: 1, phase: send}]",
    )
    leader = simulation.log.rounds[0]["leader"]
    lost = {4, 5} - {leader}
    rows = message_rows(simulation.log, kind="correction")
    survivors = 10 - (leader < 10) - len(lost)
    if leader not in (4, 5):
        assert len(rows) == 2 * survivors
    assert residuals(simulation)[0].max() < 1e-12
    opened = simulation.sharing.share_log.opened[1]  # type: ignore[union-attr]
    answers = {row["sender"]: row["size_bytes"] - row["overhead_bytes"] for row in rows if row["sender"] in opened}
    for node, (sent, taken) in opened.items():
        parts = len(sent) + len(taken)
        assert answers[node] == (4 * DIMENSION if share_as == "vector" else 42 * parts)


@pytest.mark.slow
def test_a_late_upload_after_a_correction_is_discarded_and_exposed() -> None:
    """A slow peer's upload comes when its noise has been opened: it enters no sum and is charged."""
    from scenarios.metrics.privacy.noise_share_report import add_share_views
    from scenarios.metrics.privacy.privacy_report import report_privacy

    simulation = build(
        parse_scenario(
            WORLD,
            overrides=[
                "clients=10",
                "data.samples=200",
                "protocol={kind: rotating_leader, train_per_round: 10, deadline: 10 s}",
                "noise_shares={sigma_k: 0.2, tau: 0, tau_ind: 0.1, policy: correct, correct_within: 20 s}",
            ],
        ),
        threads=1,
    )
    simulation.world.phase_hooks.listeners.append(
        lambda node, number, phase: (
            simulation.world.network.scale_links([3], 1e-5, 1.0) if (node, number, phase) == (3, 1, "send") else None
        )
    )
    simulation.run()
    assert simulation.sharing is not None
    assert 3 not in simulation.log.aggregations["contributor"]
    report = add_share_views(simulation, report_privacy(simulation))
    assert report["noise_shares"]["exposed_releases"] == [[1, 3]]
    # Its upload has only the independent noise left, and the leader has it: what the rest of the noise hid is gone.
    weight = simulation.sharing.share_log.uploads[1][3].weight
    alone = epsilon_of(2.0 * weight / 0.1, 1e-4)
    assert report["rigorous"]["receiver"] >= alone * (1 - 1e-9)
    assert report["rigorous"]["model"] < report["rigorous"]["receiver"] < math.inf


@pytest.mark.slow
def test_omit_leaves_out_senders_known_to_be_gone(message_rows: Rows) -> None:
    """The proxy sees the connection end and tells the partners, who upload only at the shares' deadline."""
    simulation = lose("omit", 1, 0.5, 4)
    assert simulation.sharing is not None
    for number, by_node in simulation.sharing.share_log.uploads.items():
        gone = number % 10
        assert all(one.share.sender != gone for node, upload in by_node.items() if node != gone for one in upload.taken)
    sent_s = [row["sent_s"] for row in message_rows(simulation.log, kind="update", round=1)]
    assert len(set(np.round(sent_s, 3))) <= 9


@pytest.mark.slow
def test_a_peer_lost_before_it_was_sent_a_share_leaves_nothing() -> None:
    """The proxy sees it go while it trains; its partners split their noise among the others."""
    simulation = run(
        "clients=10",
        "data.samples=200",
        "protocol.deadline=10 s",
        "noise_shares={sigma_k: 0.2, tau: 0}",
        "faults=[{kind: crash, who: 4, round: 1, phase: train}]",
    )
    assert simulation.sharing is not None
    uploads = simulation.sharing.share_log.uploads[1]
    assert set(uploads) == set(range(10)) - {4}
    assert all(share.receiver != 4 for upload in uploads.values() for share in upload.sent)
    assert all(sum(share.std**2 for share in upload.sent) == pytest.approx(0.04) for upload in uploads.values())
    assert residuals(simulation)[0].max() < 1e-28
