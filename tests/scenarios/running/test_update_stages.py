"""Runs whose releases are a list of stages."""

from __future__ import annotations

import numpy as np
import pytest

from p2p.log.records import KIND
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.accounting.curves.loss_events import LaplaceLoss, composed_epsilon
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import load_scenario
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.planning.plan import make_plan
from scenarios.run_folder.digest import events_digest

NOISE = "calibrate: {kind: rigorous, epsilon: 4, view: local}"


def run(*overrides: str) -> Simulation:
    """A run of the tiny scenario with learning."""
    simulation = build(load_scenario("tiny", ["learning=torch", "rounds=2", *overrides]))
    simulation.run()
    return simulation


def models(simulation: Simulation) -> bytes:
    """All models at the end, bit for bit."""
    learning = simulation.deferred_learning
    assert learning is not None
    return learning.state().models.tobytes()


@pytest.mark.slow
def test_the_long_form_is_the_short_form_to_the_bit() -> None:
    """The same events, models, ledgers and figures."""
    short = run(f"privacy={{clip: {{kind: flat, norm: 0.5}}, noise: {{kind: gaussian, {NOISE}}}}}")
    long = run("privacy=none", f"update=[{{kind: clip, norm: 0.5}}, {{kind: gaussian, {NOISE}}}]")
    assert events_digest(short.log) == events_digest(long.log)
    assert models(short) == models(long)
    for name in short.log.privacy.names:
        np.testing.assert_array_equal(short.log.privacy[name], long.log.privacy[name])


@pytest.mark.slow
def test_clipped_weights_are_averaged_as_models() -> None:
    """With a bound above all weights, clipping weights changes nothing but rounding; a small one holds the models."""
    plain = run("privacy=none", "update=[{kind: clip, norm: 1.0e6}]")
    weights = run("privacy=none", "update=[{kind: clip, norm: 1.0e6, clip_object: weights}]")
    np.testing.assert_allclose(_models(plain), _models(weights), atol=1e-5)
    held = run("privacy=none", "update=[{kind: clip, norm: 0.01, clip_object: weights}]")
    trained = _models(held)[:-1]
    # A node that averaged has a mean of clipped models; the others have their first model still.
    assert np.linalg.norm(trained, axis=1).min() <= 0.01 + 1e-6


@pytest.mark.slow
def test_a_gradient_is_the_update_without_the_learning_rate() -> None:
    """Released as such, the step is one over the rate times as long."""
    one = run("privacy=none", "rounds=1", "update=[{kind: clip, norm: 1.0e6}]")
    gradient = run("privacy=none", "rounds=1", "update=[{kind: clip, norm: 1.0e6, clip_object: gradient}]")
    first = _models(one)[-1]
    rate = one.scenario.training.rate(1)
    np.testing.assert_allclose((_models(gradient) - first) * rate, _models(one) - first, atol=1e-6)


def _models(simulation: Simulation) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    learning = simulation.deferred_learning
    assert learning is not None
    return learning.state().models


STAGE_LISTS = {
    "layers": "[{kind: clip_layers}, {kind: gaussian, sigma: 2}]",
    "laplace": "[{kind: clip_coordinates, bound: 0.05}, {kind: laplace, epsilon: 3}]",
    "top-k": "[{kind: top_k, rate: 0.2}, {kind: clip}, {kind: gaussian, sigma: 2}]",
    "compressed": "[{kind: clip}, {kind: gaussian, sigma: 2}, {kind: top_k, rate: 0.2}]",
    "mask": "[{kind: mask, rate: 0.2}, {kind: clip}, {kind: gaussian, sigma: 2}]",
    "aggregates": "[{kind: mask, rate: 0.2, by: last_aggregate}, {kind: clip}, {kind: gaussian, sigma: 2}]",
    "binomial": "[{kind: clip}, {kind: binomial, trials: 4000, rotate: true}]",
    "own-median": "[clip_own_median, {kind: gaussian, multiplier: 2, per_record: true}]",
    "cohort-median": "[{kind: clip}, {kind: gaussian, sigma: 2}, clip_cohort_median]",
    "asgp": "[{kind: clip}, asgp]",
    "sound": "[{kind: clip_coordinates}, {kind: asgp_sound, epsilon: 0.5}]",
    "snlc": "[{kind: clip}, snlc]",
}
CENTRAL = "protocol={kind: central, train_per_round: 4}"


def sizes(simulation: Simulation) -> dict[int, set[int]]:
    """The sizes of the update messages of each round."""
    table = simulation.log.messages
    rows = np.flatnonzero(table["kind"] == KIND["update"])
    found: dict[int, set[int]] = {}
    for row in rows.tolist():
        found.setdefault(int(table["round"][row]), set()).add(int(table["size_bytes"][row]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stages", STAGE_LISTS.values(), ids=STAGE_LISTS)
def test_bytes_are_the_same_encrypted_counted_and_planned(stages: str) -> None:
    """Encryption really encodes every release; runs without learning and plans count the same."""
    world = ("privacy=none", CENTRAL, f"update={stages}", "rounds=3")
    sealed, counted, silent = (
        run(*world, *more) for more in (("anonymity.sealed=true",), ("anonymity.sealed=sizes",), ("learning=none",))
    )
    assert sizes(sealed) == sizes(counted) == sizes(silent)
    assert models(sealed) == models(counted)
    planned = make_plan(sealed.scenario)["bytes"]["total"]["by_kind"]["update"]
    table = sealed.log.messages
    assert planned == int(table["size_bytes"][table["kind"] == KIND["update"]].sum())


@pytest.mark.slow
def test_other_losses_are_charged_in_full_to_every_view() -> None:
    """Laplace releases are counted: all figures are those of the client with the most releases."""
    done = run("privacy={delta: 1.0e-5}", CENTRAL, f"update={STAGE_LISTS['laplace']}", "rounds=4")
    told = report_privacy(done)["rigorous"]
    most = max(client.ledger.releases for client in done.clients if client.ledger is not None)
    expected = composed_epsilon(0.0, [(LaplaceLoss(3.0), most)], 1e-5)
    for figure in (told["local"], told["model"], told["receiver"], told["peer"]["worst"]):
        assert figure == pytest.approx(expected, rel=1e-9)
    assert told["how"]["local"] == "bound"
    assert done.log.privacy["rigorous"].max() == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_in_gossip_other_losses_follow_every_path() -> None:
    """A peer is charged what reached it, by any path, and never more than all receivers together."""
    done = run("privacy={delta: 1.0e-5}", f"update={STAGE_LISTS['laplace']}", "rounds=4")
    told = report_privacy(done)["rigorous"]
    assert 0.0 < told["peer"]["median"] <= told["peer"]["worst"] <= told["local"]


@pytest.mark.slow
def test_a_budget_of_other_losses_ends_the_run() -> None:
    """Each release is epsilon 3: a budget of 7 allows two."""
    budget = "privacy={budget: {by: rigorous, epsilon: 7}}"
    done = run(budget, "protocol={kind: central, train_per_round: 6}", f"update={STAGE_LISTS['laplace']}", "rounds=5")
    assert {client.ledger.releases for client in done.clients if client.ledger is not None} == {2}
    assert done.proxy.outcome.rounds_completed == 2
    assert make_plan(done.scenario)["rounds"]["possible"] == 2


@pytest.mark.slow
def test_compression_after_noise_hides_nothing_in_a_sum() -> None:
    """The largest coordinates of noisy updates are no linear function: the model view is charged like a receiver."""
    plain = report_privacy(run("privacy=none", CENTRAL, "update=[clip, {kind: gaussian, sigma: 2}]"))["rigorous"]
    packed = report_privacy(run("privacy=none", CENTRAL, f"update={STAGE_LISTS['compressed']}"))["rigorous"]
    assert plain["model"] < plain["local"]
    assert packed["model"] == packed["local"] == plain["local"]
    assert (plain["how"]["local"], packed["how"]["local"]) == (
        "exact",
        "bound",
    )  # the largest coordinates tell less than all of them


@pytest.mark.slow
def test_the_cohort_median_scales_what_the_server_received() -> None:
    """Of all updates of a round, those longer than the median become as long as it."""
    seen: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = []
    plain = run("privacy=none", CENTRAL, "rounds=1", "update=[{kind: clip, norm: 1.0e6}]")
    clipped = run("privacy=none", CENTRAL, "rounds=1", "update=[{kind: clip, norm: 1.0e6}, clip_cohort_median]")
    learning = plain.deferred_learning
    assert learning is not None
    first = learning.first_model().array()
    cohort = plain.records[1].cohort.tolist()
    for node in cohort:
        trained = plain.learner.train(first[None], [node], 1)[0]  # type: ignore[union-attr]
        seen.append(first - trained)
    norms = [float(np.linalg.norm(one.astype(np.float64))) for one in seen]
    bound = float(np.median(norms))
    mean = sum(one * min(1.0, bound / norm) for one, norm in zip(seen, norms, strict=True)) / len(seen)
    np.testing.assert_allclose(_models(clipped)[-1], first - mean, atol=1e-6)
    assert not np.allclose(_models(clipped)[-1], _models(plain)[-1], atol=1e-4)


@pytest.mark.slow
def test_clients_with_bounds_of_their_own_are_charged_by_them() -> None:
    """Ledgers, figures and the table of releases follow each client's own bound; the worst-off client decides."""
    norms = [1.0, 0.5, 2.0, 0.25, 1.0, 3.0]
    listed = f"update=[{{kind: clip, norm: {norms}}}, {{kind: gaussian, sigma: 20}}]"
    done = run("privacy={delta: 1.0e-5}", "clients=6", CENTRAL, listed, "rounds=4")
    table = done.log.privacy
    spent = np.array([(table["node"] == node).sum() * (2 * norms[node] / 20) ** 2 for node in range(6)])
    told = report_privacy(done)["rigorous"]
    assert told["local"] == pytest.approx(epsilon_of(float(np.sqrt(spent.max())), 1e-5), rel=1e-9)
    for node in np.unique(table["node"]).tolist():
        last = table["rigorous"][table["node"] == node][-1]
        assert last == pytest.approx(epsilon_of(float(np.sqrt(spent[node])), 1e-5), rel=1e-9)
    assert "differ" in told["no_amplification_because"]
    assert make_plan(done.scenario)["privacy"]["rigorous"]["local"] > 0.0


LIMITS = {
    "top-k of all": ("[{kind: top_k, rate: 1}, clip, {kind: gaussian, sigma: 2}]", ()),
    "top-k of all, after noise": ("[clip, {kind: gaussian, sigma: 2}, {kind: top_k, rate: 1}]", ()),
    "a mask of everything": ("[{kind: mask, rate: 1}, clip, {kind: gaussian, sigma: 2}]", ()),
    "a last aggregate's": ("[{kind: mask, rate: 1, by: last_aggregate}, clip, {kind: gaussian, sigma: 2}]", ()),
    "no momentum": ("[clip, {kind: gaussian, sigma: 2}]", ("aggregate={momentum: 0, step_size: 1}",)),
    "printed fednore2": (
        "[clip, {kind: gaussian, sigma: 2}]",
        ("objective={kind: fednore2, reading: printed, lam: 9}",),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("stages", "more"), LIMITS.values(), ids=LIMITS)
def test_limits_are_the_system_without_the_part(stages: str, more: tuple[str, ...]) -> None:
    """Events, bytes, models and figures, to the bit."""
    plain, limit = (
        run("privacy=none", CENTRAL, f"update={listed}", "rounds=3", *parts)
        for listed, parts in (("[clip, {kind: gaussian, sigma: 2}]", ()), (stages, more))
    )
    assert events_digest(plain.log) == events_digest(limit.log)
    assert models(plain) == models(limit)
    assert report_privacy(plain) == report_privacy(limit)
