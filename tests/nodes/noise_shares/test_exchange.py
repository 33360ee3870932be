"""The noise-share exchange over the simulated network, against the formulas of the paper and of spec C.3."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from p2p.clock import Rank
from p2p.log import records
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.noise_shares.variance import expected_residual_variance
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario

WORLD = """
name: shares
seed: 5
rounds: 1
clients: 12
data: {name: synthetic, samples: 240, features: 4, classes: 2}
model: {kind: linear}
training: {epochs: 1}
compute: 20 samples/s
evaluation: {every: 1000}
protocol: {kind: central, train_per_round: 10, deadline: 60 s}
anonymity: {sealed: sizes}
network: {sharing: ideal, uplink: 1 MB/s, downlink: 1 MB/s, latency: 100 ms}
privacy: {clip: {kind: flat, norm: 1.0}, delta: 1.0e-4}
noise_shares: {sigma_k: 0.2, unit_variance: 0.01, tau: 0.3}
"""
LEADER = "protocol={kind: rotating_leader, train_per_round: 10, deadline: 60 s}"
GOSSIP = "protocol={kind: gossip, train_per_round: 10, exchange_with: 6, deadline: 60 s}"
DIMENSION = 10
Rows = Callable[..., list[dict[str, Any]]]


def run(*overrides: str) -> Simulation:
    """The world above, run to its end."""
    simulation = build(parse_scenario(WORLD, overrides=overrides), threads=1)
    simulation.run()
    return simulation


def residuals(simulation: Simulation) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Measured and predicted variance of every aggregation."""
    assert simulation.sharing is not None
    found = simulation.sharing.share_log.residuals
    return np.array([one.measured for one in found]), np.array([one.predicted for one in found])


def covers(measured: np.ndarray[Any, Any], predicted: float, spread: float = 1.0) -> bool:
    """Whether the mean of independent variances is within its 99.9% interval; `spread` for heavier tails."""
    degrees = len(measured) * DIMENSION / spread
    low, high = chi2.ppf([0.0005, 0.9995], degrees) / degrees
    return bool(low * predicted <= measured.mean() <= high * predicted)


def lose(policy: str, lost: int, tau: float, count: int, mode: str = "vector") -> Simulation:
    """Rounds in which so many members are lost after the exchange and before their upload."""
    settings = (
        f"{{sigma_k: {math.sqrt(count * 0.01)}, unit_variance: 0.01, tau: {tau}, tau_mode: {mode}, policy: {policy}}}"
    )
    rounds = 30
    simulation = build(
        parse_scenario(
            WORLD,
            overrides=[
                f"rounds={rounds}",
                "clients=10",
                "data.samples=200",
                "protocol.deadline=10 s",
                "protocol.min_updates=0",
                f"noise_shares={settings}",
            ],
        ),
        threads=1,
    )
    for number in range(1, rounds + 1):
        for node in range(lost):
            _lose_in(simulation, (node + number) % 10, number, policy)
    simulation.run()
    return simulation


def _lose_in(simulation: Simulation, node: int, round_number: int, policy: str) -> None:
    """Crashes a node in the middle of a round's share phase, or with its upload still on the way."""
    phase, delay_s = ("share", 2.0) if policy == "omit" else ("send", 0.0)

    def watch(who: int, number: int, reached: str) -> None:
        if (who, number, reached) == (node, round_number, phase):
            at_s = simulation.clock.now + delay_s
            simulation.clock.call_at(at_s, Rank.FAULT, 0, lambda: simulation.supervisor.crash(node))
            simulation.clock.call_at(at_s + 11.0, Rank.FAULT, 0, lambda: simulation.supervisor.recover(node))

    simulation.world.phase_hooks.listeners.append(watch)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["protocol.kind=central", LEADER])
@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("count", [1, 4, 7])
def test_theorem_2_over_the_simulator(protocol: str, tau: float, count: int) -> None:
    """All uploads summed leave `sum sigma_k^2 tau_k^2` (with one share each this is Lemma 1 as many times)."""
    total = count * 0.01
    simulation = run(
        protocol, "rounds=40", f"noise_shares={{sigma_k: {math.sqrt(total)}, tau: {tau}, tau_mode: vector}}"
    )
    measured, predicted = residuals(simulation)
    sharers = 9 if protocol == LEADER else 10
    assert np.allclose(predicted, sharers * total * tau**2)
    assert len(measured) == 40
    if tau == 0.0:
        assert measured.max() < 1e-28
    else:
        assert covers(measured, float(predicted[0]), spread=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["none", "omit", "correct"])
@pytest.mark.parametrize(("tau", "count", "lost"), [(0.0, 3, 1), (0.3, 6, 2), (1.0, 6, 5), (0.3, 4, 3), (0.0, 7, 4)])
def test_lost_peers_leave_what_the_formula_says(policy: str, tau: float, count: int, lost: int) -> None:
    """Spec C.3 in expectation over the partners; `omit` leaves out what senders left, `correct` leaves nothing."""
    simulation = lose(policy, lost, tau, count)
    measured, predicted = residuals(simulation)
    kept, unit = 10 - lost, 0.01
    both = unit * count * kept * (kept - 1) * tau**2 / 9
    one_lost = unit * count * kept * lost / 9
    expected = {
        "none": expected_residual_variance(10, count, unit, tau, lost),
        "omit": both + one_lost,
        "correct": both,
    }[policy]
    assert {one.contributors for one in simulation.sharing.share_log.residuals} == {kept}  # type: ignore[union-attr]
    assert predicted.mean() == pytest.approx(expected, rel=0.12, abs=1e-12)
    if expected == 0.0:
        assert measured.max() < 1e-12
    else:
        assert covers(measured, float(predicted.mean()), spread=3.0)


@pytest.mark.slow
@pytest.mark.parametrize("share_as", ["vector", "seed", "pairwise"])
@pytest.mark.parametrize("expansion", ["fast", "shake"])
def test_the_scalar_factor_has_the_same_mean(share_as: str, expansion: str) -> None:
    """As printed, one factor per share: a round's variance varies more, its mean is the same."""
    settings = f"{{sigma_k: 0.2, tau: 0.3, share_as: {share_as}, expansion: {expansion}}}"
    measured, predicted = residuals(run("rounds=60", f"noise_shares={settings}"))
    assert covers(measured, float(predicted[0]), spread=4.0)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["protocol.kind=central", LEADER])
@pytest.mark.parametrize("share_as", ["vector", "seed", "pairwise"])
def test_nothing_lost_and_tau_zero_is_no_noise(protocol: str, share_as: str) -> None:
    """The models equal those of the same run without noise shares to float accuracy, under real sealing too."""
    plain = run(protocol, "rounds=3", "noise_shares=none", "privacy={clip: {kind: flat, norm: 1.0}}")
    shared = run(
        protocol, "rounds=3", f"noise_shares={{sigma_k: 0.2, tau: 0, share_as: {share_as}}}", "anonymity.sealed=true"
    )
    for node in (*range(12), shared.world.server):
        assert plain.deferred_learning is not None
        assert shared.deferred_learning is not None
        difference = plain.deferred_learning.model(node).array() - shared.deferred_learning.model(node).array()
        assert np.abs(difference).max() < 3e-6


@pytest.mark.slow
def test_weights_by_records_sum_to_a_weighted_mean() -> None:
    """Uploads carry p_k = n_k / sum n; every share still cancels."""
    simulation = run(
        "data.split={kind: dirichlet, alpha: 1.0}",
        "noise_shares={sigma_k: 0.2, tau: 0, weights: records, records_public: true}",
    )
    assert simulation.sharing is not None
    uploads = simulation.sharing.share_log.uploads[1].values()
    assert sum(upload.weight for upload in uploads) == pytest.approx(1.0)
    assert len({upload.weight for upload in uploads}) > 1
    assert residuals(simulation)[0].max() < 1e-28


@pytest.mark.slow
def test_gossip_cancels_only_among_those_averaged_together() -> None:
    """When all are heard nothing remains; with some, partners drawn among co-recipients leave less than chance."""
    shares = "noise_shares={sigma_k: 0.2, tau: 0}"
    complete = "protocol={kind: gossip, train_per_round: 10, exchange_with: 9, deadline: 60 s}"
    assert residuals(run(complete, shares))[0].max() < 1e-28
    chance = residuals(run(GOSSIP, shares, "rounds=5"))
    chosen = residuals(run(GOSSIP, "noise_shares={sigma_k: 0.2, tau: 0, partners: co_recipients}", "rounds=5"))
    assert chosen[1].mean() < chance[1].mean()
    for measured, predicted in (chance, chosen):
        assert len(measured) == 50
        assert measured.mean() == pytest.approx(predicted.mean(), rel=0.25)


@pytest.mark.slow
def test_a_leader_is_no_members_partner(book_rows: Rows) -> None:
    """Everyone else sends and gets exactly v shares; the leader's own update stays with it."""
    simulation = run(LEADER, "rounds=4")
    for record in simulation.log.rounds:
        rows = book_rows(simulation.log, round=record["round"], kind="share")
        ends = [(row["sender"], row["receiver"]) for row in rows]
        assert len(set(ends)) == len(ends) == 9 * 4
        assert all(record["leader"] not in pair for pair in ends)
        for place in (0, 1):
            assert set(np.bincount([pair[place] for pair in ends]).tolist()) <= {0, 4}


@pytest.mark.slow
def test_bytes_of_shares(book_rows: Rows) -> None:
    """Vectors cost 4 d v and framing, seeds at most 200 bytes each, agreed keys nothing; the summary has the ratio."""
    from scenarios.metrics.privacy.noise_share_report import share_summary

    for share_as, payload in (("vector", 4 * DIMENSION), ("seed", 40), ("pairwise", None)):
        simulation = run(f"noise_shares.share_as={share_as}", "anonymity.sealed=true")
        rows = book_rows(simulation.log, kind="share")
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
def test_without_learning_the_messages_flow_all_the_same(book_rows: Rows) -> None:
    """The events do not depend on learning; nothing is measured, and predictions stay."""
    asleep, awake = run("learning=none"), run()
    told = [[(row["sent_s"], row["sender"], row["receiver"], row["kind"], row["size_bytes"]) for row in
             book_rows(one.log)] for one in (asleep, awake)]  # fmt: skip
    assert told[0] == told[1]
    assert np.isnan(residuals(asleep)[0]).all()
    assert (residuals(asleep)[1] == residuals(awake)[1]).all()


@pytest.mark.slow
def test_a_changed_share_is_missing(book_rows: Rows) -> None:
    """It is rejected, its receiver goes on without it, and the residual says so."""
    for sealed in ("true", "sizes"):
        simulation = run("rounds=4", "faults=[{kind: corrupt, probability: 0.1}]", f"anonymity.sealed={sealed}")
        rows = book_rows(simulation.log, kind="share")
        assert any(row["outcome"] == "rejected" for row in rows)
        came = {(row["round"], row["sender"], row["receiver"]) for row in rows if row["outcome"] == "delivered"}
        assert simulation.sharing is not None
        uploads = [one for by_node in simulation.sharing.share_log.uploads.values() for one in by_node.values()]
        assert {one.share[:3] for upload in uploads for one in upload.taken} <= came
        measured, predicted = residuals(simulation)
        assert (measured > 0).all()
        assert measured.sum() == pytest.approx(predicted.sum(), rel=0.9)


@pytest.mark.slow
def test_a_share_twice_counts_once(book_rows: Rows) -> None:
    """The double is refused as a replay and changes no sum."""
    simulation = run("faults=[{kind: duplicate, probability: 0.5}]", "noise_shares.tau=0")
    reasons = [row["reason"] for row in book_rows(simulation.log, kind="share") if row["outcome"] == "rejected"]
    assert reasons
    assert set(reasons) == {"replay"}
    assert residuals(simulation)[0].max() < 1e-28


def forge(simulation: Simulation, victim: int, sender: bytes, round_number: int) -> str | None:
    """What the victim says to a share from an address, sealed with keys of another node, for some round."""
    from nodes.noise_shares.wire_messages import seed_payload
    from p2p.transport.messages import Message

    endpoint = simulation.clients[victim].endpoint
    held = simulation.world.sessions[max(simulation.world.sessions)][victim]
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
            assignment = simulation.world.sessions[2][node].assignment
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
def test_too_few_shares_keep_the_update_back(book_rows: Rows) -> None:
    """With a share phase that is too short, nothing is uploaded; `fill` uploads with noise of one's own instead."""
    short = ["network.latency=5 s", "noise_shares={sigma_k: 0.2, tau: 0, deadline: 4 s}"]
    simulation = run(*short)
    assert simulation.sharing is not None
    assert len(simulation.sharing.share_log.skipped) == 10
    assert book_rows(simulation.log, kind="update") == []
    filled = run(short[0], "noise_shares={sigma_k: 0.2, tau: 0, deadline: 4 s, when_short: fill}")
    assert len(book_rows(filled.log, kind="update")) == 10
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
@pytest.mark.parametrize("protocol", ["protocol.kind=central", LEADER])
@pytest.mark.parametrize("share_as", ["vector", "seed", "pairwise"])
def test_corrections_cancel_what_the_dead_left(protocol: str, share_as: str, book_rows: Rows) -> None:
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
    rows = book_rows(simulation.log, kind="correction")
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
def test_omit_leaves_out_senders_known_to_be_gone(book_rows: Rows) -> None:
    """The proxy sees the connection end and tells the partners, who upload only at the shares' deadline."""
    simulation = lose("omit", 1, 0.5, 4)
    assert simulation.sharing is not None
    for number, by_node in simulation.sharing.share_log.uploads.items():
        gone = number % 10
        assert all(one.share.sender != gone for node, upload in by_node.items() if node != gone for one in upload.taken)
    sent_s = [row["sent_s"] for row in book_rows(simulation.log, kind="update", round=1)]
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


@pytest.mark.slow
def test_coalitions_are_partners_among_themselves(book_rows: Rows) -> None:
    """Members of one group exchange with each other at their own tau, the others with each other."""
    simulation = run(
        "clients=10",
        "data.samples=200",
        "noise_shares={sigma_k: 0.2, tau: 1.0, coalitions: [0-3, [4, 5]], coalition_tau: 0}",
    )
    group = {node: 0 if node < 4 else 1 if node < 6 else 2 for node in range(10)}
    for row in book_rows(simulation.log, kind="share"):
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
    book, leader = simulation.sharing.share_log, simulation.log.rounds[0]["leader"]
    table = simulation.log.aggregations
    (first,) = set(table["aggregator"][table["void"]].tolist())
    used = set(table["contributor"][~table["void"]].tolist())
    assert slow in used
    assert lost not in used
    about: dict[int, set[int]] = {first: set(), leader: set()}
    for (_, aggregator, node), (sent, taken) in book.answers.items():
        about[aggregator] |= {share.receiver for share in sent} | {one.share.sender for one in taken}
        assert set(sent) <= set(book.opened[1][node][0])
        assert set(taken) <= set(book.opened[1][node][1])
    assert about == {first: {slow}, leader: {lost}}
    # Only what the second leader was told repairs its sum: the slow member's noise is in it and cancels.
    assert residuals(simulation)[0].max() < 1e-12


@pytest.mark.slow
def test_a_newer_plan_finds_the_same_upload() -> None:
    """A member exchanges shares once in a round: its update is the same for every leader, noise included."""
    simulation, _, _ = second_leader()
    assert simulation.sharing is not None
    draws = [client.shares._draws for client in simulation.clients if client.shares is not None]
    assert draws == [1] * 10


@pytest.mark.slow
def test_an_election_does_not_cut_an_exchange_short(book_rows: Rows) -> None:
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
    graph_s = min(row["sent_s"] for row in book_rows(simulation.log, kind="update"))
    assert max(row["arrived_s"] for row in book_rows(simulation.log, kind="share")) > graph_s
    assert simulation.sharing.share_log.skipped == []
    assert residuals(simulation)[0].max() < 1e-12


@pytest.mark.slow
def test_two_leaders_together_are_told_no_more_than_one_may_be() -> None:
    """Each survivor keeps `least_shares` to itself, whichever leader asks: leaders may pool what they were told."""
    asked_twice = 0
    for seed in range(1, 9):
        simulation, slow, lost = second_leader(sigma=0.1414, least=2, seed=seed)
        assert simulation.sharing is not None
        book = simulation.sharing.share_log
        for node, upload in book.uploads[1].items():
            sent, taken = book.opened.get(1, {}).get(node, ((), ()))
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
