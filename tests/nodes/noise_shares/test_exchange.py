"""The exchange of noise shares over the simulated network: partners, messages, and shares that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from p2p.log import records
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from tests.nodes.noise_shares.exchange_world import DIMENSION, LEADER, WORLD, Rows, residuals, run


@pytest.mark.slow
def test_a_leader_is_no_members_partner(message_rows: Rows) -> None:
    """Everyone else sends and gets exactly v shares; the leader's own update stays with it."""
    simulation = run(LEADER, "rounds=4")
    for record in simulation.log.rounds:
        rows = message_rows(simulation.log, round=record["round"], kind="share")
        ends = [(row["sender"], row["receiver"]) for row in rows]
        assert len(set(ends)) == len(ends) == 9 * 4
        assert all(record["leader"] not in pair for pair in ends)
        for place in (0, 1):
            assert set(np.bincount([pair[place] for pair in ends]).tolist()) <= {0, 4}


@pytest.mark.slow
def test_bytes_of_shares(message_rows: Rows) -> None:
    """Vectors cost 4 d v and framing, seeds at most 200 bytes each, agreed keys nothing; the summary has the ratio."""
    from scenarios.metrics.privacy.noise_share_report import share_summary

    for share_as, payload in (("vector", 4 * DIMENSION), ("seed", 40), ("pairwise", None)):
        simulation = run(f"noise_shares.share_as={share_as}", "anonymity.sealed=true")
        rows = message_rows(simulation.log, kind="share")
        assert len(rows) == (0 if payload is None else 40)
        for row in rows:
            assert payload is not None
            assert row["size_bytes"] == payload + 82 + 16 <= 200
            assert row["overhead_bytes"] == 98
        told = share_summary(simulation)["noise_shares"]["bytes"]
        assert told["per_client_round"] == (0 if payload is None else 4 * (payload + 98))
        assert told["ratio_to_vectors"] == pytest.approx(
            0 if payload is None else (payload + 98) / (4 * DIMENSION + 98)
        )


@pytest.mark.slow
def test_the_phase_has_its_span_and_trigger(spans: Callable[..., Any]) -> None:
    """Shares go out after training and before the update."""
    seen: list[tuple[int, str]] = []
    simulation = build(parse_scenario(WORLD), threads=1)
    simulation.world.phase_hooks.listeners.append(lambda node, number, phase: seen.append((node, phase)))
    simulation.run()
    member = next(node for node, phase in seen if phase == "train")
    assert [phase for node, phase in seen if node == member] == ["invite", "appointed", "train", "share", "send"]
    assert {name for node, name, *_ in spans(simulation.log, 1) if node == member} >= {"train", "share", "wait", "send"}


@pytest.mark.slow
def test_without_learning_the_messages_flow_all_the_same(message_rows: Rows) -> None:
    """The events do not depend on learning; nothing is measured, and predictions stay."""
    without, learned = run("learning=none"), run()
    told = [[(row["sent_s"], row["sender"], row["receiver"], row["kind"], row["size_bytes"]) for row in
             message_rows(one.log)] for one in (without, learned)]  # fmt: skip
    assert told[0] == told[1]
    assert np.isnan(residuals(without)[0]).all()
    assert (residuals(without)[1] == residuals(learned)[1]).all()


@pytest.mark.slow
def test_a_changed_share_is_missing(message_rows: Rows) -> None:
    """It is rejected, its receiver goes on without it, and the residual says so."""
    for sealed in ("true", "sizes"):
        simulation = run("rounds=4", "faults=[{kind: corrupt, probability: 0.1}]", f"anonymity.sealed={sealed}")
        rows = message_rows(simulation.log, kind="share")
        assert any(row["outcome"] == "rejected" for row in rows)
        came = {(row["round"], row["sender"], row["receiver"]) for row in rows if row["outcome"] == "delivered"}
        assert simulation.sharing is not None
        uploads = [one for by_node in simulation.sharing.share_log.uploads.values() for one in by_node.values()]
        assert {one.share[:3] for upload in uploads for one in upload.taken} <= came
        measured, predicted = residuals(simulation)
        assert (measured > 0).all()
        assert measured.sum() == pytest.approx(predicted.sum(), rel=0.9)


@pytest.mark.slow
def test_a_share_twice_counts_once(message_rows: Rows) -> None:
    """The double is refused as a replay and changes no sum."""
    simulation = run("faults=[{kind: duplicate, probability: 0.5}]", "noise_shares.tau=0")
    reasons = [row["reason"] for row in message_rows(simulation.log, kind="share") if row["outcome"] == "rejected"]
    assert reasons
    assert set(reasons) == {"replay"}
    assert residuals(simulation)[0].max() < 1e-28


def forge(simulation: Simulation, victim: int, sender: bytes, round_number: int) -> str | None:
    """What the victim says to a share from an address, sealed with keys of another node, for some round."""
    from nodes.noise_shares.wire_messages import seed_payload
    from p2p.transport.messages import Message

    endpoint = simulation.clients[victim].endpoint
    held = endpoint.session(2)
    assert held is not None
    keys = simulation.world.sealer.draw_keys(99, 99, 1)
    peer = (held.assignment.address, held.keys.public)
    envelope = simulation.world.sealer.seal_one(
        "share", round_number, 7, keys, sender, peer, seed_payload(bytes(32), 1.0)
    )
    return endpoint.receive(Message(0, 0, "share", round_number, 99, victim, 7, 0, envelope, 0.0))


@pytest.mark.slow
def test_strangers_and_other_rounds_are_refused() -> None:
    """An address of no node, a member that is no partner, a partner's name without its key, another round."""
    simulation = build(parse_scenario(WORLD, overrides=["rounds=2", "anonymity.sealed=true"]), threads=1)
    answers: dict[str, Any] = {}

    def watch(node: int, number: int, phase: str) -> None:
        if number == 2 and phase == "share" and not answers:
            held = simulation.clients[node].endpoint.session(2)
            assert held is not None
            assignment = held.assignment
            partner = assignment.expect_from["share"][0].address
            answers["stranger"] = forge(simulation, node, bytes(32), 2)
            answers["server"] = forge(simulation, node, assignment.send_to["update"][0].address, 2)
            answers["forged"] = forge(simulation, node, partner, 2)
            answers["old"] = forge(simulation, node, partner, 1)

    simulation.world.phase_hooks.listeners.append(watch)
    simulation.run()
    assert answers == {
        "stranger": "unknown_address",
        "server": "not_neighbour",
        "forged": "corrupt",
        "old": "stale_round",
    }
    assert residuals(simulation)[1][-1] == pytest.approx(10 * 0.04 * 0.09)


@pytest.mark.slow
def test_too_few_shares_keep_the_update_back(message_rows: Rows) -> None:
    """With a share phase that is too short, nothing is uploaded; `fill` uploads with noise of one's own instead."""
    short = ["network.latency=5 s", "noise_shares={sigma_k: 0.2, tau: 0, deadline: 4 s}"]
    simulation = run(*short)
    assert simulation.sharing is not None
    assert len(simulation.sharing.share_log.skipped) == 10
    assert message_rows(simulation.log, kind="update") == []
    filled = run(short[0], "noise_shares={sigma_k: 0.2, tau: 0, deadline: 4 s, when_short: fill}")
    assert len(message_rows(filled.log, kind="update")) == 10
    assert (residuals(filled)[1] >= 10 * 0.04).all()
    assert residuals(filled)[0].mean() > 0.1


def test_a_protocol_that_forgets_to_protect_cannot_publish() -> None:
    """An update never leaves without its noise by mistake."""
    simulation = build(parse_scenario(WORLD), threads=1)
    client = simulation.clients[0]
    with pytest.raises(RuntimeError, match="without noise shares"):
        client.publish(_assignment(), client.learning.release(0, 1), 1.0)


def _assignment() -> Any:
    from nodes.messaging.control_messages import Assignment

    return Assignment(1, "member", bytes(32), {}, {}, weight_total=10.0)


@pytest.mark.slow
def test_coalitions_are_partners_among_themselves(message_rows: Rows) -> None:
    """Members of one group exchange with each other at their own tau, the others with each other."""
    simulation = run(
        "clients=10",
        "data.samples=200",
        "noise_shares={sigma_k: 0.2, tau: 1.0, coalitions: [0-3, [4, 5]], coalition_tau: 0}",
    )
    group = {node: 0 if node < 4 else 1 if node < 6 else 2 for node in range(10)}
    for row in message_rows(simulation.log, kind="share"):
        assert group[row["sender"]] == group[row["receiver"]]
    assert residuals(simulation)[1][0] == pytest.approx(4 * 0.04)


@pytest.mark.slow
def test_padding_hides_and_listing_shows_unequal_sigmas() -> None:
    """Padded, all have the largest number of partners and shares of their own size; listed, the number tells."""
    sigmas = [0.1 if node < 6 else 0.2 for node in range(12)]
    for unequal, counts in (("pad", {4}), ("list", {1, 4})):
        simulation = run(f"noise_shares={{sigma_k: {sigmas}, tau: 0, unequal: {unequal}}}")
        assert simulation.sharing is not None
        uploads = simulation.sharing.share_log.uploads[1]
        assert {len(upload.sent) for upload in uploads.values()} == counts
        for node, upload in uploads.items():
            assert sum(share.std**2 for share in upload.sent) == pytest.approx(sigmas[node] ** 2)
        assert residuals(simulation)[0].max() < 1e-28


@pytest.mark.slow
def test_seeds_are_never_drawn_twice() -> None:
    """Over rounds, partners and a crash between exchange and upload."""
    simulation = run(
        "rounds=4", "faults=[{kind: crash, who: 0-3, round: 2, phase: share, lasts: 20 s}]", "noise_shares.tau=0.1"
    )
    assert simulation.sharing is not None
    uploads = [one for by_node in simulation.sharing.share_log.uploads.values() for one in by_node.values()]
    seeds = [share.seed for one in uploads for share in one.sent] + [one.seed for up in uploads for one in up.taken]
    assert len(set(seeds)) == len(seeds)
    assert records.KIND["share"] in simulation.log.messages["kind"]
